"""Augmented assignments: `before op= value`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import (
    arguments,
    counters,
    memory,
    shares,
    tensors,
)
from gradlint.interpret.arithmetic import ARITHMETIC, OPERATIONS, is_scalar
from gradlint.interpret.items import set_item
from gradlint.interpret.names import lookup_name
from gradlint.interpret.operators import SPECIAL, binary
from gradlint.interpret.registry import find_method
from gradlint.interpret.scopes import Frame
from gradlint.interpret.storage import bind, set_attribute
from gradlint.interpret.subscripts import item
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@handles(EXECUTE, ir.Augment)
def augment(m: Machine, node: ir.Augment, frame: Frame) -> None:
    target = node.target
    if isinstance(target, ir.Subscript):
        owner = m.evaluate(target.target, frame)
        index = m.evaluate(target.index, frame)
        before = item(m, owner, index, target, frame)
        set_item(m, owner, index, augmented(m, node, before, frame), target, frame)
        return
    if isinstance(target, ir.Attribute):
        owner = m.evaluate(target.target, frame)
        before = m.attribute(owner, target.name, Call(target.name, [], {}, target, frame))
        after = augmented(m, node, before, frame)
        set_attribute(m, owner, target.name, after, target, frame)
        return
    assert isinstance(target, ir.Name)
    bind(m, target.id, augmented(m, node, lookup_name(m, target.id, frame), frame), frame)


def augmented(m: Machine, node: ir.Augment, before: Abstract, frame: Frame) -> Abstract:
    """What `before op= value` leaves: lists and tensors are changed in place."""
    value = m.evaluate(node.value, frame)
    if isinstance(before, Unknown) and _is_taken_for_tensor(m, before):
        before = tensors.as_tensor(m, before, node, frame)
    if isinstance(before, Tensor):
        return _written(m, node, before, value, frame)
    if isinstance(before, Sequence) and before.kind == "list" and node.op == "+":
        before.extend(value.items if isinstance(value, Sequence) else ())
        before.open = before.open or not isinstance(value, Sequence) or value.open
        m.appended[id(before)] = frame.span(node)
        return before
    if isinstance(before, Mapping) and isinstance(value, Mapping) and node.op == "|":
        before.put(value)
        before.open = before.open or value.open
        return before
    if isinstance(before, Instance) and node.op in SPECIAL:
        own = m.session.member_of(before.cls, f"__i{SPECIAL[node.op][2:]}")
        if own is not None:
            return m.invoke(own, [before, value], Call(node.op, [value], {}, node, frame))
    if isinstance(before, Unknown) and _is_array_of_tensor(before):
        handler = find_method("numpy.ndarray", "__augment__")
        if handler is not None:
            handler(m, before, Call(node.op, [value], {}, node, frame))
    if isinstance(before, Unknown):
        m.oracle.writes.add(node)
    after = binary(m, node.op, before, value, node, frame)
    return counters.counts_on(m, before, after) if isinstance(after, Const) else after


def _written(m: Machine, node: ir.Augment, before: Tensor, value: Abstract, frame: Frame) -> Tensor:
    """`tensor += value`: a write in place."""
    op = f"{OPERATIONS[node.op]}_"
    inputs = tensors.sources(m, [value], node, frame)
    old, form = before.node, "scalar" if is_scalar(value) else ""
    effect = lookup(op, form)
    written = memory.write(m, before, f"torch.Tensor.{op}", inputs, node, frame, effect=effect)
    if written.node is not old:
        written.node.arguments = arguments.given(m, [NONE, value], {})
    shares.made(m, node.op, written.node, value)
    return written


def _is_array_of_tensor(value: Unknown) -> bool:
    """Whether it is an array that shares its memory with a tensor: `tensor.numpy()`."""
    return value.type == "array" and value.origin is not None and bool(value.origin.storage)


def _is_taken_for_tensor(m: Machine, value: Unknown) -> bool:
    """Whether something unknown that a part is given is a tensor: it is annotated as one, or what
    takes no number, an operator of Python say, was called with it.
    """
    if value.type == "bool":  # a mask that an operation has saved
        return value.symbol in m.tensors
    if not m.session.contract or value.data or value.origin is not None:
        return False
    if value.type == "tensor" or (not value.type and value.symbol in m.tensors):
        return True
    node = m.nodes.get(value.symbol) if not value.type else None
    uses = m.uses.get(id(node), ())
    return any(op.startswith("torch.") and op not in ARITHMETIC for op in uses)
