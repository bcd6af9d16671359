"""Which values are known to be single numbers: what is reduced over all its dimensions, and what is
made of such.
"""

from __future__ import annotations

from collections.abc import Collection

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value

# which make one number of each number, and leave the shape as it is
_BY_ELEMENT = (Trait.POINTWISE, Trait.CASTS, Trait.COPIES)
_AS_IT_IS = ("scale", "squeeze", "contiguous", "nan_to_num")


def is_scalar(value: Value, known: Collection[int] = ()) -> bool:
    """Whether a value is surely a single number; `known` are the ids of values that are."""
    seen, pending = {id(value)}, [value]
    for current in pending:
        if id(current) in known or _is_reduced(current):
            continue
        sources = [source for source in current.inputs if source.requires_grad]
        name = canonical(current.op)
        if not (name in _AS_IT_IS or has(name, *_BY_ELEMENT)) or not sources:
            return False
        for source in sources:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return True


def _is_reduced(value: Value) -> bool:
    """Whether an operation reduces over all dimensions: it is given none of them, nor a second
    tensor.
    """
    if not has(value.op, Trait.REDUCES, Trait.PAIRS):
        return False
    axis = 2 if canonical(value.op) == "norm" or has(value.op, Trait.PAIRS) else 1
    return value.argument(axis, "dim", "axis", "other") is None
