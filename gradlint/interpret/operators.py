"""Operators: `left + right` and `-x` of numbers, tensors, sequences and unknown values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint.interpret import ahead, comparing, counters, defaults, lengths, shares, tensors
from gradlint.interpret.arithmetic import PYTHON, arithmetic, of_unknown
from gradlint.interpret.iteration import shorten
from gradlint.interpret.machine import Raised
from gradlint.interpret.operands import collated, concrete, concretise, is_collated
from gradlint.interpret.registry import find_method
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.texts import filled
from gradlint.interpret.values import (
    MOST_ITEMS,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
    is_small,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup
from gradlint.tape import DType, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
BITWISE = frozenset("&|^")
SPECIAL = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "@": "__matmul__",
    "//": "__floordiv__",
    "%": "__mod__", "**": "__pow__", "&": "__and__", "|": "__or__", "^": "__xor__",
    "<<": "__lshift__",
    ">>": "__rshift__",
}  # fmt: skip
MAX_CONSTANT = 1 << 20  # larger results of constant arithmetic are not computed


@handles(EVALUATE, ir.Binary)
def binary_node(m: Machine, node: ir.Binary, frame: Frame) -> Abstract:
    left = m.evaluate(node.left, frame)
    return binary(m, node.op, left, m.evaluate(node.right, frame), node, frame)


def binary(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """`left op right`."""
    number = right
    if op == "%":
        shares.counted(m, number)
    left, right = _counted(m, concrete(m, left), right), _counted(m, concrete(m, right), left)
    if op == "%" and isinstance(left, Const) and isinstance(left.value, str | bytes):
        text = filled(left.value, right)
        return m.unknown(frame.text(node), data=True, type="str") if text is None else Const(text)
    if isinstance(left, Const) and isinstance(right, Const):
        return _of_constants(m, op, left, right, node, frame)
    special = _overloaded(m, op, left, right, node, frame)
    if special is not None:
        return special
    if op not in BITWISE and _is_of_none(left, right):
        raise Raised(Object("builtins.TypeError", frame.span(node)), frame.span(node))
    if _is_of_tensors(m, op, left, right):
        left, right = (collated(m, side, node, frame) for side in (left, right))
    sides = (left, right)
    if _is_any(sides, Tensor):
        if op in BITWISE:
            _take_for_masks(left, right)
        made = arithmetic(m, op, left, right, node, frame)
        shares.made(m, op, made.node, number)
        return made
    if _is_any(sides, Instance):
        return m.unknown(frame.text(node))
    if _is_any(sides, Sequence):
        return _sequences(m, op, left, right, node, frame)
    if isinstance(left, Mapping) and isinstance(right, Mapping) and op == "|":
        return Mapping({**left.items, **right.items}, left.open or right.open)
    if m.loops and isinstance(right, Unknown) and _is_turn(op, left):
        return binary(m, op, left, lengths.window(m, right), node, frame)
    if _is_any(sides, Unknown):
        result = of_unknown(m, op, left, right, node, frame)
        shares.made(m, op, m.nodes.get(m.symbol(result)), number)
        if op == "+":
            texts = [defaults.text(m, side) for side in sides]
            defaults.note_text(m, result, None if None in texts else "".join(filter(None, texts)))
        return result
    return m.unknown(frame.text(node))


def _is_any(sides: tuple[Abstract, Abstract], kind: type[Abstract]) -> bool:
    """Whether one of the two sides is of a kind."""
    left, right = sides
    return isinstance(left, kind) or isinstance(right, kind)


def _is_turn(op: str, left: Abstract) -> bool:
    """Whether it is the remainder of a number, as of a counter: `step % window`."""
    return op == "%" and isinstance(left, Const) and type(left.value) is int


def _of_constants(
    m: Machine, op: str, left: Const, right: Const, node: ir.Node, frame: Frame
) -> Abstract:
    """`left op right` of two values that are known."""
    if left.value is None or right.value is None:
        raise Raised(Object("builtins.TypeError", frame.span(node)), frame.span(node))
    if _is_turn(op, left):
        m.session.loops.counted(m, right)
    made = _constants(op, left.value, right.value, m, node, frame)
    if op in ("*", "/"):
        _scaled_zero(made, left, right)
    if isinstance(made, Const) and m.loops:
        return ahead.computed(m, op, left, right, counters.computed(m, op, left, right, made))
    return made


def _is_of_none(left: Abstract, right: Abstract) -> bool:
    """Whether one side of an arithmetic operator is None and the other nothing that takes it."""
    return any(
        isinstance(one, Const) and one.value is None and isinstance(other, Tensor | Unknown)
        for one, other in ((left, right), (right, left))
    )


def _is_of_tensors(m: Machine, op: str, left: Abstract, right: Abstract) -> bool:
    """Whether what a loader has put together is surely a tensor where this is done with it: masks
    are joined, or it is scaled by a fraction. A number of it, as a collate function counts, can be
    anything else.
    """
    sides = (left, right)
    if op in BITWISE:
        return any(is_collated(m, side) for side in sides)
    is_scaled = any(isinstance(side, Const) and type(side.value) is float for side in sides)
    others = [side for side in sides if not isinstance(side, Const)]
    return (is_scaled or len(others) == len(sides)) and all(is_collated(m, side) for side in others)


def _take_for_masks(*sides: Abstract) -> None:
    """What is given to a bitwise operator is of bools or integers, and carries no gradient."""
    for side in sides:
        if isinstance(side, Tensor) and side.node.kind is Kind.UNKNOWN and side.node.assumed:
            side.node.requires_grad, side.node.dtype = False, DType.BOOL


def _counted(m: Machine, value: Abstract, other: Abstract) -> Abstract:
    """A length that is counted with: `len(batches) - 1`."""
    if (
        isinstance(value, Unknown)
        and isinstance(other, Const)
        and type(other.value) is int
        and lengths.is_length(m, value)
    ):
        return concretise(m, value, lengths.length(m, value))
    return value


def _is_below(value: Any, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) < limit


def _constants(op: str, left: Any, right: Any, m: Machine, node: ir.Node, frame: Frame) -> Abstract:
    kind = "str" if isinstance(left, str) else "number"
    if (isinstance(left, str | bytes) and op == "*") or not is_small(left, right):
        return m.unknown(frame.text(node), data=True, type="str")
    if op == "**" and not (_is_below(right, 64) and _is_below(left, MAX_CONSTANT)):
        return m.unknown(frame.text(node), data=True, type=kind)
    if op == "<<" and not (isinstance(right, int) and 0 <= right < 64):
        return m.unknown(frame.text(node), data=True, type=kind)
    try:
        return Const(PYTHON[op](left, right))
    except (TypeError, ValueError, ArithmeticError):
        return m.unknown(frame.text(node), data=True, type=kind)


def _scaled_zero(made: Abstract, left: Const, right: Const) -> None:
    """A zero that is scaled is written where it was: `weight * loss` of a `loss = 0` that nothing
    was added to.
    """
    if isinstance(made, Const) and type(made.value) in (int, float) and made.value == 0:
        made.at = next((side.at for side in (left, right) if side.value == 0), None)


def _overloaded(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract | None:
    """`__add__` and its like of a class of the program, `__radd__` where the left side knows
    nothing of the right.
    """
    name = SPECIAL.get(op)
    for owner, other, method_name in (
        (left, right, name),
        (right, left, f"__r{name[2:]}" if name else None),
    ):
        if not isinstance(owner, Instance) or method_name is None:
            continue
        if not isinstance(other, Tensor) or m.session.member_of(owner.cls, method_name):
            at = Call(op, [other], {}, node, frame)
            method = m.attribute(owner, method_name, at)
            if not isinstance(method, Unknown):
                return m.call(method, at)
    return None


_SETS = {"-": "difference", "&": "intersection", "|": "union", "^": "symmetric_difference"}


def _sequences(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    # keys are a list here
    if isinstance(left, Sequence) and isinstance(right, Sequence | Mapping) and op in _SETS:
        handler = find_method("set", _SETS[op])
        assert handler is not None
        return handler(m, left, Call(op, [right], {}, node, frame))
    if isinstance(left, Sequence) and isinstance(right, Sequence) and op == "+":
        return Sequence(
            left.kind,
            [*left.items, *right.items],
            left.open or right.open,
            left.rest or right.rest,
            at=frame.span(node),
        )

    sequence, times = (left, right) if isinstance(left, Sequence) else (right, left)
    if op == "*" and isinstance(sequence, Sequence):
        if (
            isinstance(times, Const)
            and isinstance(times.value, int)
            and times.value * len(sequence.items) <= MOST_ITEMS
        ):
            items = sequence.items * times.value
            return shorten(
                m, Sequence(sequence.kind, items, sequence.open, sequence.rest, at=frame.span(node))
            )
        return Sequence(
            sequence.kind,
            sequence.items * _shown(times),
            True,
            sequence.items[0] if sequence.items else None,
            at=frame.span(node),
        )
    if op == "-" and isinstance(left, Sequence):
        return Sequence(left.kind, list(left.items), True, at=frame.span(node))
    if isinstance(left, Sequence) and op == "+":
        return Sequence(left.kind, list(left.items), True, at=frame.span(node))
    return m.unknown(frame.text(node), data=True)


def _shown(times: Abstract) -> int:
    """How many times a list is shown that is repeated an unknown number of times: `len(others) *
    [True]` has as many items as are shown of the others, else once."""
    match times:
        case Unknown(symbol=Symbol(key=("len", int(shown)))) if shown:
            return shown
    return 1


@handles(EVALUATE, ir.Unary)
def unary(m: Machine, node: ir.Unary, frame: Frame) -> Abstract:
    operand = concrete(m, m.evaluate(node.operand, frame))
    if node.op == "not":
        return comparing.negate(m, operand, node, frame)
    if node.op == "~":
        operand = collated(m, operand, node, frame)
    if isinstance(operand, Const) and isinstance(operand.value, int | float):
        value = operand.value
        return Const(
            -value
            if node.op == "-"
            else value
            if node.op == "+" or isinstance(value, float)
            else ~value
        )
    if isinstance(operand, Tensor):
        if node.op == "+":
            return operand  # the very tensor
        op = {"-": "neg", "~": "bitwise_not"}[node.op]
        return tensors.apply(m, f"torch.{op}", [operand], node, frame, lookup(op))
    if isinstance(operand, Unknown):
        return of_unknown(m, "*", operand, Const(-1), node, frame)
    return m.unknown(frame.text(node))
