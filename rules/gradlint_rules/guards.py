"""`torch.where` and masks around a function that is not defined where they do not choose it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from gradlint.dataclass import dataclass
from gradlint.tape import Value
from gradlint_rules.numbers import (
    SOFTMAX,
    is_left_out,
    key,
    leaves_out,
    origin,
    passes_relu,
    unchanged,
    zero_with,
)
from gradlint_rules.signs import is_never_negative, is_positive  # fmt: skip
from gradlint_rules.words import bare

_COMPARES = {
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a,
    b: a <= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
_SPELLINGS = {
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
}
_TURNED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}
_BEYOND_ONE = (1.0, -1.0, 2.0, -2.0)
_ROOTS, _ZERO = (0.0, -1.0), (0.0,)
_POINTS = {
    "log": _ZERO, "log2": _ZERO, "log10": _ZERO, "reciprocal": _ZERO, "sqrt": _ROOTS,
    "rsqrt": _ROOTS,
    "acos": _BEYOND_ONE, "arccos": _BEYOND_ONE, "asin": _BEYOND_ONE, "arcsin": _BEYOND_ONE,
}  # fmt: skip
_ELEMENTWISE = {
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "neg",
    "exp",
    "expm1",
    "abs",
    "square",
    "sqrt",
    "rsqrt",
    "log",
    "log2",
}
_ELEMENTWISE |= {
    "log10",
    "log1p",
    "reciprocal",
    "cos",
    "sin",
    "tanh",
    "sigmoid",
    "acos",
    "asin",
    "arccos",
    "arcsin",
}
_ELEMENTWISE |= {
    "clamp",
    "clip",
    "clamp_min",
    "clamp_max",
    "minimum",
    "maximum",
    "true_divide",
    "divide",
    "multiply",
}
_ELEMENTWISE |= {"subtract"}
CHOICES = {"where", "masked_fill", "setitem", "nan_to_num"}
_PRODUCTS = {"mul", "multiply"}
_DIVISIONS = {"div", "divide", "true_divide"}
_TO_INFINITY = {"pow", "rsqrt", "reciprocal", *_DIVISIONS}
_INVERSES = {"acos", "arccos", "asin", "arcsin"}
_SPREADS_INFINITY = {"add", "sub", "subtract", "neg", *_PRODUCTS}  # to infinity or NaN
_EXTREMES = {"max", "min", "amax", "amin", "topk", "sort", "output"}  # which leave infinity out
_LEAVES_INFINITY = {*_PRODUCTS, *_DIVISIONS, "add", "sub", "neg", "cat", "stack", "concat"}
_MOST = 40  # values of one side that are looked at


@dataclass(frozen=True, slots=True)
class Guarded:
    """An operation that is undefined at `point`, where `choice` does not take its result: the
    gradient is NaN there.
    """

    choice: Value
    operation: Value
    argument: Value
    point: float


def guarded_in(values: Iterable[Value]) -> Iterator[Guarded]:
    """What the choices among these values guard in vain."""
    return (found for value in values if bare(value.op) in CHOICES for found in guarded(value))


def infinite(value: Value) -> Value | None:
    """The choice that puts infinity among the numbers of `value`, below what leaves it there."""
    return next(infinities(value), None)


def infinities(value: Value) -> Iterator[Value]:
    """The choices that put infinity among the numbers of `value`, below what leaves it there."""
    pending, seen = [value], {id(value)}
    for current in pending:
        shown = list(unchanged(current, selected=False))
        if any(bare(each.op) in _EXTREMES for each in shown[:-1]):
            continue
        found, name = shown[-1], bare(shown[-1].op)
        is_choice = name in CHOICES and any(_is_infinite(given) for _, given in found.arguments)
        if is_choice:
            yield found
        for source in (
            found.inputs if (is_choice or name in _LEAVES_INFINITY) and len(pending) < _MOST else ()
        ):
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def filled(choice: Value) -> tuple[Value | None, bool]:
    """The condition of a choice that puts infinity in, and whether it holds of what is left as it
    was.
    """
    condition, taken, other = _parts(choice)
    if not isinstance(condition, Value):
        return None, False
    return condition, bare(choice.op) == "where" and _is_infinite(other) and not _is_infinite(taken)


def is_scaling(value: Value) -> bool:
    """Whether it multiplies or divides element by element."""
    return bare(value.op) in _PRODUCTS | _DIVISIONS


def _is_infinite(given: object) -> bool:
    number = given.number if isinstance(given, Value) else given
    return isinstance(number, float) and math.isinf(number)


def guarded(choice: Value) -> Iterator[Guarded]:
    """What `choice` guards in vain."""
    is_asked = bare(choice.op) != "nan_to_num"  # what asks for zeros meets them
    for condition, side, taken in _sides(choice):
        for operation in _computed(side):
            for argument in _argument(operation):
                if not is_asked and not _is_computed(argument):
                    continue
                for point in _points(operation, argument):
                    if _holds(condition, operation, argument, point) is (not taken):
                        yield Guarded(choice, operation, argument, point)


def _sides(choice: Value) -> Iterator[tuple[Value, Value, bool]]:
    """For each side of a choice that carries a gradient: the condition, the side, and when the side
    is taken.
    """
    condition, *sides = _parts(choice)
    for side, taken in zip(sides, (True, False), strict=False):
        if isinstance(condition, Value) and isinstance(side, Value) and side.requires_grad:
            yield condition, side, taken


def _parts(choice: Value) -> tuple[object, object, object]:
    """The condition of a choice, what is taken where it holds, and what is taken elsewhere."""
    name = bare(choice.op)
    if name not in CHOICES:
        return None, None, None
    if name == "nan_to_num":  # what is not finite is not taken: the choice is its own condition
        return choice, choice.inputs[0] if choice.inputs else None, None
    first, second = choice.argument(0), choice.argument(1)
    if name == "where" and choice.op.startswith("torch.Tensor."):
        return second or choice.argument("condition"), first, choice.argument(2, "other")
    if name == "where":
        return (
            first or choice.argument("condition"),
            second or choice.argument("input"),
            choice.argument(2, "other"),
        )
    return second or choice.argument("mask"), None, choice.inputs[0] if choice.inputs else None


def _computed(side: Value) -> Iterator[Value]:
    """The elementwise operations that make up a side."""
    seen, pending = {id(side)}, [side]
    for current in pending:
        found = origin(current, selected=False)
        name = bare(found.op)
        if name in _ELEMENTWISE and found.requires_grad:
            yield found
            for source in found.inputs:
                if id(source) not in seen and len(seen) < _MOST:
                    seen.add(id(source))
                    pending.append(source)


def _argument(operation: Value) -> Iterator[Value]:
    """The argument of an operation whose value decides whether it is defined."""
    name = bare(operation.op)
    if name in _DIVISIONS:
        divisor = operation.argument(1, "other")
        if isinstance(divisor, Value):
            yield divisor
    elif (
        operation.inputs
        and operation.inputs[0].requires_grad
        and not isinstance(operation.argument(0), int | float)
    ):
        yield operation.inputs[0]


def _is_computed(argument: Value) -> bool:
    """Whether it is computed in view, of what carries a gradient: of anything else nobody knows
    that it meets zero.
    """
    found = origin(argument, selected=False)
    return found.requires_grad and bool(found.inputs) and not found.assumed and found.op != "call"


def _points(operation: Value, argument: Value) -> Iterator[float]:
    """Where the gradient of `operation` is not finite, as far as its argument can come there."""
    if is_positive(argument):
        return
    points = _singular(operation)
    if passes_relu(argument) and not _has_trained_numerator(operation, argument):
        points = tuple(point for point in points if point > 0)
    if points == _ROOTS and is_never_negative(argument):
        points = _ZERO
    yield from points


def _has_trained_numerator(operation: Value, divisor: Value) -> bool:
    """Whether a gradient comes back to what is divided, and no ReLU that is zero with the divisor
    stops it.
    """
    numerator = operation.argument(0)
    if (
        bare(operation.op) not in _DIVISIONS
        or not isinstance(numerator, Value)
        or not numerator.requires_grad
    ):
        return False
    zeros = {key(part) for part in zero_with(divisor)}
    return not (passes_relu(numerator) and all(key(part) in zeros for part in zero_with(numerator)))


def _singular(operation: Value) -> tuple[float, ...]:
    name = bare(operation.op)
    if name in _DIVISIONS:
        return _ZERO
    if name != "pow":
        return _POINTS.get(name, ())
    exponent = operation.argument(1, "exponent")
    if not isinstance(exponent, int | float) or isinstance(exponent, bool):
        return ()
    if exponent == int(exponent):
        return _ZERO if exponent < 0 else ()
    return _ROOTS if exponent < 1 else (-1.0,)


def _holds(condition: Value, operation: Value, argument: Value, point: float) -> bool | None:
    """Whether the condition holds where `argument` is `point`; None where that is not known."""
    condition = origin(condition, selected=False)
    name = _SPELLINGS.get(bare(condition.op), bare(condition.op))
    parts = (
        [_holds(part, operation, argument, point) for part in condition.inputs]
        if name in _CONNECTIVES
        else []
    )
    match name:
        case "bitwise_not" | "logical_not" | "invert":
            return None if parts[0] is None else not parts[0]
        case "bitwise_and" | "logical_and" | "and":
            return False if False in parts else None if None in parts else True
        case "bitwise_or" | "logical_or" | "or":
            return True if True in parts else None if None in parts else False
        case "isnan" | "isinf" | "isfinite" | "nan_to_num":
            return _asked_of_result(condition, operation, point)
        case "ne" | "eq" if condition.argument(0) is condition.argument(
            1, "other"
        ):  # `y != y`: where it is NaN
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
        bare(value.op) not in ("sub", "cdist")
        or not isinstance(left, Value)
        or not isinstance(right, Value)
    ):
        return False
    return key(left) == key(right) and (left is not right or bare(value.op) == "cdist")


def _left_out(argument: Value) -> tuple[Value | None, bool]:
    """The mask of the logits that a softmax leaves out, whose share is zero, and what it is where
    they are.
    """
    found = origin(argument, selected=False)
    logits = (
        origin(found.inputs[0], selected=False)
        if bare(found.op) in SOFTMAX and found.inputs
        else None
    )
    if logits is None or not leaves_out(found):
        return None, False
    mask, taken, _ = _parts(logits)
    side = bare(logits.op) == "masked_fill" or is_left_out(taken)
    while isinstance(mask, Value) and bare(mask.op) in NEGATIONS and mask.inputs:
        mask, side = origin(mask.inputs[0], selected=False), not side
    return (mask, side) if isinstance(mask, Value) else (None, False)


NEGATIONS = {"bitwise_not", "logical_not", "invert"}
_CONNECTIVES = {"bitwise_not", "logical_not", "invert", "bitwise_and", "logical_and", "and"}
_CONNECTIVES |= {"bitwise_or", "logical_or", "or"}


def _is_of(value: Value, operation: Value) -> bool:
    """Whether `value` is the operation's result, or the same computed again."""
    return key(value) == key(operation)


