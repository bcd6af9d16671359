"""What a condition says where an operation has no derivative: `x > 0` is False where `x` is 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value
from gradlint_rules.choices import MOST, condition_and_sides
from gradlint_rules.numbers import (
    is_left_out,
    keeps_zero,
    key,
    leaves_out,
    origin,
    zero_with,
)
from gradlint_rules.preimages import preimage
from gradlint_rules.signs import is_never_negative

_COMPARES = {
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a,
    b: a <= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
_TURNED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}


def is_elementwise(value: Value) -> bool:
    """Whether each number of it is computed from those at its place."""
    return has(value.op, Trait.POINTWISE)


def _spreads_infinity(value: Value) -> bool:
    """Whether it is infinity or NaN where what it is computed from is infinite."""
    return canonical(value.op) in ("mul", "neg") or has(value.op, Trait.ADDS)


def _spreads_nothing(_: Value) -> bool:
    return False


def holds_at(condition: Value, operation: Value, argument: Value, point: float) -> bool | None:
    """Whether the condition holds where `argument` is `point`; None where that is not known."""
    condition = origin(condition, selected=False)
    name = canonical(condition.op)
    parts = (
        [holds_at(part, operation, argument, point) for part in condition.inputs]
        if has(name, Trait.NEGATES, Trait.HOLDS_BOTH, Trait.HOLDS_EITHER)
        else []
    )
    match name:
        case "bitwise_not" | "logical_not":
            return None if parts[0] is None else not parts[0]
        case "bitwise_and" | "logical_and":
            return False if False in parts else None if None in parts else True
        case "bitwise_or" | "logical_or":
            return True if True in parts else None if None in parts else False
        case "isnan" | "isinf" | "isfinite" | "nan_to_num":
            return _asked_of_result(condition, operation, point)
        case "ne" | "eq" if condition.argument(0) is condition.argument(1, "other"):
            # `y != y`: where it is NaN
            is_nan = _asked_of_result(condition, operation, point)
            return is_nan if name == "ne" or is_nan is None else not is_nan
        case "eye" if point == 0:
            return True if any(map(_is_with_itself, zero_with(argument))) else None
    if point == 0 and _share_zeros(condition, argument):
        return False
    mask, side = _left_out(argument)
    if point == 0 and mask is not None and key(mask) == key(condition):
        return side
    return _compared(condition, name, operation, argument, point) if name in _COMPARES else None


def _is_with_itself(value: Value) -> bool:
    """Whether it is zero on the diagonal: `x[:, None] - x[None]`, `cdist(x, x)`."""
    left, right = value.argument(0), value.argument(1, "other")
    if (
        canonical(value.op) not in ("sub", "cdist")
        or not isinstance(left, Value)
        or not isinstance(right, Value)
    ):
        return False
    return key(left) == key(right) and (left is not right or canonical(value.op) == "cdist")


def _left_out(argument: Value) -> tuple[Value | None, bool]:
    """The mask of the logits that a softmax leaves out, whose share is zero, and what it is where
    they are.
    """
    found = origin(argument, selected=False)
    logits = (
        origin(found.inputs[0], selected=False)
        if canonical(found.op) == "softmax" and found.inputs
        else None
    )
    if logits is None or not leaves_out(found):
        return None, False
    mask, taken, _ = condition_and_sides(logits)
    side = canonical(logits.op) == "masked_fill" or is_left_out(taken)
    while isinstance(mask, Value) and has(mask.op, Trait.NEGATES) and mask.inputs:
        mask, side = origin(mask.inputs[0], selected=False), not side
    return (mask, side) if isinstance(mask, Value) else (None, False)


def _is_of(value: Value, operation: Value) -> bool:
    """Whether `value` is the operation's result, or the same computed again."""
    return key(value) == key(operation)


def _asked_of_result(condition: Value, operation: Value, point: float) -> bool | None:
    """What a question after NaN or infinity says of what is computed from the operation's result at
    a point.
    """
    asked = condition.inputs[0] if condition.inputs else condition
    found = _result(operation, point)
    name = canonical(condition.op)
    if name in ("isfinite", "nan_to_num"):
        spreads: Callable[[Value], bool] = _spreads_infinity if "inf" in found else is_elementwise
        return False if found and _is_from(asked, operation, spreads) else None
    if name == "isinf":
        return True if "inf" in found and _is_of(asked, operation) else None
    spreads = _spreads_nothing if "inf" in found else is_elementwise
    return True if "nan" in found and _is_from(asked, operation, spreads) else None


