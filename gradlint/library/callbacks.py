"""The optimizers that code out of view gets at through a callback, and can step or clear by it.

engine.on_batch_end(lambda: optimizer.step())
@engine.on("batch")
getattr(optimizer, name)()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.registry import on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Function,
    Instance,
    Object,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.escape import is_callback, within
from gradlint.library.handover import escapes
from gradlint.source import effects
from gradlint.tape import May

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

MAX_DEPTH = 3  # of functions that call each other
_MOVES = May.STEP | May.CLEAR


@on("data call")
def put_away(m: Machine, symbol: Symbol, call: Call) -> None:
    """`everything.append(optimizer)`: who holds the list has it."""
    escapes(m, call.values, call)


@on("unknown call")
@on("data call")
def callback_escapes(m: Machine, symbol: Symbol, call: Call) -> None:
    """What a callback steps or clears, or is handed on together with, code out of view can step and
    clear.
    """
    values = call.values
    for value in values:
        if is_callback(value):
            found = list(moved(value))
            escapes(m, [*found, *values] if _moves(value) else found, call)


@on("put in")
def kept(m: Machine, owner: Unknown, at: Call) -> None:
    """`engine.optimizer = optimizer`: code out of view has it from here on."""
    if not owner.data:
        escapes(m, at.args, at)
        callback_escapes(m, owner.symbol, at)


@on("decorated")
def registered(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`@engine.on("batch")` above a function that nothing else names: code out of view calls it."""
    found = list(moved(value)) if isinstance(node, ir.Call) else []
    source = m.session.program.source(Path(frame.code.path)) if found else None
    if isinstance(value, Function) and source is not None and value.name in _mentioned(source.tree):
        return
    escapes(m, found, Call(frame.text(node), [], {}, node, frame))


@memo.of_programs
def _mentioned(tree: ast.Module) -> frozenset[str]:
    return effects.mentions([tree])


def moved(callback: Abstract, depth: int = 0) -> Iterator[Abstract]:
    """What a callback calls `step` or `zero_grad` of, or has at hand while it does."""
    if depth > MAX_DEPTH or not is_callback(callback):
        return
    moves = _moves(callback)
    for part in within(callback):
        if moves:
            yield part
        yield from moved(part, depth + 1)


def _moves(callback: Abstract, depth: int = 0) -> bool:
    """Whether a callback, a function that it wraps, or another method of its object, calls `step`
    or `zero_grad`.
    """
    match callback:
        case Builtin():
            return bool(effects.EVENTS.get(callback.name.rpartition(".")[2], May(0)) & _MOVES)
        case Function():
            inner = (part for part in within(callback) if depth < MAX_DEPTH and is_callback(part))
            has = any(found.at_hand & _MOVES for found in effects.of([callback.node.source]))
            return has or any(_moves(part, depth + 1) for part in inner)
        case Object():
            return _moves(callback.state["func"], depth)
        case Bound(function=Function() as function, receiver=Instance() as receiver):
            read = (
                name
                for found in effects.of([function.node.source])
                for name in sorted(found.attributes)
            )
            others = (_member(receiver, name) for name in read if depth < MAX_DEPTH)
            return _moves(function, depth) or any(
                _moves(Bound(other, receiver), depth + 1)
                for other in others
                if other not in (None, function)
            )
    return False


def _member(receiver: Instance, name: str) -> Function | None:
    members = (cls.namespace.get(name) for cls in receiver.cls.lineage() if isinstance(cls, Class))
    return next((member for member in members if isinstance(member, Function)), None)
