"""Choices between two values (`where`, `masked_fill`), and those of them that put infinity in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value
from gradlint_rules.numbers import (
    unchanged,
)

_LEAVES_INFINITY = (Trait.ADDS, Trait.SCALES, Trait.JOINS)  # where it was
MOST = 40  # values of one side that are looked at


def infinite(value: Value) -> Value | None:
    """The choice that puts infinity among the numbers of `value`, below what leaves it there."""
    return next(infinities(value), None)


def infinities(value: Value) -> Iterator[Value]:
    """The choices that put infinity among the numbers of `value`, below what leaves it there."""
    pending, seen = [value], {id(value)}
    for current in pending:
        shown = list(unchanged(current, selected=False))
        if any(map(_leaves_out_infinity, shown[:-1])):
            continue
        found, name = shown[-1], canonical(shown[-1].op)
        is_choice = has(name, Trait.CHOOSES) and any(
            _is_infinite(given) for _, given in found.arguments
        )
        if is_choice:
            yield found
        for source in (
            found.inputs
            if (is_choice or name == "neg" or has(name, *_LEAVES_INFINITY)) and len(pending) < MOST
            else ()
        ):
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def filled(choice: Value) -> tuple[Value | None, bool]:
    """The condition of a choice that puts infinity in, and whether it holds of what is left as it
    was.
    """
    condition, taken, other = condition_and_sides(choice)
    if not isinstance(condition, Value):
        return None, False
    return condition, canonical(choice.op) == "where" and _is_infinite(other) and not _is_infinite(
        taken
    )


def is_scaling(value: Value) -> bool:
    """Whether it multiplies or divides element by element."""
    return has(value.op, Trait.SCALES)


def _leaves_out_infinity(value: Value) -> bool:
    return canonical(value.op) == "output" or has(value.op, Trait.EXTREMES)


def _is_infinite(given: object) -> bool:
    number = given.number if isinstance(given, Value) else given
    return isinstance(number, float) and math.isinf(number)


def condition_and_sides(choice: Value) -> tuple[object, object, object]:
    """The condition of a choice, what is taken where it holds, and what is taken elsewhere."""
    name = canonical(choice.op)
    if not has(name, Trait.CHOOSES):
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
