"""How tensors lie in memory: how many axes they have."""

from __future__ import annotations

from gradlint.interpret.shapes import BY_ELEMENT, FRESH
from gradlint.interpret.values import Symbol
from gradlint.tape import Value

_DEEPEST = 24  # operations that are followed
_KEPT = frozenset(["chunk", "contiguous", "dropout", "flip", "linear", "Linear", "softmax", "split", "transpose"])
_SHAPED = frozenset(["view", "reshape", "expand", "permute"])  # what they are given says how many axes come out


def rank(value: Value, depth: int = _DEEPEST) -> int | None:
    """How many axes a tensor has, where the program says so: `q.view(b, t, heads, -1).transpose(1, 2)`."""
    op = value.op.rpartition(".")[2]
    given = [each for place, each in value.arguments if isinstance(place, int) and place > 0]
    if op in FRESH:
        return _counted([each for place, each in value.arguments if isinstance(place, int)])
    if op in _SHAPED:
        return _counted(given)
    source = value.argument(0) if value.arguments else next(iter(value.inputs), None)
    if depth == 0 or not isinstance(source, Value):
        return None
    known = rank(source, depth - 1)
    if known is None:
        return None
    if op == "unsqueeze":
        return known + 1
    keeps = op in _KEPT or (op in BY_ELEMENT and len(value.inputs) == 1)
    return known if keeps else None


def _counted(sizes: list[object]) -> int | None:
    """How many sizes these are: one that is not known can be a tuple of them."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        return len(sizes[0])
    are_sizes = len(sizes) > 1 or all(isinstance(size, int) for size in sizes)
    return len(sizes) if are_sizes and all(isinstance(size, int | Symbol) for size in sizes) else None
