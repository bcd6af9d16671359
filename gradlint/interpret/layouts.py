"""How tensors lie in memory: how many axes they have, and whether their elements lie in the order
of these.

What an operation does to the order is measured (`[order]` in `library/torch/composites.toml`). Of
what comes from outside nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradlint.interpret.axes import rank
from gradlint.interpret.batches import is_laid_as_queries, order_in_memory
from gradlint.interpret.symbols import Symbol
from gradlint.library.effects import lookup, order
from gradlint.library.layer_effects import layer
from gradlint.tape import Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

RELAID = "relaid"  # on a parameter that was given another order in memory
_DEEPEST = 24  # operations that are followed
_HEADS = frozenset({1, 2})  # the axes of heads and positions


def is_in_order(m: Machine, value: Value, depth: int = _DEEPEST) -> bool:
    """Whether the elements of a tensor surely lie in memory in the order of its axes: torch's
    `is_contiguous()`.
    """
    swapped: list[object] = []  # the pairs of axes that are still exchanged
    while depth > 0 and value.inputs and value.inputs[0].storage is value.storage:
        depth -= 1
        kind = _order(value.op) if _is_view(value) else "same"
        if kind == "swaps":
            axes = _swapped(value)
            if swapped and swapped[-1] == axes:
                swapped.pop()
            else:
                swapped.append(axes)
        elif kind != "same" and (swapped or not _keeps_order(value, kind)):
            return False
        value = value.inputs[0]
    if depth > 0 and is_laid_as_queries(value):
        laid = order_in_memory(value)
        return laid == ([0, 2, 1, 3] if swapped == [_HEADS] else [0, 1, 2, 3]) and len(swapped) < 2
    return not swapped and depth > 0 and _is_made_in_order(m, value, depth)


def lie_apart(value: Value) -> bool:
    """Whether the axes of a tensor before its last one surely cannot be joined without a copy, as
    in `x[:, i]` of four axes: the batches lie apart.

    One that is a single element along its first axis is left out of account.
    """
    if not (value.inputs and value.inputs[0].storage is value.storage and _is_view(value)):
        return False
    if value.op == "torch.Tensor.__getitem__":
        return "reshaping" not in value.flags and _takes_between(value)
    if is_laid_as_queries(value.inputs[0]) or value.op.rpartition(".")[2] == "permute":
        return False
    axes = (value.argument(1, "dim0", "axis0"), value.argument(2, "dim1", "axis1"))
    whole = rank(value.inputs[0])
    return _order(value.op) == "swaps" and (
        any(isinstance(axis, int) and axis > 1 for axis in axes) or (whole or 0) > 2
    )


def _takes_between(value: Value) -> bool:
    """Whether indexing takes elements from between others, along an axis that has one before it and
    one between it and the last.
    """
    index = value.argument(1)
    if not isinstance(index, tuple) or any(each is None or each is ... for each in index):
        return False
    chosen = next((place for place, each in enumerate(index) if each != slice(None)), None)
    if not chosen:
        return False
    axes = max(len(index), rank(value.inputs[0]) or 0)
    return axes - chosen > (1 if isinstance(index[chosen], slice) else 2)


def _order(op: str) -> str:
    """What the table says of an operation, or of the function that a layer applies."""
    short = op.removesuffix(".output")
    of_layer = layer(short) if short.startswith("torch.nn.") and not order(short) else None
    return order(of_layer.function if of_layer is not None else short)


def _is_view(value: Value) -> bool:
    """Whether it shows another tensor; what was written in place is that tensor still."""
    effect = lookup(value.op)
    known = effect is not None and not effect.in_place and bool(effect.view)
    return (
        known
        or value.op == "torch.Tensor.__getitem__"
        or _order(value.op) in ("views", "first", "swaps")
    )


def _swapped(value: Value) -> object:
    """Which axes a view exchanges: the pair that it is given, or the last two."""
    if value.op.rpartition(".")[2] == "permute":
        return _exchanged_by(_permutation(value))
    first, second = value.argument(1, "dim0", "axis0"), value.argument(2, "dim1", "axis1")
    if isinstance(first, int) and isinstance(second, int):
        return "last" if {first, second} == {-1, -2} else frozenset({first, second})
    return (
        "last"
        if value.op.rpartition(".")[2] in ("t", "T", "H", "mT", "mH", "adjoint")
        else object()
    )


def _permutation(value: Value) -> list[object]:
    """What `permute` is given: several axes, or one tuple of them."""
    given = [each for place, each in value.arguments if place not in (0, "input")]
    return list(given[0]) if len(given) == 1 and isinstance(given[0], tuple) else given


def _exchanged_by(axes: Sequence[object]) -> object:
    """The one pair that a permutation exchanges: `x.permute(0, 2, 1, 3)`."""
    moved = {place: axis for place, axis in enumerate(axes) if axis != place}
    return frozenset(moved) if len(moved) == 2 and set(moved) == set(moved.values()) else object()


def _keeps_order(value: Value, kind: str) -> bool:
    """Whether a view leaves what is in order so."""
    # x[0], x[:4], x[None]; `x[:, 0]` takes elements from between others
    if value.op == "torch.Tensor.__getitem__":
        index = value.argument(1)
        return "reshaping" in value.flags or isinstance(index, int | Symbol) or _is_plain(index)
    if kind != "first":
        return kind == "views"
    is_split = value.op.rpartition(".")[2] not in ("narrow", "select")
    axis = (
        value.argument("dim", 2 if is_split else 1)
        if value.op.rpartition(".")[2] != "unbind"
        else None
    )
    return axis == 0 or (axis is None and is_split)


def _is_plain(index: object) -> bool:
    return isinstance(index, slice) and index.step is None


def _is_made_in_order(m: Machine, value: Value, depth: int) -> bool:
    wrapped: Value | None = m.state.get("wrapped", {}).get(id(value))  # by an `nn.Parameter`
    if wrapped is not None:
        return is_in_order(m, wrapped, depth - 1)
    if value.kind is Kind.PARAMETER:
        return not value.assumed and RELAID not in value.flags
    kind = _order(value.op)
    model = value.argument(0)
    given = (*value.inputs, model) if isinstance(model, Value) else value.inputs
    return kind == "always" or (
        kind == "kept" and all(is_in_order(m, source, depth - 1) for source in given)
    )
