"""Casts and moves of a tensor: `.to(…)`, `.float()`, `.cuda()`, `.contiguous()`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import layouts, tensors
from gradlint.interpret.dtypes import DTYPES, dtype_of
from gradlint.interpret.registry import (
    method,
)
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Lib,
    Tensor,
)
from gradlint.library import sameness
from gradlint.library.devices import (
    goes_to,
    is_from_out_of_view,
    is_made_there,
    place,
    send,
)
from gradlint.library.effects import lookup
from gradlint.tape import DType, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_CASTS = (
    "to",
    "type",
    "type_as",
    "cuda",
    "cpu",
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "bool",
    "short",
    "char",
    "byte",
)


@method("torch.Tensor", *_CASTS)
def cast(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`.to(…)`, `.float()`, `.cuda()`: the graph is kept, unless the dtype has no gradient."""
    place(m, tensor, call)
    name = call.called
    wanted = DTYPES.get(name) if name in DTYPES else _wanted_dtype(m, call)
    if name in ("char", "byte"):
        wanted = DType.INTEGER
    return converted(m, tensor, f"torch.Tensor.{name}", wanted, call)


def _wanted_dtype(m: Machine, call: Call) -> DType | None:
    for value in call.values:
        if isinstance(value, Tensor) and call.called in ("to", "type_as"):
            return value.node.dtype
        found = dtype_of(value)
        if found is not None:
            return found
    return None


def _asks_for_float32(call: Call) -> bool:
    asked = [value.name for value in call.values if isinstance(value, Lib)]
    return call.called == "float" or (
        len(call.values) == 1 and asked in (["torch.float32"], ["torch.float"])
    )


def converted(m: Machine, tensor: Tensor, name: str, wanted: DType | None, call: Call) -> Tensor:
    node = tensor.node
    if call.values and all(_is_none(value) for value in call.values):
        return tensor  # `x.to(device)` with the default of `device=None`
    if wanted is not None and not wanted.is_differentiable:
        made = tensors.operation(m, name, [node], call.node, call.frame, differentiable=False)
        made.flags |= {tape.CAST}
    elif _shows_data(tensor) and "memory_format" not in call.kwargs:
        keeps_dtype = wanted in (None, node.dtype) or node.dtype is DType.UNKNOWN
        if keeps_dtype and "in-numpy" not in node.flags:
            send(m, node, call)
            return tensor
        made = copy.copy(node)  # another tensor: what requires grad from now on is this one alone
    elif not m.autocast and sameness.changes_nothing(m, tensor, wanted, call):
        return tensor
    else:
        made = _moved(m, node, name, wanted, call)
    made.dtype = wanted or node.dtype
    made.storage = tape.Storage()
    if node.number in (0, 1):
        made.number, made.arguments = node.number, node.arguments
    m.identify(made, m.symbol(tensor))
    made.flags |= {"cast"}
    return Tensor(made)


def _is_none(value: Abstract) -> bool:
    return isinstance(value, Const) and value.value is None


def _shows_data(tensor: Tensor) -> bool:
    """Whether it is data, or a view of such: `labels.view(-1).to(device)`."""
    shown: Tensor | None = tensor
    while shown is not None and not shown.node.requires_grad:
        if _is_plain_data(shown.node):
            return True
        shown = shown.base
    return False


def _is_plain_data(node: tape.Value) -> bool:
    return not node.requires_grad and node.kind in (Kind.CONSTANT, Kind.DATA)


def _moved(m: Machine, node: tape.Value, name: str, wanted: DType | None, call: Call) -> tape.Value:
    """A tensor with a graph in another dtype or on another device, which autograd records."""
    made = tensors.operation(m, name, [node], call.node, call.frame)
    # `.to(…)` gives the very tensor where nothing changes, unless a copy is asked for
    if call.constant(None, "copy") is not True:
        made.flags |= {tape.MAY_SHARE}
    if _goes_nowhere(m, node, call) if wanted is None else _asks_for_float32(call):
        # where it was made there, and so: then torch gives back the very tensor
        made.flags |= {"stays-put"}
    if wanted is not None:
        made.flags |= {"converted"}
    return made


def _goes_nowhere(m: Machine, node: tape.Value, call: Call) -> bool:
    """Whether a tensor is sent where it may be: to the CPU, or the device of what it was computed
    from.
    """
    made_of = list(_on_one_device(node))
    for leaf in list(made_of):
        wrapped = m.state.get("wrapped", {}).get(id(leaf))  # by an `nn.Parameter`
        made_of += tape.ancestors(wrapped) if wrapped is not None else ()
    return (
        goes_to(m, call) == "cpu"
        or is_made_there(m, made_of, call)
        or is_from_out_of_view(m, made_of)
    )


def _on_one_device(node: tape.Value) -> Iterator[tape.Value]:
    """What a tensor is computed from, as far as it says where the tensor is."""
    seen, pending = {id(node)}, [node]
    for value in pending:
        yield value
        for source in () if tape.OF_A_LIST in value.flags else value.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


@method("torch.Tensor", "contiguous")
def contiguous(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.contiguous()`: the very tensor where its elements lie in order, else what has its numbers
    in other memory.
    """
    if not call.values and layouts.is_in_order(m, tensor.node):
        return tensor
    made = tensors.apply(
        m, "torch.Tensor.contiguous", [tensor], call.node, call.frame, lookup("contiguous")
    )
    made.node.flags |= {tape.MAY_SHARE}
    m.identify(made.node, m.symbol(tensor))
    return made
