"""The sizes of tensors, where the program writes them down: those of fresh ones, and of what is
computed from these.
"""

from __future__ import annotations

import itertools
import math

from gradlint.interpret.values import Tensor, range_length
from gradlint.tape import DType, Value

# the first argument is a shape
FRESH = frozenset(["rand", "randn", "zeros", "ones", "empty", "full", "randperm"])
BY_ELEMENT = {
    "abs",
    "add",
    "bfloat16",
    "bool",
    "clamp",
    "clip",
    "clone",
    "cos",
    "cpu",
    "cuda",
    "detach",
    "div",
    "eq",
}
BY_ELEMENT |= {
    "double",
    "exp",
    "float",
    "floor",
    "ge",
    "gt",
    "half",
    "int",
    "le",
    "log",
    "log1p",
    "long",
    "lt",
    "mul",
}
BY_ELEMENT |= {
    "ne",
    "neg",
    "pow",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "sub",
    "tanh",
}
BY_ELEMENT |= {"to", "truediv"}
_SHAPED = BY_ELEMENT | {
    "bitwise_not",
    "bitwise_and",
    "bitwise_or",
    "invert",
    "logical_not",
    "logical_and",
    "argsort",
}
_SHAPED |= {
    "logical_or",
    "isnan",
    "isfinite",
    "__setitem__",
    "contiguous",
    "type_as",
    "bernoulli",
    "bernoulli_",
    "requires_grad_",
}
_LIKE = frozenset(["rand_like", "randn_like", "zeros_like", "ones_like", "randint_like"])
_REDUCTIONS = frozenset(
    ["all", "amax", "amin", "any", "argmax", "argmin", "mean", "norm", "prod", "std", "sum", "var"]
)
_PRODUCTS = frozenset(["matmul", "mm", "mv"])
_DEEPEST = 16  # operations that are followed

Shape = tuple[object, ...]


def first_size(value: Value) -> object:
    """The first size of a tensor, where it is written down: a number, or the symbol of an unknown
    one.
    """
    shape = _shape(value, _DEEPEST)
    return shape[0] if shape else None


def known_length(tensor: Tensor) -> int | None:
    """The first size of a tensor, where it is a number that is written down."""
    size = first_size(tensor.node)
    return size if isinstance(size, int) else None


def shape(value: Value) -> Shape | None:
    """The sizes of a tensor, where the program writes them down."""
    return _shape(value, _DEEPEST)


def axes(value: Value) -> int | None:
    """How many axes a tensor has, where the program says so: by its sizes, or as all from one on
    were made one, `flatten(1)`.
    """
    sizes = shape(value)
    if sizes is not None:
        return len(sizes)
    start = value.argument(1, "start_dim") or 0
    is_to_the_last = value.argument(2, "end_dim") in (None, -1)
    if value.op.rpartition(".")[2] != "flatten" or not is_to_the_last:
        return None
    return start + 1 if isinstance(start, int) and start >= 0 else None


def least_axes(value: Value, depth: int = _DEEPEST) -> int:
    """How many axes a tensor has at least: what is combined with one of so many has no fewer."""
    known = axes(value)
    if known is not None or depth == 0 or value.op.rpartition(".")[2] not in _SHAPED:
        return known or 0
    return max((least_axes(source, depth - 1) for source in value.inputs), default=0)


def has_some(value: Value, depth: int = _DEEPEST) -> bool | None:
    """Whether a tensor that is written down has an element above zero and none below: a mask of
    ones, or one that is filled; False for zeros, None where that is not known.
    """
    if isinstance(value.number, int | float):
        if value.number == 0:
            return False
        sizes = _shape(value, depth) or (0,)
        has_elements = all(isinstance(size, int) and size > 0 for size in sizes)
        return True if value.number > 0 and has_elements else None
    index, written = value.argument(1), value.argument(2)
    if value.op != "torch.Tensor.__setitem__" or not isinstance(written, int | float) or depth == 0:
        return None
    is_one = type(index) is int
    if written is True and is_one:  # whatever else is true of a mask
        return True
    had = has_some(value.inputs[0], depth - 1)
    if had is None or written < 0:
        return None
    if written == 0:
        return None if had else False
    parts = index if isinstance(index, tuple) else (index,)
    is_basic = all(type(part) is int or isinstance(part, slice) for part in parts)
    return True if is_basic else None


def axes_of_one(value: Value, depth: int = _DEEPEST) -> frozenset[int]:
    """The axes that have one element whatever the sizes of the tensor are, as the program counts
    them: 1 of `x.unsqueeze(1)`, -1 of `x.mean(-1, keepdim=True)`.
    """
    op = value.op.rpartition(".")[2]
    axis = value.argument(2 if op == "norm" else 1, "dim", "axis")
    if op == "unsqueeze" or (op in _REDUCTIONS and value.argument("keepdim") is True):
        return frozenset([axis] if type(axis) is int else [])
    if op in _SHAPED and len(value.inputs) == 1 and depth:
        return axes_of_one(value.inputs[0], depth - 1)
    return frozenset()


