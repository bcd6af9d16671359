"""Losses that outlive their step together with their graph: added to a total, or put into a list.

A total shows itself in the recorded steps: it is computed at the same instruction as what it is computed from. A list
is looked for when losses of several steps turn out to be alive; then the garbage collector is asked who holds them.
"""

from __future__ import annotations

import ast
import gc
import linecache
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from gradlint.finding import Span
from gradlint.trace import frames, source
from gradlint.trace.records import Op
from gradlint.trace.session import Session

_WATCHED = 6  # the losses of so many first steps
_PILE = 3  # so many of them alive are a pile
_GROWING = ("append", "extend", "appendleft", "insert", "add", "push", "update", "put")


def install(session: Session) -> None:
    """Put the probe in its place."""
    losses: list[tuple[int, weakref.ref[torch.Tensor], Op]] = []
    session.on_loss.append(lambda tensor, op: _remember(session, losses, tensor, op))
    session.on_step.append(lambda: _look(session, losses))


def _remember(
    session: Session, losses: list[tuple[int, weakref.ref[torch.Tensor], Op]], tensor: torch.Tensor, op: Op
) -> None:
    if session.step < _WATCHED and tensor.requires_grad:
        losses.append((session.step, weakref.ref(tensor), op))


def _look(session: Session, losses: list[tuple[int, weakref.ref[torch.Tensor], Op]]) -> None:
    """After a step: are losses of earlier steps still alive?"""
    if session.step != _WATCHED:
        return
    alive = [(step, tensor, op) for step, reference, op in losses if (tensor := reference()) is not None]
    losses.clear()
    if len({step for step, _, _ in alive}) < _PILE:
        return
    kept = _holder([tensor for _, tensor, _ in alive])
    if kept is not None:
        session.note("kept", (), op=alive[0][2], how="append", at=kept)


def _holder(tensors: list[torch.Tensor]) -> Span | None:
    """The statement that puts losses where they stay."""
    oldest = tensors[0]
    for container in gc.get_referrers(oldest):
        if not isinstance(container, (list, dict, set)) or container is tensors:
            continue
        held = container.values() if isinstance(container, dict) else container
        if sum(any(each is tensor for each in held) for tensor in tensors) >= _PILE:
            for name in _names(container):
                at = _statement(name)
                if at is not None:
                    return at
    return None


def _names(container: Any) -> Iterator[str]:
    """What the program calls a container: an attribute, or a variable of a running function."""
    for place in gc.get_referrers(container):
        # Python 3.11 keeps attributes in the object itself, until someone asks for its `__dict__`.
        held = place if isinstance(place, dict) else getattr(place, "__dict__", {})
        yield from (name for name, value in list(held.items()) if value is container and isinstance(name, str))
    for scope in frames.scopes():
        yield from (name for name, value in scope.items() if value is container)


def _statement(name: str) -> Span | None:
    """Where the user's files put something into what is called `name`."""
    for file in frames.users_files():
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if _grows(node, name):
                return source.span_of(file, source.extent(node))
    return None


def _grows(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=verb, value=target)) if verb in _GROWING:
            return ast.unparse(target).rpartition(".")[2] == name
        case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript(value=target)]):
            return ast.unparse(target).rpartition(".")[2] == name
    return False