def _asked_of_result(condition: Value, operation: Value, point: float) -> bool | None:
    """What a question after NaN or infinity says of what is computed from the operation's result at
    a point.
    """
    asked = condition.inputs[0] if condition.inputs else condition
    found = _result(operation, point)
    name = bare(condition.op)
    if name in ("isfinite", "nan_to_num"):
        spreads = _SPREADS_INFINITY if "inf" in found else _ELEMENTWISE
        return False if found and _is_from(asked, operation, spreads) else None
    if name == "isinf":
        return True if "inf" in found and _is_of(asked, operation) else None
    spreads = set() if "inf" in found else _ELEMENTWISE
    return True if "nan" in found and _is_from(asked, operation, spreads) else None


def _result(operation: Value, point: float) -> set[str]:
    """What an operation can give at a point where its derivative is not finite: NaN, infinity, or a
    number.
    """
    name = bare(operation.op)
    if name in _DIVISIONS:
        return {"inf"} if isinstance(operation.argument(0), int | float) else {"nan", "inf"}
    if point == 0:
        exponent = operation.argument(1, "exponent") if name == "pow" else -1
        return (
            {"inf"}
            if name != "sqrt" and isinstance(exponent, int | float) and exponent < 0
            else set()
        )
    return set() if name in _INVERSES and abs(point) == 1 else {"nan"}


