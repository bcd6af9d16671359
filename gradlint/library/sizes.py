"""What is known of a tensor's sizes, type and device: `x.shape`, `len(x)`, `x.ndim`, `x.dtype`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import counts, estimates, shapes
from gradlint.interpret.axes import rank
from gradlint.interpret.registry import (
    attribute,
    function,
    method,
)
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Object,
    Tensor,
    Unknown,
)
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@attribute("torch.Tensor", "shape")
def shape(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return _sizes(m, tensor, at)


def _sizes(m: Machine, tensor: Tensor, at: Call) -> Unknown:
    """The sizes, the first of which is the tensor's length."""
    sizes = Unknown(
        m.symbol(tensor).derive("shape", f"{tensor.node.title}.shape"), data=True, type=""
    )
    known = m.overrides[sizes.symbol]
    known.setdefault(f"item:{m.symbol(Const(0))}", length(m, tensor, at))
    written = shapes.shape(tensor.node) or ()
    for axis, size in enumerate(written):
        if type(size) is int:
            made = length(m, tensor, at) if axis == 0 else _size(m, sizes, axis, size)
            for index in (axis, axis - len(written)):
                known.setdefault(f"item:{index or m.symbol(Const(index))}", made)
    for axis in shapes.axes_of_one(tensor.node) - {0}:
        known.setdefault(f"item:{axis}", _size(m, sizes, axis, 1))
    return sizes


def size(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.size()` and `x.size(1)`: what `x.shape` and `x.shape[1]` are."""
    axis = call.get(0, "dim")
    if isinstance(axis, Const) and axis.value == 0:
        return length(m, tensor, call)
    sizes = _sizes(m, tensor, call)
    if axis is None:
        return sizes
    if not isinstance(axis, Const):
        return Unknown(sizes.symbol.derive(("item", m.symbol(axis)), "size"), data=True)
    known = m.override(sizes.symbol, "item", axis.value or m.symbol(axis))
    own = sizes.symbol.derive(("item", axis.value), f"{sizes.symbol.text}[{axis.value}]")
    return known or Unknown(own, data=True, type="number")


def _size(m: Machine, sizes: Unknown, axis: int, size: int) -> Unknown:
    """A size that the program writes down: a number of which questions are answered."""
    made = Unknown(
        sizes.symbol.derive(("size", axis), f"{sizes.symbol.text}[{axis}]"),
        data=True,
        type="number",
    )
    m.oracle.facts.bind(made.symbol, size)
    return made


@attribute("torch.Tensor", "ndim")
def ndim(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return axes(m, tensor)


def axes(m: Machine, tensor: Tensor) -> Abstract:
    """How many axes a tensor has; a number where the program writes down the sizes of what it is
    computed from.
    """
    known = rank(tensor.node)
    if known is not None:
        return Const(known)
    return Unknown(
        m.symbol(tensor).derive("ndim", f"{tensor.node.title}.ndim"), data=True, type="number"
    )


@attribute("torch.Tensor", "device")
def device(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return Unknown(
        m.symbol(tensor).derive("device", f"{tensor.node.title}.device"), data=True, type="object"
    )


@attribute("torch.Tensor", "dtype")
def dtype(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    state = {"dtype": tensor.node.dtype, "floats": holds_floats(m, tensor.node)}
    made = Object("torch.dtype", at.frame.span(at.node), state)
    # each access is asked the same question
    m.symbols[id(made)] = (made, m.symbol(tensor).derive("dtype", f"{tensor.node.title}.dtype"))
    return made


@attribute("torch.dtype", "is_floating_point")
def dtype_of_floats(m: Machine, dtype: Object, at: Call) -> Abstract | None:
    """`x.dtype.is_floating_point`."""
    return truth_of(dtype.state.get("floats"))


def holds_floats(m: Machine, node: Value) -> bool | None:
    """Whether a tensor holds floats: what carries a gradient does, what was cast to integers does
    not.

    What a part is given is only assumed to carry one: it can be of integers, `edge_index`.
    """
    if node.requires_grad:
        return None if m.session.contract and node.assumed else True
    return None if node.dtype.is_differentiable else False


def truth_of(known: bool | None) -> Abstract | None:
    return None if known is None else TRUE if known else FALSE


@attribute("torch.Tensor", "is_cuda")
def is_cuda(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return Unknown(m.symbol(tensor).derive("is_cuda", "is_cuda"), data=True, type="bool")


@method("torch.Tensor", "__len__")
def length(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    symbol = m.symbol(tensor).derive("len", f"len({tensor.node.title})")
    m.state.setdefault("lengths", {})[symbol] = estimates.length(m, tensor)
    known = shapes.known_length(tensor)
    if known is not None:
        m.oracle.facts.bind(symbol, known)
    counts.learn(m, tensor, symbol)
    return Unknown(symbol, data=True, type="number")


@function("torch.numel", "torch.is_floating_point", "torch.is_complex")
def number_of(m: Machine, call: Call) -> Abstract:
    value = call.values[0] if call.values else NONE
    name = call.name.rpartition(".")[2]
    is_of_floats = truth_of(holds_floats(m, value.node)) if isinstance(value, Tensor) else None
    if name == "is_floating_point" and is_of_floats is not None:
        return is_of_floats
    symbol = m.symbol(value).derive((name, ()), f"{name}()")
    if name == "numel" and isinstance(value, Tensor):
        counts.learn(m, value, symbol)
    return Unknown(symbol, data=True, type="number" if name == "numel" else "bool")
