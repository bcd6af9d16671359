"""How many axes a tensor has, where the program says so."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.interpret.shapes import BY_ELEMENT, FRESH
from gradlint.interpret.symbols import Symbol
from gradlint.tape import Value

_DEEPEST = 24  # operations that are followed
_KEPT = frozenset(
    ["chunk", "contiguous", "dropout", "flip", "linear", "Linear", "softmax", "split", "transpose"]
)
_KEPT |= {
    "rand_like",
    "randn_like",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "randint_like",
}
_KEPT |= {"scaled_dot_product_attention"}  # of its queries
_KEPT |= {"t"}
_OF_PLACES = frozenset(["nonzero", "argwhere"])  # a row for each place, with an item for each axis
_PIECES = frozenset(["unbind", "select"])  # of one axis, which is gone
# what they are given says how many axes come out
_SHAPED = frozenset(["view", "reshape", "expand", "permute"])


def rank(value: Value, depth: int = _DEEPEST) -> int | None:
    """How many axes a tensor has, where the program says so:
    `q.view(b, t, heads, -1).transpose(1, 2)`.
    """
    op = value.op.rpartition(".")[2]
    by_place = [(place, each) for place, each in value.arguments if isinstance(place, int)]
    if op in FRESH:
        return _counted([each for _, each in by_place])
    if op in _SHAPED:
        return _counted([each for place, each in by_place if place > 0])
    if op in _OF_PLACES:
        return None if value.argument("as_tuple") else 2
    if op == "arange":
        return 1
    if depth == 0:
        return None
    if op == "__getitem__":
        return _taken(value, depth)
    if op == "lerp":  # the weight, which comes last, is taken to have no more axes than the others
        return _most_axes(value.inputs[:2], depth)
    if op in BY_ELEMENT:
        return _most_axes(value.inputs, depth)
    source = value.argument(0, "input") if value.arguments else next(iter(value.inputs), None)
    change = 1 if op == "unsqueeze" else -1 if op in _PIECES else 0 if op in _KEPT else None
    if not isinstance(source, Value) or change is None:
        return None
    of_source = rank(source, depth - 1)
    return None if of_source is None else of_source + change


def _taken(value: Value, depth: int) -> int | None:
    """How many axes are left where integers and slices are taken: `places[0]`, `rows[:, 1:]`."""
    source, index = value.argument(0), value.argument(1)
    parts = index if isinstance(index, tuple) else (index,)
    if not isinstance(source, Value) or not all(type(part) in (int, slice) for part in parts):
        return None
    of_source = rank(source, depth - 1)
    return None if of_source is None else of_source - sum(type(part) is int for part in parts)


def _most_axes(values: Sequence[Value], depth: int) -> int | None:
    """How many axes the broadcast of several tensors has: as many as the one with most."""
    known = [rank(value, depth - 1) for value in values]
    if None in known:
        return None
    return max((each for each in known if each is not None), default=None)


def _counted(sizes: list[object]) -> int | None:
    """How many sizes these are: one that is not known can be a tuple of them; none are written down
    in another way.
    """
    if not sizes:
        return None
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        return len(sizes[0])
    are_sizes = len(sizes) > 1 or all(isinstance(size, int) for size in sizes)
    return (
        len(sizes) if are_sizes and all(isinstance(size, int | Symbol) for size in sizes) else None
    )
