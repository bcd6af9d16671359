"""Tensors that outlive their step together with their graph: added to a total, or put into a list.

A total shows itself in the recorded steps: it is computed at the same instruction as what it is
computed from. A list is looked for where losses of several steps, or all of a window before the
last step, turn out to be alive, or other results of several steps; then the garbage collector is
asked who holds them, or the records that hold them. A list of losses is told as it is found; of
anything else, one that grows from step to step.
"""

from __future__ import annotations

import ast
import gc
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from gradlint.finding import Span
from gradlint.trace import frames, source
from gradlint.trace.memory import HORIZON
from gradlint.trace.records import Op
from gradlint.trace.session import Session

_WATCHED = 6  # the losses of so many first steps
_RECENT = 8  # of which so many last ones are compared with a new one
_PILE = 3  # so many of them alive are a pile
# results of so many steps in one place may become one: the next steps are recorded, too
_SUSPECT = 2
_DEEP = 3  # a tensor lies in a record: in the dictionary of an object, which lies in a list
_MANY = 24  # results of a step that are asked about
_LONG = 1000  # a deque of fewer is a window
_NO_RECORDS = (FrameType, FunctionType, ModuleType, type, torch.nn.Module, torch.optim.Optimizer)
_GROWING = ("append", "extend", "appendleft", "insert", "add", "push", "update", "put")


def install(session: Session) -> None:
    """Put the probe in its place."""
    piles = _Piles()
    for told in (
        session.on_loss,
        session.on_loss_made,
    ):  # what is back-propagated, and each term of it
        told.append(lambda tensor, op: _remember(session, piles.losses, tensor, op))
    session.on_loss.append(
        lambda _, op: piles.sinks.append((session.step, op)) if session.step < _WATCHED else None
    )
    for moment in (session.on_step, session.on_end):
        moment.append(lambda: _look(session, piles))


@dataclass(frozen=True, slots=True)
class _Loss:
    step: int
    tensor: weakref.ref[torch.Tensor]
    op: Op


@dataclass(frozen=True, slots=True)
class _Seen:
    """How many items a container had, and which results were in it."""

    length: int
    inside: frozenset[Op]

    def has_grown_to(self, now: _Seen, oldest: int) -> bool:
        """Whether it has more now, and all that it had: another one may have come to its place in
        memory.

        What is of an earlier step than `oldest` may have a record of its own by now.
        """
        left = {op.serial for op in self.inside if op.step >= oldest}
        return self.length < now.length and left <= {op.serial for op in now.inside}


@dataclass(slots=True)
class _Piles:
    """The losses of the first steps, and the containers that held results of several steps, by
    where they lie.
    """

    losses: list[_Loss] = field(default_factory=list)
    # what was back-propagated, by the step
    sinks: list[tuple[int, Op]] = field(default_factory=list)
    seen: dict[int, _Seen] = field(default_factory=dict)
    is_suspected: bool = False
    is_told: bool = False


def _remember(session: Session, losses: list[_Loss], tensor: torch.Tensor, op: Op) -> None:
    known = any(loss.tensor() is tensor for loss in losses[-_RECENT:])
    if session.step < _WATCHED and tensor.requires_grad and not known:
        losses.append(_Loss(session.step, weakref.ref(tensor), op))


def _look(session: Session, piles: _Piles) -> None:
    """After a step: are losses, or other results, of earlier steps still alive?"""
    if not piles.is_told and piles.losses:
        found = _pile_of_losses(session, piles.losses) or _pile_of_results(session, piles)
        if found is not None:
            op, how, at = found
            place = session.notes[-1].place  # of the step: another would end the loop around it
            session.note("kept", place, op=op, how=how, at=at)
            piles.is_told = True
    if piles.is_told or session.step >= _WATCHED:
        piles.losses.clear()
        piles.sinks.clear()
        piles.seen.clear()


def _pile_of_losses(session: Session, losses: list[_Loss]) -> tuple[Op, str, Span] | None:
    """A loss of those that are held together, and the statement that puts them where they stay."""
    alive = [(loss, tensor) for loss in losses if (tensor := loss.tensor()) is not None]
    before = sum(loss.step < session.step - 1 for loss, _ in alive)
    if before < _PILE and len({loss.step for loss, _ in alive}) < _PILE:
        return None
    tensors = [tensor for _, tensor in alive]
    for container in gc.get_referrers(tensors[0]):
        if not isinstance(container, (list, dict, set)) or container is tensors:
            continue
        held = container.values() if isinstance(container, dict) else container
        if sum(any(each is tensor for each in held) for tensor in tensors) >= _PILE:
            at = _statement(container)
            if at is not None:
                return alive[0][0].op, "append", at
    return None


