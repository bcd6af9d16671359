"""Which part of a memory a tensor covers, by the indices that lead to it: `ring[0]` and `ring[1:]`
have nothing in common.
"""

from __future__ import annotations

from gradlint.operations import canonical
from gradlint.tape.values import AS_GIVEN, Value

# the indices by which a part is taken, the first of them of the whole memory
Extent = tuple[object, ...]

_SHOWS_ALL = frozenset(["data", "detach", "setitem"])


def extent(value: Value) -> Extent:
    """The indices that lead from the whole of a memory to a tensor, as far as they are known."""
    found: Extent = ()
    while (shown := _shown(value)) is not None:
        op = canonical(value.op)
        if op == "getitem":
            found = (value.argument(1), *found)
        elif op not in _SHOWS_ALL and AS_GIVEN not in value.flags:
            found = ()  # of another shape, where indices mean other elements
        value = shown
    return found


def _shown(value: Value) -> Value | None:
    """The tensor that a view shows, or that was written in place."""
    return next((each for each in value.inputs if each.storage is value.storage), None)


def are_apart(one: Extent, other: Extent) -> bool:
    """Whether two parts of one memory have no element in common; False where that is not known."""
    for left, right in zip(one, other, strict=False):
        if _are_apart(left, right):
            return True
        if not _is_same(left, right):
            return False
    return False


def _is_same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _are_apart(left: object, right: object) -> bool:
    """Whether two indices of one tensor choose different elements along one of its axes."""
    left_head, left_tail = _along_axes(left)
    right_head, right_tail = _along_axes(right)
    heads = zip(left_head, right_head, strict=False)
    tails = zip(left_tail[::-1], right_tail[::-1], strict=False)
    return any(_choose_apart(*pair) for pair in (*heads, *tails))


def _along_axes(index: object) -> tuple[Extent, Extent]:
    """What an index chooses along the first axes, and along the last ones: `x[..., :2]`."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(part, int | slice) and part is not ... for part in parts):
        return (), ()  # what adds an axis, or chooses by a tensor or something unknown
    if ... not in parts:
        return parts, ()
    place = parts.index(...)
    return parts[:place], parts[place + 1 :]


def _choose_apart(left: object, right: object) -> bool:
    one, other = _range(left), _range(right)
    return one is not None and other is not None and (one[1] <= other[0] or other[1] <= one[0])


def _range(part: object) -> tuple[float, float] | None:
    """The places that are chosen, the first of them and the one behind the last; None where they
    are counted from the end.
    """
    if isinstance(part, slice):
        start, stop = part.start or 0, float("inf") if part.stop is None else part.stop
    else:
        start, stop = part, part
    if not isinstance(start, int) or not isinstance(stop, int | float) or min(start, stop) < 0:
        return None
    is_forward = not isinstance(part, slice) or part.step is None or part.step > 0
    return (start, stop if isinstance(part, slice) else start + 1) if is_forward else None