def _is_from(value: Value, operation: Value, spreads: Collection[str]) -> bool:
    """Whether a value is the operation's result, or computed from it by such elementwise operations
    alone.
    """
    seen, pending = {id(value)}, [value]
    for current in pending:
        if _is_of(current, operation):
            return True
        found = origin(current, selected=False)
        for source in found.inputs if bare(found.op) in spreads and len(seen) < _MOST else ():
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
    if right == math.inf and bare(operation.op) in _TO_INFINITY and _is_of(left, operation):
        return name in ("eq", "ge")
    value = _at(left, argument, point)
    if value is None:
        return None
    if isinstance(right, int | float):
        return bool(_COMPARES[name](value, right))
    if right is not None and not isinstance(
        right, Value
    ):  # an unknown threshold: taken to be above zero, but small
        return {"gt": False, "ge": False, "lt": True, "le": True}.get(name) if value <= 0 else None
    return None


def _at(compared: Value, argument: Value, point: float) -> float | None:
    """What `compared` is where `argument` is `point`."""
    same = {key(argument), key(_unclamped(argument))}
    below = origin(compared, selected=False)
    if key(below) in same:
        return point
    if bare(below.op) == "abs" and below.inputs and key(below.inputs[0]) in same:
        return abs(point)
    return 0.0 if point == 0 and _share_zeros(compared, argument) else None


def _share_zeros(compared: Value, argument: Value) -> bool:
    """Whether something makes both zero where it is zero itself."""
    return not {key(part) for part in zero_with(compared)}.isdisjoint(
        key(part) for part in _vanish_with(argument)
    )


def _vanish_with(argument: Value) -> Iterator[Value]:
    """What makes `argument` zero where it is zero: below what keeps a zero, the numerator of a
    quotient, a factor.
    """
    pending = [argument]
    for part in pending:
        *above, last = zero_with(part)
        yield from (*above, last)
        name = bare(last.op)
        if name in _DIVISIONS or name in _PRODUCTS:
            factors = [last.argument(0)] if name in _DIVISIONS else last.inputs
            pending += [
                each for each in factors if isinstance(each, Value) and len(pending) < _MOST
            ]


def _unclamped(argument: Value) -> Value:
    """What was clamped to the very interval in which the operation is defined:
    `x.clamp(-1, 1).acos()`.
    """
    found = origin(argument, selected=False)
    is_clamp = bare(found.op) in ("clamp", "clip") and found.inputs
    bounds = found.argument(1, "min"), found.argument(2, "max")
    return found.inputs[0] if is_clamp and bounds == (-1, 1) else found
