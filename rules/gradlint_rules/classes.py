"""Labels in the form of one column for each class, and how many have each."""

from __future__ import annotations

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value

_DEPTH = 8


def members(count: Value) -> Value | None:
    """The one-hot labels whose members this counts class by class, with nothing added to it: a
    class can have none.
    """
    value, axes, order = count, set[int](), list[int]()
    for _ in range(_DEPTH):
        name = canonical(value.op)
        if name == "one_hot":
            return value if axes and not _has_classes(axes, order) else None
        if name == "sum" and not axes and not order:
            axes = _axes(value.argument(1, "dim"))
        elif name == "permute" and axes and not order:
            order = [axis for _, axis in value.arguments[1:] if isinstance(axis, int)]
        elif name not in ("detach", "contiguous") and not has(name, Trait.CASTS):
            return None
        if not value.inputs:
            return None
        value = value.inputs[0]
    return None


def _axes(given: object) -> set[int]:
    """The axes that a sum is taken along; none where that is not known, or it is of all."""
    found = given if isinstance(given, tuple | list) else (given,)
    return {axis for axis in found if isinstance(axis, int)} if None not in found else set()


def _has_classes(axes: set[int], order: list[int]) -> bool:
    """Whether the axis of the classes, the last before the axes were put in order, is one of
    these; the second and later may be, where nothing says how many there are.
    """
    if not order:
        return not axes <= {0, -2, -3, -4}
    last = len(order) - 1
    place = next((at for at, axis in enumerate(order) if axis in (last, -1)), 0)
    return place in {axis % len(order) for axis in axes}
