"""Means over what a mask selects.

error[valid].mean()                    # a mean of a selection
(error * valid).sum() / valid.sum()    # a masked sum, divided by the sum of the mask
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradlint import evidence
from gradlint.dataclass import dataclass
from gradlint.operations import Trait, canonical, has
from gradlint.tape import DType, Value
from gradlint_rules.classes import members
from gradlint_rules.means import is_unreduced

# of a mask: as numbers, or in another shape
_SHAPED = (
    "unsqueeze",
    "squeeze",
    "view",
    "reshape",
    "flatten",
    "contiguous",
    "expand",
    "expand_as",
)
_TURNED = (*_SHAPED, "t", "T", "mT", "transpose")
_PARTS = ("getitem", "masked_select", "narrow", "index_select", "gather", "select")
# what these make of a selection can have elements although it has none
_OTHER_SHAPE = ("sum", "mean", "cat", "stack", "where", "add", "grad")
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean on the way to a loss: of what a mask selects, or a masked sum divided by the mask's
    own sum.
    """

    value: Value
    mask: Value
    selection: Value  # the quotient, or what the mask selects
    is_ratio: bool


def empty_means(values: Iterable[Value]) -> Iterator[Mean]:
    """The means among values, each with the mask that decides of what."""
    for value in values:
        if not (canonical(value.op) in ("div", "mean") or has(value.op, Trait.LOSSES)):
            continue
        if canonical(value.op) == "div" and len(value.inputs) == 2:
            mask = _counted(value.inputs[1]) or members(value.inputs[1])
            # else a library does it all, with guards of its own
            is_shown = value.inputs[1].at != value.at
            if (
                mask is not None
                and _comes_from_sum(value.inputs[0])
                and is_shown
                and not _meets_itself(mask)
            ):
                yield Mean(value, mask, value, True)
        elif canonical(value.op) == "mean" or (
            has(value.op, Trait.LOSSES) and not is_unreduced(value)
        ):
            selection = _selection(value)
            if selection is not None and not _meets_itself(selection.inputs[1]):
                yield Mean(value, selection.inputs[1], selection, False)


def is_selection(value: Value) -> bool:
    """Whether it is what an index or a mask takes of a tensor: `x[mask]`."""
    return canonical(value.op) in ("getitem", "masked_select")


def is_same(value: Value) -> bool:
    """Whether it shows the numbers of a tensor in another dtype or shape."""
    name = canonical(value.op)
    is_cast = has(name, Trait.CASTS, Trait.TO_INTEGERS) and name != "bool"  # which makes a mask
    return is_cast or name in (*_SHAPED, "detach")


def _counts(value: Value) -> bool:
    return canonical(value.op) in ("sum", "count_nonzero")


def _has_other_shape(value: Value) -> bool:
    return canonical(value.op) in _OTHER_SHAPE or has(value.op, Trait.WRITES_PART)


def _counted(denominator: Value) -> Value | None:
    """The mask whose sum this is, with nothing added to it."""
    value, summed = denominator, False
    for _ in range(_DEPTH):
        if summed and _is_mask(value):
            return value
        # nothing is selected where one factor selects nothing
        if summed and canonical(value.op) == "mul":
            return next((mask for mask in map(_factor, value.inputs) if mask is not None), None)
        # of a mask: selects no more than the whole
        is_part = summed and (
            canonical(value.op) in _PARTS or has(value.op, Trait.SPLITS, Trait.UNBINDS)
        )
        if (
            not (is_part or _counts(value) or is_same(value))
            or not value.inputs
            or _is_chosen_by_hand(value)
        ):
            return None
        summed = summed or _counts(value)
        value = value.inputs[0]
    return None


def _factor(value: Value) -> Value | None:
    """The mask that a factor is, as numbers or not."""
    while not _is_mask(value):
        if not is_same(value) or not value.inputs or _is_chosen_by_hand(value):
            return None
        value = value.inputs[0]
    return value


def _is_mask(value: Value) -> bool:
    if _is_chosen_by_hand(value):
        return False
    if value.dtype is DType.BOOL and not (is_same(value) or _counts(value)):
        return True
    return not value.inputs and not value.requires_grad and evidence.is_chosen(value.title)


def _is_chosen_by_hand(value: Value) -> bool:
    """Whether something is put in, `mask[0] = True`, `mask[:, 2:].fill_diagonal_(True)`, whatever
    else is chosen.
    """
    if canonical(value.op) in ("fill_diagonal", "fill"):
        return bool(value.argument(1, "value", "fill_value"))
    # a view: what was written to another of the same memory
    is_union = canonical(value.op) == "view" or has(value.op, Trait.HOLDS_EITHER)
    sources = value.inputs if is_union else ()
    return canonical(value.op) == "setitem" or any(map(_is_chosen_by_hand, sources))


def _meets_itself(mask: Value) -> bool:
    """Whether it compares a tensor with itself turned round, and holds on the diagonal:
    `y[:, None] == y[None, :]`.
    """
    left, right = mask.argument(0), mask.argument(1, "other")
    if (
        canonical(mask.op) not in ("eq", "ge", "le")
        or not isinstance(left, Value)
        or not isinstance(right, Value)
    ):
        return False
    return left is not right and _unturned(left) is _unturned(right)  # `x == x` asks for NaN


def _unturned(value: Value) -> Value:
    """What has the same elements in the same order, or with its axes exchanged."""
    while value.inputs and (canonical(value.op) in _TURNED or "reshaping" in value.flags):
        value = value.inputs[0]
    return value


def _comes_from_sum(value: Value) -> bool:
    return canonical(unsigned(value).op) == "sum" and value.requires_grad


def unsigned(value: Value) -> Value:
    """What `-x` is the negative of."""
    while canonical(value.op) == "neg" and value.inputs:
        value = value.inputs[0]
    return value


def _selection(mean: Value) -> Value | None:
    """What a mask selects, of which a mean is taken."""
    value = mean
    for _ in range(_DEPTH):
        if is_selection(value) and len(value.inputs) > 1 and _is_mask(value.inputs[1]):
            return value if value.at != mean.at else None
        if value is not mean and _has_other_shape(value):
            return None
        sources = [source for source in value.inputs if source.requires_grad]
        if not sources:
            return None
        value = sources[0]
    return None
