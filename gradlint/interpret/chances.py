"""The chance that a mask selects nothing, where the program draws or writes down what the mask is
made of.

`torch.rand(40, 50) < 0.5` holds somewhere; `torch.randn(8) > 3` mostly nowhere; `mask[9] = False`
empties a row. Of data from elsewhere nothing is known, and elements are taken to be drawn each by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret.shapes import Shape, shape
from gradlint.interpret.spreads import Spread, is_row, plain_name, shows_input, spread_of
from gradlint.tape import DType, Fact, Value, ancestors

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_DEEPEST = 24  # operations that are followed
_SURE = 1e-9  # a chance that is as good as none
_LIKELY = 5e-2  # one that some batch of a training meets


@dataclass(frozen=True, slots=True)
class Share:
    """How many elements of a mask are true: a part of them, or at most that where it is not
    `exact`.
    """

    part: float
    exact: bool = True
    drawn: bool = True  # each by itself; else the same ones every time
    emptied: bool = False  # a row of it was set to nothing
    held: bool = False  # the first element of each row is true: positions below a length


def note(m: Machine, value: Value, chance: float | None) -> None:
    """Writes down of a quotient or a selection whether the mask behind it is ever empty, by what is
    seen.
    """
    if chance is not None and (chance < _SURE or chance >= _LIKELY):
        detail = "seen" if chance >= _LIKELY else "never"
        m.emit(
            Fact(at=value.at, what="empty-selection", value=value, detail=detail, text=value.text)
        )


def of_none(count: Value) -> float | None:
    """The chance that a count, the sum of a mask, is zero somewhere; None where the program does
    not show it.
    """
    summed, depth = count, 0
    while shows_input(summed) and depth < _DEEPEST:
        summed, depth = summed.inputs[0], depth + 1
    if plain_name(summed) not in ("sum", "count_nonzero") or not summed.inputs:
        return None
    return _of_none(summed.inputs[0], summed.argument(1, "dim", "axis"))


def of_nothing(mask: Value) -> float | None:
    """The chance that a mask is false everywhere."""
    return _of_none(mask, None)


def _of_none(mask: Value, axes: object) -> float | None:
    share = _share(mask, _DEEPEST)
    if share is None:
        return None
    if share.emptied and _is_by_row(mask, axes):
        return 1.0
    if share.held:
        return 0.0 if axes is None or _is_by_row(mask, axes) else None
    if share.part == 0:
        return 1.0
    if not share.drawn:
        return 0.0 if share.exact and axes is None else None
    number = _summed(shape(mask), axes)
    if number is None:
        return None
    chance = (1 - min(share.part, 1.0)) ** number
    return chance if share.exact or chance > _SURE else None


def _is_by_row(mask: Value, axes: object) -> bool:
    """Whether rows are summed by themselves: `mask.sum(1)`."""
    sizes = shape(mask) if axes is not None else None
    given = axes if isinstance(axes, tuple) else (axes,)
    first = {0} if sizes is None else {0, -len(sizes)}
    return all(
        isinstance(axis, int) and axis not in first and (axis > 0 or sizes is not None)
        for axis in given
    )


def _summed(sizes: Shape | None, axes: object) -> int | None:
    """How many elements are summed into one."""
    if sizes is None:
        return None
    given = range(len(sizes)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    found = [
        sizes[axis] for axis in given if isinstance(axis, int) and -len(sizes) <= axis < len(sizes)
    ]
    known = [size for size in found if isinstance(size, int)]
    return math.prod(known) if len(known) == len(found) > 0 else None


_NEGATIONS = frozenset(["bitwise_not", "logical_not", "invert"])
_BOTH, _EITHER = (
    frozenset(["bitwise_and", "logical_and", "mul"]),
    frozenset(["bitwise_or", "logical_or"]),
)
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _share(mask: Value, depth: int) -> Share | None:
    """The share of a mask's elements that are true."""
    name = plain_name(mask)
    if depth == 0:
        return None
    if isinstance(mask.number, int | float) and not mask.inputs:
        # zeros are there to be written over
        return Share(1.0, drawn=False) if mask.number != 0 else None
    if shows_input(mask):
        return _share(mask.inputs[0], depth - 1)
    if name in _NEGATIONS:
        inner = _share(mask.inputs[0], depth - 1)
        return (
            Share(1 - inner.part, True, inner.drawn) if inner is not None and inner.exact else None
        )
    if name in _BOTH:
        return _both(mask.inputs, depth - 1)
    if name in _EITHER:
        return _either(mask.inputs, depth - 1)
    if name == "setitem":
        return _written(mask, depth)
    if name == "bernoulli":
        return _tossed(mask)
    return _compared(mask, name, depth) if name in _TURNED else _not_zero(mask, depth)


def _tossed(mask: Value) -> Share | None:
    """Of `torch.bernoulli(torch.full((4, 8), 0.2))`, `x.bernoulli_(0.2)`."""
    given = mask.argument(1, "p")
    chance = mask.inputs[0].number if given is None and mask.inputs else given
    return Share(float(chance)) if isinstance(chance, int | float) else None


