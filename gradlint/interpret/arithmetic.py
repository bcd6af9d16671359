"""Arithmetic with tensors, and with numbers that are not known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradlint.interpret import arguments, chances, copies, tensors
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import (
    Abstract,
    Const,
    Instance,
    Object,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup
from gradlint.tape import DType, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

OPERATIONS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder",
    "**": "pow", "@": "matmul",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
}  # fmt: skip
ARITHMETIC = frozenset(f"torch.{name}" for name in OPERATIONS.values())
MAX_DEPTH = 4  # of arithmetic that is looked through for a tensor
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "**": operator.pow,
}  # fmt: skip
_OF_SIZES = frozenset(["+", "-", "*", "//", "%"])
_PLAIN = ("number", "bool", "str", "array", "object", "module")


def arithmetic(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Tensor:
    """Arithmetic with a tensor; in reverse (`1 - x`) the tensor is still what the table calls the
    input.
    """
    name = OPERATIONS[op]
    reverse = not isinstance(left, Tensor | Unknown)
    effect = lookup(name, "scalar" if is_scalar(right) and not reverse else "") or lookup(name)
    if reverse and op in ("/", "-", "**", "//"):
        effect = lookup(f"r{name}") or effect
    made = tensors.apply(
        m, f"torch.{name}", [right, left] if reverse else [left, right], node, frame, effect
    )
    made.node.arguments = arguments.given(m, [left, right], {})
    if op == "/":
        made.node.dtype = (
            DType.FLOAT if made.node.dtype in (DType.INTEGER, DType.BOOL) else made.node.dtype
        )
        made.node.factor = _factor(m, right)
        made.node.flags |= {"division"}
        _note_count(m, made.node, right)
    if op == "*":
        made.node.factor = _factor(m, left if isinstance(left, Const | Unknown) else right)
        made.node.flags |= {"product"}
    _scalar_constant(op, left, right, made)
    return made


def _note_count(m: Machine, quotient: Value, divisor: Abstract) -> None:
    """Writes down whether a count that something with gradient is divided by is ever zero, by what
    is seen.
    """
    if isinstance(divisor, Tensor) and quotient.requires_grad and not divisor.node.requires_grad:
        chances.note(m, quotient, chances.of_none(divisor.node))


def _scalar_constant(op: str, left: Abstract, right: Abstract, made: Tensor) -> None:
    """Keeps the value of constant tensors through arithmetic: `if total > 0` on what no batch added
    to is decided.
    """
    numbers = []
    for side in (left, right):
        number = (
            side.value
            if isinstance(side, Const)
            else side.node.number
            if isinstance(side, Tensor) and not side.node.inputs
            else None
        )
        numbers.append(number)
    if (
        op in ("+", "-", "*")
        and all(isinstance(n, int | float) for n in numbers)
        and not made.node.requires_grad
    ):
        made.node.number = PYTHON[op](*numbers)


def _factor(m: Machine, value: Abstract) -> object:
    """What identifies a number that a tensor is multiplied by or divided by."""
    return (
        value.value
        if isinstance(value, Const)
        else m.symbol(value)
        if isinstance(value, Unknown)
        else None
    )


def is_scalar(value: Abstract) -> bool:
    """Whether an operand is a Python number, which an operation saves nothing of."""
    return isinstance(value, Const) or (
        isinstance(value, Unknown) and value.type in ("number", "bool")
    )


def of_unknown(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """Arithmetic on something unknown: a number where both sides are, else perhaps a tensor."""
    base, other = (left, right) if isinstance(left, Unknown) else (right, left)
    assert isinstance(base, Unknown)
    operand: object = m.symbol(other)
    if isinstance(other, Const) and isinstance(other.value, int | float | str):
        operand = other.value
    symbol = base.symbol.derive((op, operand, base is left), frame.text(node))
    if _is_plain(left) and _is_plain(right):
        _bind(m, op, left, right, symbol)
        origin = _of_numbers(m, op, left, right, node, frame)
        if _is_mask(left) or _is_mask(right):
            kind = "bool" if op in "&|^" else ""
            test = Test(symbol.asked, "true") if kind else None
            return Unknown(symbol, data=True, origin=origin, type=kind, test=test)
        return Unknown(symbol, data=True, origin=origin, type=_kind(left, right))
    is_beside_data = not isinstance(other, Unknown) or other.data
    if base.data and is_beside_data and not isinstance(other, Instance | Object):
        origin = copies.python(m, "python", [left, right], node, frame)
        return Unknown(symbol, data=True, origin=origin)
    # args.height // 2 ** encoder.levels
    is_of_sizes = op == "//" or (op == "**" and isinstance(left, Const))
    if is_of_sizes and not any(_is_computed(m, side) for side in (left, right)):
        return Unknown(symbol, data=True, type="number")
    effect = lookup(OPERATIONS[op])
    made = tensors.apply(m, f"torch.{OPERATIONS[op]}", [left, right], node, frame, effect)
    made.node.saves = ()
    result = Unknown(symbol)
    m.nodes[result.symbol] = made.node
    return result


def _bind(m: Machine, op: str, left: Abstract, right: Abstract, symbol: Symbol) -> None:
    """Has what is reckoned with sizes that the program writes down be known where it is compared:
    `x.shape[0] - 1`.
    """
    sides = bound_numbers(m, [left, right])
    if sides is None or op not in _OF_SIZES or (op in ("//", "%") and sides[1] == 0):
        return
    m.oracle.facts.bind(symbol, PYTHON[op](*sides))


def bound_numbers(m: Machine, values: Sequence[Abstract]) -> list[float] | None:
    """The numbers that values are, or are bound to where they are compared; None where one is
    not.
    """
    found: list[float] = []
    for value in values:
        number = _bound_number(m, value)
        if number is None:
            return None
        found.append(number)
    return found


def _bound_number(m: Machine, value: Abstract) -> float | None:
    match value:
        case Const(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case Unknown():
            return m.oracle.facts.number(value.symbol)
    return None


def _is_mask(value: Abstract) -> bool:
    """Whether a comparison of something unknown can be one of tensors, whose answer is a mask."""
    return isinstance(value, Unknown) and value.type == "bool" and isinstance(value.test, Test)


def _kind(left: Abstract, right: Abstract) -> str:
    """What arithmetic on plain values gives: an array or a text where one side is one, a number."""
    kinds = {getattr(side, "type", "") for side in (left, right)}
    return "array" if "array" in kinds else "str" if "str" in kinds else "number"


def _of_numbers(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Value | None:
    """What was copied out of tensors and is reckoned with, if one of two numbers was."""
    made = copies.python(m, "python", [left, right], node, frame)
    if made is not None and op == "/":
        sides = (
            side.value if isinstance(side, Const) else getattr(side, "origin", None)
            for side in (left, right)
        )
        made.arguments = tuple(
            (place, side) for place, side in enumerate(sides) if side is not None
        )
        made.flags |= {"quotient"}
    return made


def _is_computed(m: Machine, value: Abstract) -> bool:
    """Whether something speaks for a tensor: it was called for, or used as one."""
    if not isinstance(value, Unknown) or value.symbol in m.tensors:
        return isinstance(value, Unknown)
    made = m.nodes.get(value.symbol)
    return made is not None and _comes_from_tensors(made)


def _comes_from_tensors(made: Value, depth: int = 0) -> bool:
    """Whether it is more than an attribute of a model, or what is reckoned with such:
    `model.config.patch_size * 2`.
    """
    if made.op == "part" and made.inputs:
        whole = made.inputs[0]
        return not _is_model(whole) and _comes_from_tensors(whole, depth)
    if made.op in ARITHMETIC and depth < MAX_DEPTH:
        return any(_comes_from_tensors(source, depth + 1) for source in made.inputs)
    return made.kind is not Kind.PARAMETER


def _is_model(value: Value, depth: int = 0) -> bool:
    """Whether it is a model, or what a call that was given nothing but models makes of them."""
    if value.op != "call" or not value.inputs or depth == MAX_DEPTH:
        return all(source.kind is Kind.PARAMETER for source in value.inputs or (value,))
    return all(
        source.kind is Kind.PARAMETER or _is_model(source, depth + 1) for source in value.inputs
    )


def _is_plain(value: Abstract) -> bool:
    return isinstance(value, Const) or (
        isinstance(value, Unknown) and (value.type in _PLAIN or value.origin is not None)
    )
