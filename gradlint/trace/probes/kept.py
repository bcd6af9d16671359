"""Losses that outlive their step together with their graph: added to a total, or put into a list.

A total shows itself in the recorded steps: it is computed at the same instruction as what it is computed from. A list
is looked for where losses of several steps, or all of a window before the last step, turn out to be alive; then the
garbage collector is asked who holds them.
"""

from __future__ import annotations

import ast
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.finding import Span
from gradlint.trace import frames, source
from gradlint.trace.records import Op
from gradlint.trace.session import Session

_WATCHED = 6  # the losses of so many first steps
_RECENT = 8  # of which so many last ones are compared with a new one
_PILE = 3  # so many of them alive are a pile
_GROWING = ("append", "extend", "appendleft", "insert", "add", "push", "update", "put")


def install(session: Session) -> None:
    """Put the probe in its place."""
    losses: list[_Loss] = []
    for told in (session.on_loss, session.on_loss_made):  # what is back-propagated, and each term of it
        told.append(lambda tensor, op: _remember(session, losses, tensor, op))
    for moment in (session.on_step, session.on_end):
        moment.append(lambda: _look(session, losses))


@dataclass(frozen=True, slots=True)
class _Loss:
    step: int
    tensor: weakref.ref[torch.Tensor]
    op: Op


def _remember(session: Session, losses: list[_Loss], tensor: torch.Tensor, op: Op) -> None:
    known = any(loss.tensor() is tensor for loss in losses[-_RECENT:])
    if session.step < _WATCHED and tensor.requires_grad and not known:
        losses.append(_Loss(session.step, weakref.ref(tensor), op))


def _look(session: Session, losses: list[_Loss]) -> None:
    """After a step: are losses of earlier steps still alive?"""
    if not losses:
        return
    alive = [(loss, tensor) for loss in losses if (tensor := loss.tensor()) is not None]
    before = sum(loss.step < session.step - 1 for loss, _ in alive)
    if before >= _PILE or len({loss.step for loss, _ in alive}) >= _PILE:
        kept = _holder([tensor for _, tensor in alive])
        if kept is not None:
            place = session.notes[-1].place  # of the step: another would end the loop around it
            session.note("kept", place, op=alive[0][0].op, how="append", at=kept)
            losses.clear()
    if session.step >= _WATCHED:
        losses.clear()


def _holder(tensors: list[torch.Tensor]) -> Span | None:
    """The statement that puts losses where they stay."""
    oldest = tensors[0]
    for container in gc.get_referrers(oldest):
        if not isinstance(container, (list, dict, set)) or container is tensors:
            continue
        held = container.values() if isinstance(container, dict) else container
        if sum(any(each is tensor for each in held) for tensor in tensors) >= _PILE:
            at = _statement(container)
            if at is not None:
                return at
    return None


def _statement(container: Any) -> Span | None:
    """The statement that puts something into a container; None where it is one of several."""
    found = set(_in_functions(container)) or set(_in_files(container))
    return found.pop() if len(found) == 1 else None


def _in_functions(container: Any) -> Iterator[Span]:
    """Where running functions that have it in a variable put something into it."""
    for code, variables in frames.scopes():
        body = None if code.co_name == "<module>" else source.function(code)
        if body is not None:
            for name in [name for name, value in variables.items() if value is container]:
                yield from _growing(code.co_filename, body, (name,))


def _in_files(container: Any) -> Iterator[Span]:
    """Where the program puts something into what is called as the container is, outside of functions that run."""
    spellings = set(_spellings(container))
    for path in frames.users_files() if spellings else ():
        tree = source.module(path)
        if tree is not None:
            yield from _growing(path, tree, tuple(spellings))


def _spellings(container: Any, nested: bool = True) -> Iterator[str]:
    """How the program writes a container that lies in a module, an object or a dictionary: `losses`, `.losses[...]`."""
    for place in gc.get_referrers(container):
        # Python 3.11 keeps attributes in the object itself, until someone asks for its `__dict__`.
        held = place if isinstance(place, dict) else getattr(place, "__dict__", {})
        for name in [name for name, value in list(held.items()) if value is container and isinstance(name, str)]:
            if "__builtins__" in held:
                yield name
            if held is not place or _is_namespace(held):
                yield f".{name}"
            else:
                yield f"[{name!r}]"
                yield from (f"{outer}[...]" for outer in _spellings(held, nested=False) if nested)


def _is_namespace(held: dict[Any, Any]) -> bool:
    """Whether a dictionary holds the attributes of an object, a class or a module."""
    return any(isinstance(owner, type) or getattr(owner, "__dict__", None) is held for owner in gc.get_referrers(held))


def _growing(path: str, tree: ast.AST, spellings: tuple[str, ...]) -> Iterator[Span]:
    """Where something is put into what has one of these spellings; a function's variable of that name is another."""
    pending = [(tree, spellings)]
    for node, outer in pending:
        for child in ast.iter_child_nodes(node):
            own = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            inner = tuple(each for each in outer if not _binds(child, each)) if own else outer
            if _grows(child, inner):
                yield source.span_of(path, source.extent(child))
            pending.append((child, inner))


def _binds(function: ast.AST, name: str) -> bool:
    """Whether a name is a variable of the function's own."""
    parts = list(ast.walk(function))
    if any(isinstance(each, ast.Global | ast.Nonlocal) and name in each.names for each in parts):
        return False
    return any(
        (isinstance(each, ast.arg) and each.arg == name)
        or (isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store))
        for each in parts
    )


def _grows(node: ast.AST, spellings: tuple[str, ...]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=verb, value=target)) if verb in _GROWING:
            return _is_spelt(target, spellings)
        case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript(value=target)]):
            return _is_spelt(target, spellings)
    return False


def _is_spelt(target: ast.AST, spellings: tuple[str, ...]) -> bool:
    text = ast.unparse(target)
    if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
        text = f"{ast.unparse(target.value)}[...]"
    return any(text == each or (each[0] in ".[" and text.endswith(each)) for each in spellings)