def _pile_of_results(session: Session, piles: _Piles) -> tuple[Op, str, Span] | None:
    """The same for a list that grows by results of the steps, or by records of them, which no later
    loss needs.
    """
    tensors, ops, count = [], [], Counter[int]()
    for tensor, op in session.memory.results():
        count[op.step] += 1
        if count[op.step] <= _MANY and op.place:
            tensors.append(tensor)
            ops.append(op)
    if len(count) < _SUSPECT:
        return None
    for container, inside in _holders(tensors, ops):
        known, now = piles.seen.get(id(container)), _Seen(len(container), frozenset(inside))
        piles.seen[id(container)] = now
        if not piles.is_suspected:
            piles.is_suspected = True
            session.attention.look_again()
        steps = len({op.step for op in inside})
        has_grown = known is not None and known.has_grown_to(now, session.memory.step - HORIZON)
        if steps < _PILE or not has_grown or _is_needed(inside, piles.sinks):
            continue
        at = _statement(container)
        if at is not None:
            is_window = isinstance(container, deque) and (container.maxlen or _LONG) < _LONG
            return min(inside, key=lambda op: op.serial), "window" if is_window else "append", at
    return None


def _holders(tensors: list[torch.Tensor], ops: list[Op]) -> Iterator[tuple[Any, set[Op]]]:
    """The containers that hold results of several steps, themselves or in records of one step each,
    and these.
    """
    things: list[Any] = tensors
    held: dict[int, set[Op]] = {id(tensor): {op} for tensor, op in zip(tensors, ops, strict=True)}
    for _ in range(_DEEP):
        records, of_records = [], dict[int, set[Op]]()
        for owner in gc.get_referrers(*things):
            if owner is things or isinstance(owner, _NO_RECORDS):
                continue
            inside = set[Op]().union(*(held.get(id(each), ()) for each in gc.get_referents(owner)))
            steps = len({op.step for op in inside})
            if isinstance(owner, (list, set, deque)) and steps >= _SUSPECT:
                yield owner, inside
            elif steps == 1 and id(owner) not in held:
                records.append(owner)
                of_records[id(owner)] = inside
        things, held = records, of_records


def _is_needed(kept: set[Op], sinks: Sequence[tuple[int, Op]]) -> bool:
    """Whether the loss of a later step was computed from what is kept."""
    for step, loss in sinks:
        pending, seen = [loss], {loss}
        for op in pending:
            if op in kept and op.step < step:
                return True
            new = {source for source in op.inputs if source.requires_grad} - seen
            pending += new
            seen |= new
    return False


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
    """Where the program puts something into what is called as the container is, outside of
    functions that run.
    """
    spellings = set(_spellings(container))
    for path in frames.users_files() if spellings else ():
        tree = source.module(path)
        if tree is not None:
            yield from _growing(path, tree, tuple(spellings))


def _spellings(container: Any, nested: bool = True) -> Iterator[str]:
    """How the program writes a container that lies in a module, an object or a dictionary:
    `losses`, `.losses[...]`.
    """
    for place in gc.get_referrers(container):
        # Python 3.11 keeps attributes in the object itself, until someone asks for its `__dict__`.
        held = place if isinstance(place, dict) else getattr(place, "__dict__", {})
        for name in [
            name
            for name, value in list(held.items())
            if value is container and isinstance(name, str)
        ]:
            if "__builtins__" in held:
                yield name
            if held is not place or _is_namespace(held):
                yield f".{name}"
            else:
                yield f"[{name!r}]"
                yield from (f"{outer}[...]" for outer in _spellings(held, nested=False) if nested)


def _is_namespace(held: dict[Any, Any]) -> bool:
    """Whether a dictionary holds the attributes of an object, a class or a module."""
    return any(
        isinstance(owner, type) or getattr(owner, "__dict__", None) is held
        for owner in gc.get_referrers(held)
    )


def _growing(path: str, tree: ast.AST, spellings: tuple[str, ...]) -> Iterator[Span]:
    """Where something is put into what has one of these spellings; a function's variable of that
    name is another.
    """
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
