"""`try`: which errors its body raises, and which handler catches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import (
    conditions,
)
from gradlint.interpret.lineage import is_a
from gradlint.interpret.looping import Loop
from gradlint.interpret.machine import Raised
from gradlint.interpret.scopes import Frame, Signal
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import (
    Abstract,
    Instance,
    Lib,
    Object,
    Sequence,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@handles(EXECUTE, ir.Try)
def try_(m: Machine, node: ir.Try, frame: Frame) -> Signal | None:
    signal: Signal | None = None
    if node.handlers and m.state.get("sampling") and _fails(m, node, frame):
        return m.execute([*node.handlers[0].body, *node.finally_], frame)
    try:
        try:
            signal = _attempt(m, node, frame)
            if signal is None:
                signal = m.execute(node.otherwise, frame)
        except Raised as raised:
            handler = _handler(m, node, raised, frame)
            if handler is None:
                raise
            if handler.name:
                frame.locals[handler.name] = raised.value
            signal = m.execute(handler.body, frame)
    finally:
        last = m.execute(node.finally_, frame)
    return last or signal


def _attempt(m: Machine, node: ir.Try, frame: Frame) -> Signal | None:
    """Runs the body of a `try`."""
    m.trying.append((node, frame, len(m.loops)))
    try:
        with m.protecting([frame] if _swallows(m, node, frame) else []):
            return m.execute(node.body, frame)
    finally:
        m.trying.pop()


def leads_out(m: Machine, error: str, loop: Loop) -> bool:
    """Whether an error of this class, raised now in the round of a loop, is caught and ends the
    loop.
    """
    inside = m.loops.index(loop)
    for node, frame, depth in reversed(m.trying):
        handler = _handler(
            m, node, Raised(Object(error, frame.span(node)), frame.span(node)), frame
        )
        if handler is not None:
            return depth <= inside or leaves(handler.body)
    return False


def leaves(block: list[ir.Node]) -> bool:
    """Whether a statement of a block leaves the loop around it."""
    parts: list[object] = list(block)
    for part in parts:
        if isinstance(part, ir.Return) or (isinstance(part, ir.Jump) and part.kind == "break"):
            return True
        if isinstance(part, ir.If):
            parts += [*part.then, *part.otherwise]
    return False


def _fails(m: Machine, node: ir.Try, frame: Frame) -> bool:
    """Whether the body of a `try` raises, where that is taken to be possible."""
    asked = Unknown(
        m.session.library_symbol("raises").derive(id(node), "raises"), data=True, type="bool"
    )
    return conditions.decide(m, asked, node.body[0], frame, default=False)


def _swallows(m: Machine, node: ir.Try, frame: Frame) -> bool:
    """Whether a handler takes what a backward raises, and does not raise again."""
    error = Object("builtins.RuntimeError", frame.span(node))
    for handler in node.handlers:
        if handler.types is None or _catches(m, m.evaluate(handler.types, frame), error):
            return not any(isinstance(statement, ir.Raise) for statement in handler.body)
    return False


def _handler(m: Machine, node: ir.Try, raised: Raised, frame: Frame) -> ir.Handler | None:
    for handler in node.handlers:
        if handler.types is None or _catches(m, m.evaluate(handler.types, frame), raised.value):
            return handler
    return None


def _catches(m: Machine, types: Abstract, value: Abstract) -> bool:
    if isinstance(types, Sequence):
        return any(_catches(m, entry, value) for entry in types.items)
    if isinstance(types, Lib) and types.name in ("builtins.Exception", "builtins.BaseException"):
        return True
    if isinstance(value, Instance):
        return types in value.cls.lineage()
    if isinstance(value, Object) and isinstance(types, Lib):
        return is_a(value.cls, types.name)
    return isinstance(types, Unknown)
