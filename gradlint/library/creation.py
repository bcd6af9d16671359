"""Tensors that a call makes: `torch.zeros(…)`, `torch.tensor(x)`, `Variable(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import arguments, conditions, copies, memory, shapes, tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.registry import (
    function,
    method,
)
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import shows
from gradlint.library.casts import converted
from gradlint.library.devices import (
    note_device,
)
from gradlint.library.effects import Effect
from gradlint.tape import Cut, DType, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def created(
    m: Machine, name: str, call: Call, effect: Effect, like: Tensor | None = None
) -> Tensor:
    """`torch.zeros(…)`, `x.new_ones(…)`, `torch.randn_like(x)`."""
    plain = name.rpartition(".")[2]
    dtype = dtype_of(call.kwargs.get("dtype")) or (
        like.node.dtype if like is not None else _dtype_made(plain, call)
    )
    model = call.get(0, "input") if plain.endswith("_like") else None
    if isinstance(model, Unknown) and not model.data:
        tensors.as_tensor(m, model, call.node, call.frame)  # torch takes nothing else
    if effect.random or plain.startswith(
        ("arange", "linspace", "eye", "empty", "new_empty", "rand")
    ):
        made = tensors.batch(m, name, call.node, call.frame, dtype=dtype)
    else:
        made = tensors.constant(m, name, call.node, call.frame, _fill(plain, call), dtype)
    if plain in shapes.FRESH:
        made.node.arguments = arguments.given(m, _sizes(plain, call), {})
    elif made.node.kind is Kind.DATA:
        made.node.arguments = arguments.given(m, call.args, call.kwargs)
    elif model is not None:
        made.node.arguments = arguments.given(m, [model], {})
    return as_declared_leaf(m, made, call)


def _sizes(plain: str, call: Call) -> list[Abstract]:
    """The sizes that a tensor is made with; none where there can be more of them."""
    first = call.args[0] if call.args else None
    if isinstance(first, Sequence):
        shape, is_open = first.items, first.open
    else:
        shape, is_open = call.args[:1] if plain == "full" else call.args, call.open
    written = [
        Const(size.written, size.at) if isinstance(size, Const) and size.written else size
        for size in shape
    ]
    return [] if is_open else written


def _is_to_require_grad(m: Machine, call: Call) -> bool:
    """Whether a call asks for a leaf, `torch.zeros(3, requires_grad=True)`; a branch, where it
    hangs on a setting.
    """
    given = call.kwargs.get("requires_grad")
    return given is not None and conditions.decide(m, given, call.node, call.frame)


def as_declared_leaf(m: Machine, made: Tensor, call: Call) -> Tensor:
    """What a call makes, as the leaf that it may ask for."""
    if _is_to_require_grad(m, call):
        node = made.node
        node.kind, node.cut, node.requires_grad = Kind.LEAF, None, True
        node.parameter = tape.Parameter("", None, node.at)
    return made


def _dtype_made(plain: str, call: Call) -> DType:
    """The dtype where none is asked for: indices are whole numbers, and a range is of what bounds
    it.
    """
    if plain in ("randint", "randperm", "tril_indices", "triu_indices"):
        return DType.INTEGER
    if plain != "arange" or any(
        isinstance(bound, Const) and isinstance(bound.value, float) for bound in call.args
    ):
        return DType.FLOAT
    are_whole = all(
        isinstance(bound, Const) and isinstance(bound.value, int) for bound in call.args
    )
    return DType.INTEGER if are_whole else DType.UNKNOWN


def _fill(plain: str, call: Call) -> object:
    if "zeros" in plain:
        return 0.0
    if "ones" in plain:
        return 1.0
    if "full" in plain:
        value = call.constant(1, "fill_value")
        return value if isinstance(value, int | float) else None
    return None


@function(
    "torch.tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    "torch.IntTensor",
    "torch.ShortTensor",
    "torch.ByteTensor",
    "torch.CharTensor",
    "torch.DoubleTensor",
    "torch.BoolTensor",
    "torch.Tensor",
    "torch.cuda.FloatTensor",
    "torch.cuda.LongTensor",
    "torch.HalfTensor",
)
def from_values(m: Machine, call: Call) -> Abstract:
    """`torch.tensor(x)` copies values: whatever graph they had stays behind."""
    note_device(m, call)
    content = call.get(0, "data")
    made = copied_in(m, content, call)
    if isinstance(content, Sequence):
        made.node.flags |= {tape.OF_A_LIST}
    return made


@method("torch.Tensor", "new_tensor")
def new_tensor(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return copied_in(m, call.get(0, "data"), call)


@function(
    "torch.as_tensor",
    "torch.asarray",
    "torch.from_numpy",
    "torch.Tensor.as_subclass",
    "torch.scalar_tensor",
)
def as_tensor(m: Machine, call: Call) -> Abstract:
    content = call.get(0, "data")
    if isinstance(content, Tensor):
        wanted = dtype_of(call.kwargs.get("dtype"))
        return converted(m, content, call.name, wanted, call) if wanted is not None else content
    if (
        isinstance(content, Unknown)
        and content.origin is None
        and content.type == ""
        and not content.data
    ):
        known = m.nodes.get(content.symbol)
        if call.name != "torch.from_numpy":
            tensor = tensors.as_tensor(m, content, call.node, call.frame)
            return _perhaps_copied(m, tensor, call) if tensor.node.assumed else tensor
        if known is None or known.assumed:  # an array: torch refuses a tensor
            return tensors.batch(m, call.name, call.node, call.frame)
    made = copied_in(m, content, call)
    if call.name == "torch.from_numpy" and isinstance(content, Unknown) and content.type == "array":
        _shares_memory(m, content, made, call)
    return made


def _perhaps_copied(m: Machine, tensor: Tensor, call: Call) -> Tensor:
    """The tensor of something unknown: of a list it is a copy, and writes to an array are not
    counted.
    """
    made = tensors.operation(
        m, call.name, [tensor.node], call.node, call.frame, dtype=tensor.node.dtype
    )
    made.flags |= {tape.MAY_SHARE}
    made.storage, made.name = tape.Storage(), tensor.node.name
    return Tensor(made)


def _shares_memory(m: Machine, array: Unknown, tensor: Tensor, call: Call) -> None:
    """Makes what is written into the array from now on a write to the tensor, but not to what that
    is converted to.

    An array of doubles, which `.float()` copies, is not told from one of floats, which it gives
    back as it is.
    """
    tensor.node.flags |= {"in-numpy"}
    if array.origin is None:
        array.origin = tensors.batch(m, "numpy.ndarray", call.node, call.frame).node
        array.origin.storage = tensor.node.storage


WRITTEN_OUT = frozenset(["written-out"])  # on a leaf: it begins as numbers that the program writes


def copied_in(m: Machine, content: Abstract | None, call: Call) -> Tensor:
    """A tensor of copied values: a constant, data, or the end of a route."""
    node, frame = call.node, call.frame
    dtype = dtype_of(call.kwargs.get("dtype")) or _literal_dtype(call.name, content)
    if content is not None and copies.is_no_tensor(m, content):
        # whether this path is taken, who knows
        return tensors.as_tensor(m, m.unknown(frame.text(node)), node, frame)
    origins = tensors.sources(m, [content], node, frame) if content is not None else []
    leaf = _is_to_require_grad(m, call)
    if origins:
        made = tensors.operation(m, call.name, origins, node, frame, cut=Cut.COPY, dtype=dtype)
        made.storage = (
            origins[0].storage or tape.Storage()
            if call.name == "torch.from_numpy"
            else tape.Storage()
        )
        if all(origin.kind is Kind.CONSTANT for origin in origins) and made.cut is None:
            made.kind, made.cut = Kind.CONSTANT, Cut.CONSTANT
        elif not any(origin.requires_grad or origin.inputs for origin in origins):
            made.kind = Kind.DATA
        tensor = Tensor(made)
    elif isinstance(content, Const) or _is_written_out(content):
        number = (
            content.value
            if isinstance(content, Const) and isinstance(content.value, int | float)
            else None
        )
        tensor = tensors.constant(m, call.name, node, frame, number, dtype)
        m.state.setdefault("written-out", {})[id(tensor.node)] = content
    else:
        tensor = tensors.batch(m, call.name, node, frame, dtype=dtype)
    shows.note(m, tensor, content)
    if leaf:
        before = tensor.node
        made = tensors.value(
            m,
            call.name,
            Kind.LEAF,
            (before,) if origins else (),
            node,
            frame,
            requires_grad=True,
            dtype=before.dtype,
        )
        made.storage, made.parameter = tape.Storage(), tape.Parameter("", None, made.at)
        made.flags = WRITTEN_OUT if before.kind is Kind.CONSTANT else frozenset()
        tensor = Tensor(made)
    return tensor


def _is_written_out(content: Abstract | None) -> bool:
    return (
        isinstance(content, Sequence)
        and bool(content.items)
        and all(isinstance(item, Const) or _is_written_out(item) for item in content.items)
    )


def _literal_dtype(name: str, content: Abstract | None) -> DType:
    if any(kind in name for kind in ("Long", "Int", "Short", "Byte", "Char")):
        return DType.INTEGER
    if "Bool" in name:
        return DType.BOOL
    first = content
    while isinstance(first, Sequence) and first.items:
        first = first.items[0]
    if isinstance(first, Const) and isinstance(first.value, bool):
        return DType.BOOL
    if (
        isinstance(first, Const)
        and isinstance(first.value, int)
        and not name.endswith(("Tensor", "FloatTensor"))
    ):
        return DType.INTEGER
    return DType.FLOAT if isinstance(first, Const) else DType.UNKNOWN


@function("torch.autograd.Variable")
def variable(m: Machine, call: Call) -> Abstract:
    """`Variable(x)` is `x` without its graph; with `requires_grad=True` it is a new leaf over the
    same data.
    """
    content = call.get(0, "data")
    if call.constant(1, "requires_grad") is not True or content is None:
        if isinstance(content, Tensor) and content.node.requires_grad and not content.node.assumed:
            return memory.detach(m, content, call.name, call.node, call.frame)
        return content or m.unknown("Variable")
    tensor = tensors.as_tensor(m, content, call.node, call.frame)
    node = tensor.node
    made = tensors.value(
        m,
        call.name,
        Kind.LEAF,
        (node,),
        call.node,
        call.frame,
        requires_grad=True,
        dtype=node.dtype,
    )
    made.storage, made.parameter = node.storage, tape.Parameter("", None, made.at)
    return Tensor(made)
