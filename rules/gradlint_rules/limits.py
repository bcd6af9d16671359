"""Bounds of numbers: whether those of a tensor have one above, below, or on both sides."""

from __future__ import annotations

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value, ancestors
from gradlint_rules.numbers import DEPTH, origin, unchanged
from gradlint_rules.signs import is_never_negative

# what has a bound where all that it adds up, multiplies or joins has one
_SPREADS = (Trait.ADDS, Trait.SCALES, Trait.SUMS, Trait.MEANS, Trait.CONTRACTS, Trait.JOINS)


def written_bounds(value: Value) -> tuple[float, ...]:
    """The numbers between which the last operation keeps all of `value`, where they are written."""
    if canonical(value.op) != "clamp":
        return ()
    given = (value.argument(1, "min"), value.argument(2, "max"))
    return tuple(each for each in given if isinstance(each, int | float))


def is_within(value: Value, most: float) -> bool:
    """Whether an operation with a bound on both sides, and written factors, leave no number further
    from zero.
    """
    found, factor = origin(value, selected=False), 1.0
    for _ in range(DEPTH):
        name = canonical(found.op)
        if name == "clamp" or has(name, Trait.BOUNDED):
            return factor <= most
        numbers = [given for _, given in found.arguments if isinstance(given, int | float)]
        is_factor = name == "mul" or (name == "div" and found.argument(0) not in numbers)
        if not is_factor or len(found.inputs) != 1 or not numbers:
            return False
        factor *= abs(numbers[0]) if name == "mul" else 1 / abs(numbers[0] or 1)
        found = origin(found.inputs[0], selected=False)
    return False


def is_bounded(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` have a bound above by what computed them, as far as that is
    known.
    """
    found = origin(value, selected=False)
    name = canonical(found.op)
    if has(name, Trait.BOUNDED, Trait.BOUNDED_ABOVE) or not found.requires_grad:
        return True
    if name == "clamp":
        return found.argument(2, "max") is not None
    if name in ("clamp_max", "minimum"):
        return True
    if depth > DEPTH or not found.inputs:
        return False
    if _is_negated(found, name):
        return is_never_negative(found.inputs[0]) or is_bounded_below(found.inputs[0], depth + 1)
    if name == "sub" and len(found.inputs) == 2:
        term, subtracted = found.inputs
        if _is_extreme_of(subtracted, term):
            return True
    return _spreads(name) and all(is_bounded(source, depth + 1) for source in found.inputs)


def _spreads(name: str) -> bool:
    return has(name, *_SPREADS)


def is_of_small_ones(value: Value) -> bool:
    """Whether it is computed of elements that a mask has chosen for being small: `x[x < 30]`."""
    return any(_chooses_small(each) for each in ancestors(value))


def _chooses_small(selection: Value) -> bool:
    if canonical(selection.op) not in ("getitem", "masked_select") or len(selection.inputs) < 2:
        return False
    mask, is_turned = selection.inputs[1], False
    while has(mask.op, Trait.NEGATES) and mask.inputs:
        mask, is_turned = mask.inputs[0], not is_turned
    finds = Trait.FINDS_LARGER if is_turned else Trait.FINDS_SMALLER
    if not has(mask.op, finds) or not mask.inputs:
        return False
    chosen = origin(selection.inputs[0])
    return any(source is chosen for source in ancestors(mask.inputs[0]))


def _is_negated(value: Value, name: str) -> bool:
    """Whether its one input is turned round: `-x`, `x * -2`."""
    if name == "neg":
        return True
    numbers = [given for _, given in value.arguments if isinstance(given, int | float)]
    return name in ("mul", "div") and len(value.inputs) == 1 and bool(numbers) and numbers[0] < 0


def is_bounded_below(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` have a bound below by what computed them, as far as that is
    known.
    """
    found = origin(value, selected=False)
    name = canonical(found.op)
    if has(name, Trait.BOUNDED) or is_never_negative(found) or not found.requires_grad:
        return True
    if name == "clamp":
        return found.argument(1, "min") is not None
    spreads = _spreads(name) and depth <= DEPTH and bool(found.inputs)
    return spreads and all(is_bounded_below(source, depth + 1) for source in found.inputs)


def is_shift(value: Value, term: Value) -> bool:
    """Whether a term moves another to where it can be computed, and is no part of what is:
    `x - x.max()`.
    """
    moved = value.inputs[0]
    return canonical(value.op) == "sub" and term is not moved and _is_extreme_of(term, moved)


def _is_extreme_of(value: Value, of: Value) -> bool:
    """Whether it is the largest of something: `x - x.max()`."""
    return any(
        canonical(each.op) in ("max", "amax", "logsumexp", "output") for each in unchanged(value)
    ) and any(source is origin(of) for source in ancestors(value))
