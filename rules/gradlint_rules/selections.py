"""Means over what a mask selects.

error[valid].mean()                    # a mean of a selection
(error * valid).sum() / valid.sum()    # a masked sum, divided by the sum of the mask
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from gradlint.dataclass import dataclass
from gradlint.tape import DType, Value
from gradlint_rules.classes import members
from gradlint_rules.means import is_unreduced
from gradlint_rules.words import bare

SELECTS = {"getitem", "masked_select"}
RATIOS = {"div", "truediv", "true_divide", "divide"}
SAME = {
    "float",
    "to",
    "half",
    "double",
    "int",
    "long",
    "type",
    "type_as",
    "bfloat16",
    "unsqueeze",
    "squeeze",
    "view",
    "reshape",
    "flatten",
}
COUNTS = {"sum", "count_nonzero"}
_TURNS = {
    "unsqueeze",
    "squeeze",
    "view",
    "reshape",
    "flatten",
    "expand",
    "t",
    "T",
    "mT",
    "transpose",
    "contiguous",
}
SAME |= {"contiguous", "expand", "expand_as", "detach", "cpu", "cuda"} | COUNTS
_PARTS = {"split", "chunk", "narrow", "index_select", "gather", "unbind", "select"}
_FILLS = {"fill_diagonal", "fill"}
# a view: what was written to another of the same memory
_UNIONS = {"view", "or", "bitwise_or", "logical_or"}
PRODUCTS = {"mul", "multiply"}
# What these make of a selection can have elements although it has none:
_OTHER_SHAPE = {"sum", "mean", "cat", "stack", "where", "add", "grad"}
_OTHER_SHAPE |= {
    "setitem",
    "index_put",
    "index_add",
    "index_copy",
    "scatter",
    "scatter_add",
    "masked_scatter",
}
_MEANS = re.compile(r"(_loss|cross_entropy|_with_logits|kl_div|Loss)$")
_NAMES = re.compile(r"mask|valid|observed|keep|known|labell?ed|present|visible")
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
        if not _can_be_mean(value.op):
            continue
        if bare(value.op) in RATIOS and len(value.inputs) == 2:
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
        elif bare(value.op) == "mean" or (_MEANS.search(value.op) and not is_unreduced(value)):
            selection = _selection(value)
            if selection is not None and not _meets_itself(selection.inputs[1]):
                yield Mean(value, selection.inputs[1], selection, False)


@functools.lru_cache(maxsize=4096)
def _can_be_mean(op: str) -> bool:
    return bare(op) in RATIOS or bare(op) == "mean" or _MEANS.search(op) is not None


def _counted(denominator: Value) -> Value | None:
    """The mask whose sum this is, with nothing added to it."""
    value, summed = denominator, False
    for _ in range(_DEPTH):
        if summed and _is_mask(value):
            return value
        # nothing is selected where one factor selects nothing
        if summed and bare(value.op) in PRODUCTS:
            return next((mask for mask in map(_factor, value.inputs) if mask is not None), None)
        # of a mask: selects no more than the whole
        is_part = summed and bare(value.op) in _PARTS | SELECTS
        if not (is_part or bare(value.op) in SAME) or not value.inputs or _is_chosen_by_hand(value):
            return None
        summed = summed or bare(value.op) in COUNTS
        value = value.inputs[0]
    return None


def _factor(value: Value) -> Value | None:
    """The mask that a factor is, as numbers or not."""
    while not _is_mask(value):
        if bare(value.op) not in SAME - COUNTS or not value.inputs or _is_chosen_by_hand(value):
            return None
        value = value.inputs[0]
    return value


def _is_mask(value: Value) -> bool:
    if _is_chosen_by_hand(value):
        return False
    if value.dtype is DType.BOOL and bare(value.op) not in SAME:
        return True
    return (
        not value.inputs
        and not value.requires_grad
        and _NAMES.search(value.title.lower()) is not None
    )


def _is_chosen_by_hand(value: Value) -> bool:
    """Whether something is put in, `mask[0] = True`, `mask[:, 2:].fill_diagonal_(True)`, whatever
    else is chosen.
    """
    if bare(value.op) in _FILLS:
        return bool(value.argument(1, "value", "fill_value"))
    sources = value.inputs if bare(value.op) in _UNIONS else ()
    return bare(value.op) == "setitem" or any(map(_is_chosen_by_hand, sources))


def _meets_itself(mask: Value) -> bool:
    """Whether it compares a tensor with itself turned round, and holds on the diagonal:
    `y[:, None] == y[None, :]`.
    """
    left, right = mask.argument(0), mask.argument(1, "other")
    if (
        bare(mask.op) not in ("eq", "ge", "le")
        or not isinstance(left, Value)
        or not isinstance(right, Value)
    ):
        return False
    return left is not right and _unturned(left) is _unturned(right)  # `x == x` asks for NaN


def _unturned(value: Value) -> Value:
    """What has the same elements in the same order, or with its axes exchanged."""
    while value.inputs and (bare(value.op) in _TURNS or "reshaping" in value.flags):
        value = value.inputs[0]
    return value


def _comes_from_sum(value: Value) -> bool:
    return bare(unsigned(value).op) == "sum" and value.requires_grad


def unsigned(value: Value) -> Value:
    """What `-x` is the negative of."""
    while bare(value.op) in ("neg", "negative") and value.inputs:
        value = value.inputs[0]
    return value


def _selection(mean: Value) -> Value | None:
    """What a mask selects, of which a mean is taken."""
    value = mean
    for _ in range(_DEPTH):
        if bare(value.op) in SELECTS and len(value.inputs) > 1 and _is_mask(value.inputs[1]):
            return value if value.at != mean.at else None
        if value is not mean and bare(value.op) in _OTHER_SHAPE:
            return None
        sources = [source for source in value.inputs if source.requires_grad]
        if not sources:
            return None
        value = sources[0]
    return None
