"""What a value is where another, which is computed from it with numbers alone, is known:
`x` is 1 where `x**2 - 1` is 0.
"""

from __future__ import annotations

import math

from gradlint.operations import canonical
from gradlint.tape import Value
from gradlint_rules.numbers import key, origin

_MOST_STEPS = 4
_Number = int | float


def preimage(value: Value, computed: Value, result: float) -> float | None:
    """What `value` is where `computed` is `result`: the larger of two; None where nothing says
    so.
    """
    wanted = key(value)
    for _ in range(_MOST_STEPS):
        found = origin(computed, selected=False)
        before = _undone(found, result)
        if before is None:
            return None
        computed, result = before
        if key(computed) == wanted:
            return result
    return None


def _undone(found: Value, result: float) -> tuple[Value, float] | None:
    """What one operation was given, and what that is where it gives `result`."""
    left, right = found.argument(0), found.argument(1, "other", "exponent")
    name = canonical(found.op)
    if isinstance(left, Value) and isinstance(right, _Number):
        before = _with_number_behind(name, right, result)
        return None if before is None else (left, before)
    if isinstance(left, _Number) and isinstance(right, Value):
        before = _with_number_before(name, left, result)
        return None if before is None else (right, before)
    if isinstance(left, Value) and right is None:
        before = _alone(name, result)
        return None if before is None else (left, before)
    return None


def _with_number_behind(name: str, number: _Number, result: float) -> float | None:
    """`x - 1`, `x * 2`, `x / 2`, `x ** 2`."""
    if name == "add":
        return result - number
    if name == "sub":
        return result + number
    if name == "mul" and number != 0:
        return result / number
    if name == "div":
        return result * number
    return math.sqrt(result) if name == "pow" and number == 2 and result >= 0 else None


def _with_number_before(name: str, number: _Number, result: float) -> float | None:
    """`1 - x`, `1 + x`, `2 * x`, `1 / x`."""
    if name == "add":
        return result - number
    if name == "sub":
        return number - result
    if name == "mul" and number != 0:
        return result / number
    return number / result if name == "div" and result != 0 else None


def _alone(name: str, result: float) -> float | None:
    """`-x`, `x.square()`, `x.sqrt()`."""
    if name == "neg":
        return -result
    if name == "square" and result >= 0:
        return math.sqrt(result)
    return result**2 if name == "sqrt" and result >= 0 else None
