"""Statements of one line, and `with`: assignments, `del`, `assert`, `raise`, `return`, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import (
    annotated,
    choosing,
    conditions,
    counters,
    tensors,
)
from gradlint.interpret.generators import run_context
from gradlint.interpret.keys import key_of
from gradlint.interpret.lineage import canonical
from gradlint.interpret.machine import Raised
from gradlint.interpret.placing import put_away
from gradlint.interpret.registry import find_attribute, notify
from gradlint.interpret.scopes import BREAK, CONTINUE, Frame, Signal
from gradlint.interpret.storage import assign, set_attribute
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Class,
    Const,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
ROUNDS = 2  # of a loop whose length is not known


@handles(EXECUTE, ir.Assign)
def assign_statement(m: Machine, node: ir.Assign, frame: Frame) -> None:
    since = len(m.oracle.free)
    value = m.evaluate(node.value, frame)
    choosing.decides(m, node, since)
    if m.loops and isinstance(value, Const) and _is_augmented(node, frame):
        value = counters.counts_on(m, m.evaluate(node.targets[0], frame), value)
    for target in node.targets:
        if isinstance(target, ir.Name) and isinstance(value, Unknown):
            _take_as_declared(m, target.id, value, node, frame)
        assign(m, target, value, frame)
    if frame.is_class and node.annotation is not None and isinstance(node.targets[0], ir.Name):
        frame.locals.setdefault("__annotations__", Mapping({}))
        annotations = frame.locals["__annotations__"]
        assert isinstance(annotations, Mapping)
        annotations.items[node.targets[0].id] = value


def _take_as_declared(m: Machine, name: str, value: Unknown, node: ir.Assign, frame: Frame) -> None:
    """Takes something unknown for the tensor that the parameter of its name is declared to be."""
    is_open = value.type == "" and not value.data and value.symbol not in m.tensors
    if is_open and annotated.is_tensor(m, name, frame):
        tensors.as_tensor(m, value, node.value, frame)


def _is_augmented(node: ir.Assign, frame: Frame) -> bool:
    """Whether it is `steps = steps + 1`, written out."""
    target, value = node.targets[0], node.value
    if (
        not isinstance(value, ir.Binary)
        or value.op != "+"
        or not isinstance(target, ir.Name | ir.Attribute)
    ):
        return False
    return frame.text(target) == frame.text(value.left)


@handles(EXECUTE, ir.Declare)
def declare(m: Machine, node: ir.Declare, frame: Frame) -> None:
    if frame.is_class:
        annotations = frame.locals.setdefault("__annotations__", Mapping({}))
        assert isinstance(annotations, Mapping)
        annotations.items[node.name] = NONE


@handles(EXECUTE, ir.Unlisted)
def unlisted(m: Machine, node: ir.Unlisted, frame: Frame) -> None:
    m.evaluate(node, frame)


@handles(EXECUTE, ir.Delete)
def delete(m: Machine, node: ir.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ir.Name):
            frame.locals.pop(target.id, None)
        elif isinstance(target, ir.Subscript):
            owner, index = m.evaluate(target.target, frame), m.evaluate(target.index, frame)
            if isinstance(owner, Mapping):
                owner.items.pop(key_of(m, index), None)
            elif isinstance(owner, Sequence):
                _delete_items(owner, index)
                m.note("deleted", frame.text(target))
            elif isinstance(owner, Instance | Object):
                at = Call("__delitem__", [index], {}, target, frame)
                method = m.attribute(owner, "__delitem__", at)
                if not isinstance(method, Unknown):
                    m.call(method, at)
        elif isinstance(target, ir.Attribute):
            owner = m.evaluate(target.target, frame)
            if isinstance(owner, Instance | Object):
                owner.attrs.pop(target.name, None)
            elif isinstance(owner, Tensor | Unknown):  # `del p.grad`: it is None then
                set_attribute(m, owner, target.name, NONE, node, frame)


def _delete_items(owner: Sequence, index: Abstract) -> None:
    """`del losses[:]`, `del losses[0]`; of items that are not known, any can be left."""
    if isinstance(index, Const) and isinstance(index.value, slice):
        del owner.items[index.value]
        if index.value == slice(None):
            owner.open, owner.rest = False, None
    elif isinstance(index, Const) and isinstance(index.value, int):
        if -len(owner.items) <= index.value < len(owner.items):
            del owner.items[index.value]
    else:
        owner.items.clear()
        owner.open = True


@handles(EXECUTE, ir.Expression)
def expression(m: Machine, node: ir.Expression, frame: Frame) -> None:
    value = m.evaluate(node.value, frame)
    notify("discarded", m, value, node.value, frame)


@handles(EXECUTE, ir.Shown)
def shown(m: Machine, node: ir.Shown, frame: Frame) -> None:
    """A name at the end of a cell was bound to be looked at, whatever else is done with it."""
    value = m.evaluate(node.value, frame)
    if isinstance(node.value, ir.Name):
        put_away(m, value, node, frame)


@handles(EXECUTE, ir.With)
def with_(m: Machine, node: ir.With, frame: Frame) -> Signal | None:
    context = m.evaluate(node.context, frame)
    ended: list[Signal] = []

    def body(entered: Abstract) -> None:
        if node.target is not None:
            assign(m, node.target, entered, frame)
        elif isinstance(entered, Object):
            notify("yielded", m, entered, node.context, frame)
        signal = m.execute(node.body, frame)
        if signal is not None:
            ended.append(signal)

    run_context(m, context, body, Call("with", [], {}, node.context, frame))
    return ended[0] if ended else None


@handles(EXECUTE, ir.Return)
def return_(m: Machine, node: ir.Return, frame: Frame) -> Signal:
    return Signal("return", NONE if node.value is None else m.evaluate(node.value, frame))


@handles(EXECUTE, ir.Raise)
def raise_(m: Machine, node: ir.Raise, frame: Frame) -> None:
    value = NONE if node.value is None else m.evaluate(node.value, frame)
    if isinstance(value, Class):
        value = m.call(value, Call("raise", [], {}, node, frame))
    elif isinstance(value, Lib):
        value = Object(value.name, frame.span(node))
    raise Raised(value, frame.span(node))


@handles(EXECUTE, ir.Jump)
def jump(m: Machine, node: ir.Jump, frame: Frame) -> Signal:
    return BREAK if node.kind == "break" else CONTINUE


@handles(EXECUTE, ir.Assert)
def assert_(m: Machine, node: ir.Assert, frame: Frame) -> None:
    """What is asserted holds from here on."""
    value = conditions.question(m, node.test, frame)
    conditions.assume(m, value, frame.span(node.test), frame.text(node.test))


@handles(EXECUTE, ir.Import)
def import_(m: Machine, node: ir.Import, frame: Frame) -> None:
    frame.locals[node.name] = m.session.program.imported(
        frame, node.module if node.whole else node.name, 0
    )
    if not node.whole:
        m.session.program.imported(frame, node.module, 0)
    m.session.program.set_modes(m, frame, node.module, 0)


@handles(EXECUTE, ir.ImportFrom)
def import_from(m: Machine, node: ir.ImportFrom, frame: Frame) -> None:
    m.session.program.set_modes(m, frame, node.module, node.level)
    for name, bound in node.names:
        if name == "*":
            m.session.program.star(m, frame, node.module, node.level)
        else:
            found = m.session.program.member(m, frame, node.module, node.level, name)
            frame.locals[bound] = _constant_of(m, found, node, frame)


def _constant_of(m: Machine, found: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`from math import pi`: the value itself, where the library's model has it."""
    home, _, name = found.name.rpartition(".") if isinstance(found, Lib) else ("", "", "")
    handler = find_attribute(canonical(home), name) if home else None
    return (
        found
        if handler is None
        else handler(m, Lib(home), Call(name, [], {}, node, frame)) or found
    )