def _result(operation: Value, point: float) -> set[str]:
    """What an operation can give at a point where its derivative is not finite: NaN, infinity, or a
    number.
    """
    name = canonical(operation.op)
    if name == "div":
        return {"inf"} if isinstance(operation.argument(0), int | float) else {"nan", "inf"}
    if point == 0:
        exponent = operation.argument(1, "exponent") if name == "pow" else -1
        return (
            {"inf"}
            if name != "sqrt" and isinstance(exponent, int | float) and exponent < 0
            else set()
        )
    return set() if has(name, Trait.INVERSE_OF_BOUNDED) and abs(point) == 1 else {"nan"}


def _is_from(value: Value, operation: Value, spreads: Callable[[Value], bool]) -> bool:
    """Whether a value is the operation's result, or computed from it by such elementwise operations
    alone.
    """
    seen, pending = {id(value)}, [value]
    for current in pending:
        if _is_of(current, operation):
            return True
        found = origin(current, selected=False)
        for source in found.inputs if spreads(found) and len(seen) < MOST else ():
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def _compared(
    condition: Value, name: str, operation: Value, argument: Value, point: float
) -> bool | None:
    left, right = condition.argument(0), condition.argument(1, "other")
    if not isinstance(left, Value):
        left, right, name = right, left, _TURNED[name]
    if not isinstance(left, Value):
        return None
    if (
        right == math.inf
        and canonical(operation.op) in ("pow", "rsqrt", "reciprocal", "div")
        and _is_of(left, operation)
    ):
        return name in ("eq", "ge")
    value = _at(left, argument, point)
    if value is None:
        value = preimage(left, argument, point)
        # `x > 1` of `1 / (x - 1)`, defined everywhere else, speaks of the point; of
        # `(x - 1).log()` it may speak of what lies below, where the gradient is finite
        speaks = value == 0 or (value == right and canonical(operation.op) == "div")
        if value is None or not (speaks or _is_within(operation, point)):
            return None
    if isinstance(right, int | float):
        return bool(_COMPARES[name](value, right))
    # an unknown threshold: taken to be above zero, but small
    if right is not None and not isinstance(right, Value):
        return {"gt": False, "ge": False, "lt": True, "le": True}.get(name) if value <= 0 else None
    return None


def _at(compared: Value, argument: Value, point: float) -> float | None:
    """What `compared` is where `argument` is `point`."""
    same = {key(argument), key(_unclamped(argument))}
    below = origin(compared, selected=False)
    if key(below) in same:
        return point
    if canonical(below.op) == "abs" and below.inputs and key(below.inputs[0]) in same:
        return abs(point)
    return 0.0 if point == 0 and _share_zeros(compared, argument) else None


def _is_within(operation: Value, point: float) -> bool:
    """Whether the operation is undefined around a point, too: a root below zero."""
    return abs(point) != 1 if has(operation.op, Trait.INVERSE_OF_BOUNDED) else point != 0


def _share_zeros(compared: Value, argument: Value) -> bool:
    """Whether something makes both zero where it is zero itself."""
    return not {key(part) for part in zero_with(compared)}.isdisjoint(
        key(part) for part in _vanish_with(argument)
    )


def _vanish_with(argument: Value) -> Iterator[Value]:
    """What makes `argument` zero where it is zero: below what keeps a zero, the numerator of a
    quotient, a factor, the terms of a sum that are never negative.
    """
    pending = [argument]
    for part in pending:
        *above, last = zero_with(part)
        yield from (*above, last)
        name = canonical(last.op)
        if name in ("mul", "div"):
            factors = [last.argument(0)] if name == "div" else last.inputs
            pending += [each for each in factors if isinstance(each, Value) and len(pending) < MOST]
        elif name == "add" and len(last.inputs) > 1 and all(map(is_never_negative, last.inputs)):
            # `x.abs() + y.abs()` is zero where both are, and nowhere else
            for term in last.inputs:
                yield from _zero_only_with(term)


def _zero_only_with(term: Value) -> Iterator[Value]:
    """`term`, and below elementwise operations what is zero where it is, and nowhere else."""
    value = origin(term, selected=False)
    yield value
    while value.inputs and is_elementwise(value) and keeps_zero(value):
        value = origin(value.inputs[0], selected=False)
        yield value


def _unclamped(argument: Value) -> Value:
    """What was clamped to the very interval in which the operation is defined:
    `x.clamp(-1, 1).acos()`.
    """
    found = origin(argument, selected=False)
    is_clamp = canonical(found.op) == "clamp" and found.inputs
    bounds = found.argument(1, "min"), found.argument(2, "max")
    return found.inputs[0] if is_clamp and bounds == (-1, 1) else found