def _shape(value: object, depth: int) -> Shape | None:
    """The sizes of a tensor; None for one that the program does not write down."""
    if isinstance(value, int | float):
        return ()
    if not isinstance(value, Value) or depth == 0:
        return None
    op = value.op.rpartition(".")[2]
    if op in FRESH:
        last = max((place for place, _ in value.arguments if isinstance(place, int)), default=-1)
        return tuple(value.argument(place) for place in range(last + 1))
    if op in ("randint", "arange"):
        return _counted(value, op)
    if op in _SHAPED:
        return _broadcast([_shape(source, depth - 1) for source in value.inputs])
    first = _shape(value.argument(0, "input") or next(iter(value.inputs), None), depth - 1)
    if first is None:
        return None
    if op in _LIKE:
        return first
    if op in ("split", "chunk"):
        return _cut(value, op, first)
    if op in ("unbind", "unsqueeze", "flatten"):
        return _turned(value, op, first)
    if op in _REDUCTIONS:
        return _reduced(value, op, first)
    if op == "__getitem__":
        index = value.argument(1)
        is_chosen = index is None and "selection" in value.flags and len(value.inputs) == 2
        return _taken(value.inputs[1] if is_chosen else index, first)
    if op in _PRODUCTS and len(first) > 1:  # (n, k) @ (k, m), (n, k) @ (k,)
        other = _shape(value.argument(1, "other"), depth - 1)
        return (
            None if other is None else (*first[:-1], *other[-1:]) if len(other) == 2 else first[:-1]
        )
    return None


def _counted(value: Value, op: str) -> Shape | None:
    """Of whole numbers: `randint(low, high, (2, 3))`, `randint(high, (2, 3))`, `arange(6)`,
    `arange(2, 6)`.
    """
    if op == "randint":
        given = value.argument("size") or value.argument(2) or value.argument(1)
        return given if isinstance(given, tuple) else None
    first, second = value.argument(0, "start"), value.argument(1, "end")
    start, end = (0, first) if second is None else (first, second)
    is_plain = type(start) is int and type(end) is int and value.argument(2, "step") is None
    return (range_length(start, end, 1),) if is_plain else None  # type: ignore[arg-type]


def _cut(value: Value, op: str, first: Shape) -> Shape | None:
    """Of a part of a tensor that is split along its first axis: of one as large as the others."""
    size, whole = (
        value.argument(1, "split_size", "split_size_or_sections", "chunks"),
        first[0] if first else None,
    )
    if (
        type(size) is not int
        or size < 1
        or not isinstance(whole, int)
        or value.argument(2, "dim") not in (None, 0)
    ):
        return None
    return (min(size, whole) if op == "split" else -(-whole // size), *first[1:])


def _turned(value: Value, op: str, first: Shape) -> Shape | None:
    """What `unbind`, `unsqueeze(dim)` and `flatten(start)` make of a shape."""
    axis = value.argument(1, "dim", "start_dim")
    if op == "unbind":
        return first[1:] if axis in (None, 0) else None
    if op == "unsqueeze":
        place = axis + len(first) + 1 if isinstance(axis, int) and axis < 0 else axis
        return (*first[:place], 1, *first[place:]) if isinstance(place, int) else None
    start = 0 if axis is None else axis
    if not isinstance(start, int) or start < 0 or value.argument(2, "end_dim") not in (None, -1):
        return None
    sizes = [size for size in first[start:] if isinstance(size, int)]
    return (*first[:start], math.prod(sizes)) if len(sizes) == len(first[start:]) else None


def _broadcast(shapes: list[Shape | None]) -> Shape | None:
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return None
    padded = itertools.zip_longest(*(reversed(shape) for shape in known), fillvalue=1)
    sizes = [{size for size in column if size != 1} or {1} for column in padded]
    return (
        tuple(size for (size,) in reversed(sizes))
        if all(len(each) == 1 for each in sizes)
        else None
    )


def _reduced(value: Value, op: str, shape: Shape) -> Shape | None:
    """What is left of a shape: without the dimensions that are reduced, or with them of size 1."""
    given = value.argument(2 if op == "norm" else 1, "dim", "axis")
    axes = given if isinstance(given, tuple) else (given,)
    if not all(type(axis) is int and -len(shape) <= axis < len(shape) for axis in axes):
        return None
    gone = {axis % len(shape) for axis in axes if isinstance(axis, int)}
    if not value.argument("keepdim"):
        return tuple(size for place, size in enumerate(shape) if place not in gone)
    return tuple(1 if place in gone else size for place, size in enumerate(shape))


def _taken(index: object, shape: Shape) -> Shape | None:
    """What integers and slices leave of a shape: `x[:32]`, `x[0]`, `x[:, 1:]`."""
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) > len(shape):
        return None
    left: list[object] = []
    for part, size in zip(parts, shape, strict=False):
        if isinstance(part, slice) and isinstance(size, int) and _is_known(part):
            left.append(range_length(*part.indices(size)))
        elif isinstance(part, Value) and part.dtype is DType.INTEGER:
            left += _shape(part, _DEEPEST) or (None,)
        elif type(part) is not int:
            return None
    return (*left, *shape[len(parts) :])


def _is_known(part: slice) -> bool:
    """Whether a slice takes a number of elements that can be told: its bounds are written down."""
    return part.step != 0 and all(
        bound is None or type(bound) is int for bound in (part.start, part.stop, part.step)
    )
