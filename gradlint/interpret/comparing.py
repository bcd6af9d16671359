"""The comparison of two values, `left op right`: what is known of the answer, or the test that it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradlint.interpret import ahead, counters
from gradlint.interpret.conditions import asked, boolean, known_truth, test_of
from gradlint.interpret.lengths import is_length, length, window
from gradlint.interpret.operands import concretise
from gradlint.interpret.sameness import by_dtype, by_kind, identity, is_hashable, membership
from gradlint.interpret.symbols import Test, test_key
from gradlint.interpret.values import FALSE, TRUE, Abstract, Const, Tensor, Unknown
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_REACHING = frozenset(["<", "<=", ">", ">=", "==", "!="])
_COUNTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a,
    b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "is": lambda a, b: a is b or a == b,
    "is not": lambda a, b: not (a is b or a == b), "in": lambda a, b: a in b, "not in": lambda a,
    b: a not in b,
}  # fmt: skip


def negate(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`not value`."""
    value = asked(m, value, node)
    known = known_truth(value)
    if known is not None and id(value) not in m.tests:
        return FALSE if known else TRUE
    return boolean(m, ~test_of(m, value), frame.text(node))


def _is_elementwise(value: Abstract) -> bool:
    return isinstance(value, Unknown) and value.type in ("array", "tensor")


def compare(
    m: Machine, op: str, left: Abstract, right: Abstract, text: str, place: ir.Node | None = None
) -> Abstract:
    """`left op right` for anything but a tensor (an elementwise comparison)."""
    left, right = _number(m, left), _number(m, right)
    if isinstance(left, Const) and isinstance(right, Const):
        return _of_constants(m, op, left, right, text, place)
    if op in ("is", "is not"):
        return identity(m, op, left, right, text)
    if op in ("in", "not in"):
        return membership(m, op, left, right, text)
    if isinstance(left, Const):
        left, right, op = right, left, _TURNED[op]
    negated = op == "!="
    relation = "==" if negated else op
    known = _without_numbers(m, left, right, relation)
    if known is not None:
        return TRUE if known != negated else FALSE
    if isinstance(right, Const) and is_hashable(right.value):
        concrete = _concrete(m, left, right, relation)
        if concrete is not None:
            return compare(m, op, concrete, right, text, place)
        return boolean(m, Test(m.symbol(left).asked, relation, right.value, negated), text)
    if relation in ("<", ">") and m.symbol(left) is m.symbol(right) and not _is_elementwise(left):
        return FALSE  # epoch = start; epoch > start
    asked = Test(m.symbol(left).asked, f"{relation} symbol", m.symbol(right).asked, negated)
    return boolean(m, asked, text)


def _of_constants(
    m: Machine, op: str, left: Const, right: Const, text: str, place: ir.Node | None
) -> Abstract:
    """How two values that are known compare; a counter that the unrolled iterations do not bring to
    the other side compares as in the iterations that are left out.
    """
    if place is not None:
        counters.meet(m, (place, op, "left"), op, left, right)
        counters.meet(m, (place, op, "right"), _TURNED.get(op, op), right, left)
    # `if epoch == 5:` asks for an iteration that may not be among the unrolled ones
    if op in ("==", "!="):
        ahead.ask(m, left, [right.value])
    try:
        now = _COUNTS[op](left.value, right.value)
        if counters.is_reached(m, left, right) or counters.is_reached(m, right, left):
            now = _COUNTS[op](right.value, right.value)
    except TypeError:
        return m.unknown(text, data=True, type="bool")
    sides = ((left, right), (right, left))
    if op in ("==", "!=") and m.branch.leaves is None:
        for side, (counter, number) in zip(("left", "right"), sides, strict=True):
            if counters.may_be_reached(m, (place, op, side), counter, number):
                return _asked_at_last(m, op, counter, number, text)
    if op in _REACHING and any(_is_short_of(m, op, *pair, now) for pair in sides):
        return _answered_later(m, op, left, right, text)
    return TRUE if now else FALSE


def _without_numbers(m: Machine, left: Abstract, right: Abstract, relation: str) -> bool | None:
    """What the kinds of two values, or the last iteration of a loop, say of how they compare."""
    known = by_dtype(m, left, right) if relation == "==" else None
    if known is None:
        known = by_kind(left, right, relation)
    if known is None and m.loops:
        known = _of_the_last(m, left, right, relation)
    return known