def _not_zero(number: Value, depth: int) -> Share | None:
    """Of numbers that are taken for truths: `torch.randint(0, 2, (8,)).bool()`."""
    spread = spread_of(number, depth - 1)
    return (
        None
        if spread is None
        else Share(_PARTS["ne"](spread, 0.0), not spread.written, spread.drawn)
    )


def _both(masks: tuple[Value, ...] | list[Value], depth: int) -> Share | None:
    known = [share for mask in masks if (share := _share(mask, depth)) is not None]
    if not known:
        return None
    exact = len(known) == len(masks) and all(share.exact for share in known) and _are_apart(masks)
    emptied = any(share.emptied for share in known)
    return Share(
        math.prod(share.part for share in known),
        exact,
        any(share.drawn for share in known),
        emptied,
    )


def _either(masks: tuple[Value, ...], depth: int) -> Share | None:
    known = [share for mask in masks if (share := _share(mask, depth)) is not None and share.exact]
    if len(known) < len(masks) or not _are_apart(masks):
        return None
    return Share(
        1 - math.prod(1 - share.part for share in known), True, any(share.drawn for share in known)
    )


def _are_apart(masks: tuple[Value, ...] | list[Value]) -> bool:
    """Whether masks are made of different tensors: `x < 1` and `x > 2` hang together."""
    leaves = [id(value) for mask in masks for value in ancestors(mask) if not value.inputs]
    return len(leaves) == len(set(leaves))


def _written(mask: Value, depth: int) -> Share | None:
    """Of a mask that something was written into: `mask[9] = False`."""
    before, number = _share(mask.inputs[0], depth - 1), mask.argument(2)
    if (
        before is None
        or not isinstance(number, int | float)
        or number != 0
        or not is_row(mask.argument(1))
    ):
        return None
    return Share(before.part, False, before.drawn, True)


def _compared(test: Value, name: str, depth: int) -> Share | None:
    """Of a comparison with a number."""
    left, right = test.argument(0), test.argument(1, "other")
    if not isinstance(left, Value):
        left, right, name = right, left, _TURNED[name]
    if not isinstance(left, Value):
        return None
    if right is left:
        return _with_itself(left, name, depth)
    if isinstance(right, Value):
        return _positions(left, right, name, depth) or _positions(right, left, _TURNED[name], depth)
    if not isinstance(right, int | float):
        return None
    spread = spread_of(left, depth - 1)
    if spread is None:
        factor = _factor(left, depth - 1) if _misses_zero(name, right) else None
        return None if factor is None else Share(factor.part, False, factor.drawn, factor.emptied)
    emptied = any(not _HOLDS[name](each, right) for each in spread.written)
    return Share(_PARTS[name](spread, float(right)), not spread.written, spread.drawn, emptied)


_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a,
    b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
_PARTS: dict[str, Callable[[Spread, float], float]] = {
    "lt": lambda spread, c: spread.below(c), "le": lambda spread, c: spread.up_to(c),
    "gt": lambda spread, c: 1 - spread.up_to(c), "ge": lambda spread, c: 1 - spread.below(c),
    "eq": lambda spread, c: spread.up_to(c) - spread.below(c),
    "ne": lambda spread, c: 1 - spread.up_to(c) + spread.below(c),
}  # fmt: skip


def _positions(counted: Value, lengths: Value, name: str, depth: int) -> Share | None:
    """`torch.arange(12) < lengths`, where no length is zero."""
    while shows_input(counted) and depth:
        counted, depth = counted.inputs[0], depth - 1
    first = 0 if counted.argument(1, "end") is None else counted.argument(0, "start")
    spread = (
        spread_of(lengths, depth)
        if plain_name(counted) == "arange" and name in ("lt", "le")
        else None
    )
    if spread is None or not isinstance(first, int) or spread.written:
        return None
    missed = spread.up_to(first) if name == "lt" else spread.below(first)
    return Share(1.0, exact=False, held=True) if missed == 0 else None


def _with_itself(value: Value, name: str, depth: int) -> Share | None:
    """`table == table`, which is false of what was set to NaN."""
    is_emptied = name == "eq" and any(math.isnan(number) for number in _rows(value, depth))
    return Share(1.0, False, True, True) if is_emptied else None


def _rows(value: Value, depth: int) -> Iterator[float]:
    """What rows of a tensor were set to."""
    while depth and (shows_input(value) or plain_name(value) == "setitem"):
        number = value.argument(2)
        if (
            plain_name(value) == "setitem"
            and isinstance(number, int | float)
            and is_row(value.argument(1))
        ):
            yield number
        value, depth = value.inputs[0], depth - 1


def _misses_zero(name: str, bound: float) -> bool:
    """Whether a comparison is false of zero."""
    return not _HOLDS[name](0, bound)


def _factor(product: Value, depth: int) -> Share | None:
    """The share of a product's elements that a mask among its factors leaves: `depth * reached`."""
    while shows_input(product) and depth:
        product, depth = product.inputs[0], depth - 1
    if plain_name(product) != "mul" or depth == 0:
        return None
    masks = [each for each in product.inputs if each.dtype is DType.BOOL]
    return _both(masks, depth - 1) if masks else None
