"""`torch.where` and masks around a function that has no derivative where they do not choose its
result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradlint.dataclass import dataclass
from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value
from gradlint_rules.choices import MOST, condition_and_sides
from gradlint_rules.numbers import (
    key,
    origin,
    passes_relu,
    zero_with,
)
from gradlint_rules.points import holds_at, is_elementwise
from gradlint_rules.signs import is_never_negative, is_positive  # fmt: skip

_BEYOND_ONE = (1.0, -1.0, 2.0, -2.0)
_BELOW_ONE = (1.0, 0.0)
_ROOTS, _ZERO = (0.0, -1.0), (0.0,)
_POINTS = {
    "log": _ZERO, "log2": _ZERO, "log10": _ZERO, "reciprocal": _ZERO, "sqrt": _ROOTS,
    "rsqrt": _ROOTS, "acos": _BEYOND_ONE, "asin": _BEYOND_ONE, "acosh": _BELOW_ONE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guarded:
    """An operation that is undefined at `point`, where `choice` does not take its result: the
    gradient is NaN there.
    """

    choice: Value
    operation: Value
    argument: Value
    point: float


def undefined_at(name: str) -> tuple[float, ...]:
    """Where an operation of this name has no finite derivative: the points that are tried."""
    return _POINTS.get(name, ())


def guarded_in(values: Iterable[Value]) -> Iterator[Guarded]:
    """What the choices among these values guard in vain."""
    return (found for value in values if has(value.op, Trait.CHOOSES) for found in guarded(value))


def guarded(choice: Value) -> Iterator[Guarded]:
    """What `choice` guards in vain."""
    is_asked = canonical(choice.op) != "nan_to_num"  # what asks for zeros meets them
    for condition, side, taken in _sides(choice):
        for operation in _computed(side):
            for argument in _argument(operation):
                if not is_asked and not _is_computed(argument):
                    continue
                for point in _points(operation, argument):
                    if holds_at(condition, operation, argument, point) is (not taken):
                        yield Guarded(choice, operation, argument, point)


def _sides(choice: Value) -> Iterator[tuple[Value, Value, bool]]:
    """For each side of a choice that carries a gradient: the condition, the side, and when the side
    is taken.
    """
    condition, *sides = condition_and_sides(choice)
    for side, taken in zip(sides, (True, False), strict=False):
        if isinstance(condition, Value) and isinstance(side, Value) and side.requires_grad:
            yield condition, side, taken


def _computed(side: Value) -> Iterator[Value]:
    """The elementwise operations that make up a side, or a part of what is joined there."""
    seen, pending = {id(side)}, [side]
    for current in pending:
        found = origin(current, selected=False)
        joins = has(found.op, Trait.JOINS)
        if (joins or is_elementwise(found)) and found.requires_grad:
            if not joins:
                yield found
            for source in found.inputs:
                if id(source) not in seen and len(seen) < MOST:
                    seen.add(id(source))
                    pending.append(source)


def _argument(operation: Value) -> Iterator[Value]:
    """The argument of an operation whose value decides whether it is defined."""
    name = canonical(operation.op)
    if name == "div":
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
        canonical(operation.op) != "div"
        or not isinstance(numerator, Value)
        or not numerator.requires_grad
    ):
        return False
    zeros = {key(part) for part in zero_with(divisor)}
    return not (passes_relu(numerator) and all(key(part) in zeros for part in zero_with(numerator)))


def _singular(operation: Value) -> tuple[float, ...]:
    name = canonical(operation.op)
    if name == "div":
        return _ZERO
    if name != "pow":
        return _POINTS.get(name, ())
    exponent = operation.argument(1, "exponent")
    if not isinstance(exponent, int | float) or isinstance(exponent, bool):
        return ()
    if exponent == int(exponent):
        return _ZERO if exponent < 0 else ()
    return _ROOTS if exponent < 1 else (-1.0,)