def _is_short_of(m: Machine, op: str, size: Const, number: Const, now: bool) -> bool:
    """Whether `size` is an induction variable that the truncated unrolling leaves below `number`,
    although the full loop would reach it.

    `if len(memory) >= 128: learn()`, `if steps > 1000: learn()`; but not a counter at which the
    loop is left, nor one that `if steps == 1000` compares in a single iteration.
    """
    grown = counters.growing_with(m, size)
    if grown is None or type(number.value) not in (int, float):
        return False
    if number.written is not None:  # taken for a smaller one, to be reached
        return False
    is_counter = grown.of.source is None
    if is_counter and (op in ("==", "!=") or m.branch.leaves is (not now)):
        return False
    is_far = size.value <= number.value and number.value * grown.scale > counters.MOST_COUNTED
    return is_far and any(loop.number not in m.state.get("in full", ()) for loop in m.loops)


def _asked_at_last(m: Machine, op: str, counter: Const, number: Const, text: str) -> Abstract:
    """A question about the last round that is shown of a loop."""
    grown = counters.counted_by(m, counter)
    assert grown is not None
    asked = grown.of.derive(("round", m.rounds[-1]), grown.of.text)
    return boolean(m, Test(asked, "==", number.value, op == "!="), text)


def _answered_later(m: Machine, op: str, left: Const, right: Const, text: str) -> Abstract:
    """A question about what grows: other rounds would answer otherwise, as if the number were not
    known.
    """
    grown = counters.growing_with(m, left)
    if grown is None:
        left, right, op = right, left, _TURNED[op]
        grown = counters.growing_with(m, left)
    assert grown is not None
    count = grown.of
    negated = op == "!="
    return boolean(m, Test(count, "==" if negated else op, right.value, negated), text)


def _of_the_last(m: Machine, left: Abstract, right: Abstract, relation: str) -> bool | None:
    """Whether a loop that runs to `n` is still below `n - k`, `i < n - k`: in its last round it is
    not.
    """
    from gradlint.interpret import estimates

    if relation in ("<", ">=") and estimates.is_the_last(m, left, right):
        return relation == ">="
    if relation in (">", "<=") and estimates.is_the_last(m, right, left):
        return relation == "<="
    return None


def _concrete(m: Machine, left: Abstract, right: Const, relation: str) -> Abstract | None:
    """A counter met with an unknown number (`micro == args.accumulate`): that number is taken to be
    small.
    """
    if (
        right.at is not None
        or type(right.value) is not int
        or not m.loops
        or not isinstance(left, Unknown)
    ):
        return None
    if left.type not in ("", "number") or left.test is not None or left.origin is not None:
        return None
    if is_length(m, left):
        return concretise(m, left, length(m, left))
    from gradlint.interpret import estimates

    end = estimates.end(m, left.symbol)
    if end is not None:
        return Const(end)
    if m.session.contract:  # who calls a part counts its calls: nothing else does
        return None
    if relation == "==":
        return window(m, left)
    return None


def _number(m: Machine, value: Abstract) -> Abstract:
    if isinstance(value, Unknown):
        return m.concrete.get(value.symbol, value)
    if isinstance(value, Tensor) and isinstance(value.node.number, int | float):
        return Const(value.node.number)
    return value


def known_number(value: Abstract) -> object | None:
    """The number that a constant (tensor) is."""
    if isinstance(value, Const):
        return value.value if isinstance(value.value, int | float) else None
    return (
        value.node.number
        if isinstance(value, Tensor) and isinstance(value.node.number, int | float)
        else None
    )


def name_comparison(
    m: Machine, made: Tensor, op: str, left: Abstract, right: Abstract, text: str
) -> None:
    """Makes the truth of an elementwise comparison the question that it is for a single element."""
    if not isinstance(left, Tensor):
        left, right, op = right, left, _TURNED[op]
    operand = known_number(right)
    if operand is not None:
        test = Test(m.symbol(left).asked, "==" if op == "!=" else op, operand, op == "!=")
        m.tests[id(made.node)] = (made.node, test)
        m.identify(made.node, m.symbol(left).derive((op, test_key(operand)), text))
    else:
        m.identify(made.node, m.symbol(left).derive((op, m.symbol(right)), text))
