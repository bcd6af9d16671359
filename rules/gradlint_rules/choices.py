"""Choices between two values (`where`, `masked_fill`), and those of them that put infinity in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradlint.tape import Value
from gradlint_rules.numbers import (
    unchanged,
)
from gradlint_rules.words import bare

CHOICES = {"where", "masked_fill", "setitem", "nan_to_num"}
PRODUCTS = {"mul", "multiply"}
DIVISIONS = {"div", "divide", "true_divide"}
_EXTREMES = {"max", "min", "amax", "amin", "topk", "sort", "output"}  # which leave infinity out
_LEAVES_INFINITY = {*PRODUCTS, *DIVISIONS, "add", "sub", "neg", "cat", "stack", "concat"}
MOST = 40  # values of one side that are looked at


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
            found.inputs if (is_choice or name in _LEAVES_INFINITY) and len(pending) < MOST else ()
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
    return condition, bare(choice.op) == "where" and _is_infinite(other) and not _is_infinite(taken)


def is_scaling(value: Value) -> bool:
    """Whether it multiplies or divides element by element."""
    return bare(value.op) in PRODUCTS | DIVISIONS


def _is_infinite(given: object) -> bool:
    number = given.number if isinstance(given, Value) else given
    return isinstance(number, float) and math.isinf(number)


def condition_and_sides(choice: Value) -> tuple[object, object, object]:
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
