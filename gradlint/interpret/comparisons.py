"""Expressions that compare or choose: comparisons, `and`, `or`, `not`, `then if test else
otherwise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import choosing, comparing, conditions, copies, emptied, tensors
from gradlint.interpret.operands import collated
from gradlint.interpret.registry import find_method, notify
from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Const,
    Instance,
    Object,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup
from gradlint.tape import DType

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


@handles(EVALUATE, ir.Boolean)
def boolean(m: Machine, node: ir.Boolean, frame: Frame) -> Abstract:
    """`and` and `or` give an operand; which one can be a branch of its own."""
    stops_at = node.op == "or"
    # if kind == "b" and size is None: raise …
    is_refused = m.branch.refused is node
    value: Abstract = NONE
    for position, part in enumerate(node.values):
        value = m.evaluate(part, frame)
        if position == len(node.values) - 1:
            return value
        said = conditions.asked(m, value, part)
        known = conditions.truth_at(m, said, part)
        if known is None:
            default = not is_refused or conditions.is_presence(m, said)
            known = conditions.choose(m, said, part, frame, default=default and not stops_at)
        if not stops_at and isinstance(value, Object) and find_method(value.cls, "__with__"):
            notify("discarded", m, value, part, frame)  # with no_grad() and autocast("cpu"): …
        if known == stops_at:
            return (
                Const(stops_at) if isinstance(value, Unknown) and value.test is not None else value
            )
    return value


@handles(EVALUATE, ir.Compare)
def compare(m: Machine, node: ir.Compare, frame: Frame) -> Abstract:
    if node.ops[0] in ("is", "is not"):
        m.state["glance"] = node.left
    left = m.evaluate(node.left, frame)
    if (
        m.loops
        and isinstance(m.loops[-1].node, ir.While)
        and isinstance(node.left, ir.Name | ir.Attribute)
    ):
        _note_state(m.loops[-1], left, node.left, frame)
    result: Abstract = NONE
    for op, right_node in zip(node.ops, node.rights, strict=True):
        right = m.evaluate(right_node, frame)
        result = compare_values(m, op, left, right, node, frame)
        if len(node.ops) > 1 and not conditions.decide(m, result, right_node, frame):
            return result
        left = right
    return result


def _note_state(loop: Loop, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """Notes the state that a machine is asked for, and where that stands: `if state == "load"`."""
    state = state_of(value)
    if state is not None:
        first, *_ = loop.states.get(id(node), (state,))
        loop.states[id(node)] = first, node, frame


def state_of(value: Abstract | None) -> object:
    """What tells a state of a machine from others: a word, or a member of an enum by its
    identity.
    """
    if isinstance(value, Const):
        return value.value if isinstance(value.value, str) else None
    return id(value) if isinstance(value, Instance) and "member" in value.state else None


def compare_values(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """`left op right`: elementwise where one is a tensor."""
    text = frame.text(node)
    if op in _COMPARISONS:
        left, right = (collated(m, side, node, frame) for side in (left, right))
    if op in _COMPARISONS and (isinstance(left, Tensor) or isinstance(right, Tensor)):
        plain = [comparing.known_number(side) for side in (left, right)]
        if None not in plain:
            return comparing.compare(m, op, left, right, text, node)
        made = tensors.apply(
            m, f"torch.{_COMPARISONS[op]}", [left, right], node, frame, lookup(_COMPARISONS[op])
        )
        made.node.dtype = DType.BOOL
        comparing.name_comparison(m, made, op, left, right, text)
        return made
    result = comparing.compare(m, op, left, right, text, node)
    if (
        op in _COMPARISONS
        and isinstance(result, Unknown)
        and any(isinstance(side, Unknown) and side.type == "array" for side in (left, right))
    ):
        result.type, result.origin = (
            "array",
            copies.python(m, "python", [left, right], node, frame),
        )
    return result


@handles(EVALUATE, ir.Conditional)
def conditional(m: Machine, node: ir.Conditional, frame: Frame) -> Abstract:
    asked = conditions.question(m, node.test, frame)
    question = emptied.question(m, node.test, asked, frame)
    asked = asked if question is None else question.asked
    known = conditions.truth_at(m, asked, node.test)
    taken = conditions.choose(m, asked, node.test, frame, whole=node) if known is None else known
    if question is not None:
        question.answered(taken)
    if known is not None:
        choosing.hangs_on(m, node, known, frame)
    return m.evaluate(node.then if taken else node.otherwise, frame)
