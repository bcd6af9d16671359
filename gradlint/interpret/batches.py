"""Whether the batches of a matrix product lie side by side in memory, or are copied first.

`q @ k` of four axes joins the first two: `x.view(b, t, heads, -1).transpose(1, 2)` has none that
can be joined, so that torch 2.13 multiplies, and saves, a copy. One batch alone is left out of
account.
"""

from __future__ import annotations

import itertools

from gradlint.interpret.axes import rank
from gradlint.interpret.shapes import BY_ELEMENT
from gradlint.library import effects
from gradlint.tape import Value

_MATRIX = 2  # the axes that a matrix has
_DEEPEST = 12  # operations that are followed
_TRANSPOSED = frozenset(["t", "T", "H", "mT", "mH", "adjoint"])
_PIECES = frozenset(["unbind", "select"])  # of one axis, which is gone
_MOVING = frozenset(["permute", "transpose", "swapaxes", "__getitem__"])


def batches_lie_apart(value: Value) -> bool:
    """Whether the axes before those of the matrices surely cannot be joined without a copy."""
    axes = _axes(value, _DEEPEST)
    batches = axes[:-_MATRIX] if axes is not None else []
    return any(after != before + 1 for before, after in itertools.pairwise(batches))


def is_laid_as_queries(value: Value) -> bool:
    """Whether this is what a fused kernel of attention gives: it keeps its result, and lays it out
    as the queries are.
    """
    return effects.order(value.op) == "queries" and any(each.value is value for each in value.saves)


def order_in_memory(value: Value) -> list[int] | None:
    """The axes of a tensor, each by how many others lie outside of it in memory: what is laid out
    anew, and keeps the order of what it is given, has no others.
    """
    axes = _axes(value, _DEEPEST)
    return None if axes is None else [sorted(axes).index(axis) for axis in axes]


def _axes(value: Value, depth: int) -> list[int] | None:
    """The axes of a tensor, each by its number in what was laid out in order."""
    op = value.op.rpartition(".")[2]
    if depth and op in BY_ELEMENT:  # lays its result out as what it is given
        return _largest([_axes(source, depth - 1) for source in value.inputs])
    if depth and value.inputs and op in _MOVING | _TRANSPOSED | _PIECES:
        axes = _axes(value.inputs[0], depth - 1)
        return None if axes is None else _moved(value, op, axes)
    if depth and is_laid_as_queries(value):
        return _axes(value.inputs[0], depth - 1)
    count = rank(value)
    return None if count is None else list(range(count))


def _largest(given: list[list[int] | None]) -> list[int] | None:
    """The axes of what has most of them; None where two have them in another order."""
    known = [axes for axes in given if axes is not None]
    most = max(known, key=len, default=None)
    are_equal = all(axes == most for axes in known if most is not None and len(axes) == len(most))
    return most if are_equal else None


def _moved(value: Value, op: str, axes: list[int]) -> list[int] | None:
    """What an operation makes of these axes; None where that is not known."""
    if op == "permute":
        return _permuted(value, axes)
    if op in ("transpose", "swapaxes"):
        pair = value.argument(1, "dim0", "axis0"), value.argument(2, "dim1", "axis1")
        return _exchanged(axes, *pair)
    if op in _TRANSPOSED:
        return _exchanged(axes, -1, -2)
    if op in _PIECES:
        axis = value.argument(1, "dim")
        return _without(axes, 0 if axis is None else axis)
    if op == "__getitem__":
        return _without(axes, 0) if isinstance(value.argument(1), int) else None
    return axes


def _permuted(value: Value, axes: list[int]) -> list[int] | None:
    given = [each for place, each in value.arguments if place not in (0, "input")]
    order = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
    places = [place for place in order if isinstance(place, int)]
    if len(places) != len(axes) or any(not -len(axes) <= place < len(axes) for place in places):
        return None
    return [axes[place] for place in places]


def _exchanged(axes: list[int], first: object, second: object) -> list[int] | None:
    if not (isinstance(first, int) and isinstance(second, int)):
        return None
    if not all(-len(axes) <= each < len(axes) for each in (first, second)):
        return None
    found = list(axes)
    found[first], found[second] = axes[second], axes[first]
    return found


def _without(axes: list[int], axis: object) -> list[int] | None:
    if not isinstance(axis, int) or not -len(axes) <= axis < len(axes):
        return None
    place = axis % len(axes)
    return [*axes[:place], *axes[place + 1 :]]
