"""`torch.nn.utils`: packed and padded sequences, parameters as one vector, and what changes a
module in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, fallback, function, method
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Instance,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import holdings
from gradlint.library.effects import lookup
from gradlint.library.layers import PACKED
from gradlint.library.parameters import make_parameter
from gradlint.library.structure import is_parameter

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_RESHAPES = (
    "torch.nn.utils.parametrizations.",
    "torch.nn.utils.parametrize.",
    "torch.nn.utils.prune.",
    "torch.nn.utils.fusion.",
)
_RECLASS = _RESHAPES[:2]  # what these give is of a class made for it: a `ParametrizedLinear`
_MODULES = frozenset(
    [
        "weight_norm",
        "spectral_norm",
        "remove_weight_norm",
        "remove_spectral_norm",
        "convert_conv2d_weight_memory_format",
    ]
)
alias("torch.nn.utils.convert_parameters", "torch.nn.utils")
alias("torch.nn.utils.weight_norm.weight_norm", "torch.nn.utils.weight_norm")
alias("torch.nn.utils.spectral_norm.spectral_norm", "torch.nn.utils.spectral_norm")


@function("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")
def pack(m: Machine, call: Call) -> Abstract:
    """`pack_padded_sequence(x, lengths)`: counts as the tensor that it holds."""
    given = call.get(0, "input") or call.get(0, "sequences") or NONE
    held = tensors.apply(m, call.name, [given], call.node, call.frame, None)
    return Object(PACKED, call.frame.span(call.node), {"loc": held})


@attribute(PACKED, "data")
def packed_data(m: Machine, packed: Object, at: Call) -> Abstract | None:
    """The tensor of a packed sequence, with its graph."""
    held = packed.state.get("loc")
    return held if isinstance(held, Abstract) else None


@attribute(PACKED, "batch_sizes")
def batch_sizes(m: Machine, packed: Object, at: Call) -> Abstract:
    """How many sequences are left at each step."""
    return Unknown(m.symbol(packed).derive("batch_sizes", "batch_sizes"), data=True)


@method(PACKED, "__getitem__")
def packed_part(m: Machine, packed: Object, call: Call) -> Abstract:
    """`packed[0]`: the tensor; behind it stand numbers."""
    held = packed.state.get("loc")
    return (
        held
        if call.constant(0, "index") == 0 and isinstance(held, Abstract)
        else m.unknown("part", data=True)
    )


@method(PACKED, "to", "cuda", "cpu", "float", "pin_memory")
def moved(m: Machine, packed: Object, call: Call) -> Abstract:
    """The same sequence elsewhere."""
    return packed


@function("torch.nn.utils.rnn.pad_packed_sequence")
def pad_packed(m: Machine, call: Call) -> Abstract:
    """`pad_packed_sequence(packed)`: the padded tensor and the lengths."""
    given = call.get(0, "sequence") or NONE
    padded = tensors.apply(m, call.name, [given], call.node, call.frame, None)
    return Sequence(
        "tuple", [padded, tensors.batch(m, f"{call.name}.lengths", call.node, call.frame)]
    )


@function("torch.nn.utils.rnn.pad_sequence", "torch.nn.utils.parameters_to_vector")
def joined(m: Machine, call: Call) -> Abstract:
    """`pad_sequence(tensors)`, `parameters_to_vector(parameters)`: copied together, with their
    graphs.
    """
    given = call.values[0] if call.values else NONE
    items = (
        given
        if isinstance(given, Sequence) and given.kind != "generator"
        else Sequence("list", m.items(given, call))
    )
    return tensors.apply(m, call.name, [items], call.node, call.frame, lookup("cat"))


@function("torch.nn.utils.rnn.unpad_sequence", "torch.nn.utils.rnn.unpack_sequence")
def parted(m: Machine, call: Call) -> Abstract:
    """`unpad_sequence(x, lengths)`: a list of parts."""
    part = tensors.apply(m, call.name, call.args[:1], call.node, call.frame, None)
    return Sequence("list", [part], True, part)


@function("torch.nn.utils.vector_to_parameters")
def vector_to_parameters(m: Machine, call: Call) -> Abstract:
    """Rebinds the data of parameters: nothing that autograd saved changes."""
    vector, parameters = call.get(0, "vec"), call.get(1, "parameters")
    for parameter in m.items(parameters, call) if parameters is not None else ():
        if isinstance(vector, Tensor) and isinstance(parameter, Tensor):
            holdings.loaded(m, parameter, vector, call)
    return NONE


@function("torch.nn.utils.skip_init")
def skip_init(m: Machine, call: Call) -> Abstract:
    """`skip_init(nn.Linear, 2, 3)`: the module."""
    kwargs = {name: value for name, value in call.kwargs.items() if name != "device"}
    return (
        m.call(call.args[0], Call(call.name, call.args[1:], kwargs, call.node, call.frame))
        if call.args
        else NONE
    )


@fallback
def reparametrized(m: Machine, call: Call) -> Abstract | None:
    """`spectral_norm(module)`, `prune.l1_unstructured(module, …)`: the module itself."""
    name = call.name.rpartition(".")[2]
    if not (
        call.name.startswith(_RESHAPES)
        or (call.name.startswith("torch.nn.utils.") and name in _MODULES)
    ):
        return None
    if not call.values or name[:1].isupper():
        return m.unknown(call.frame.text(call.node))
    module = call.values[0]
    if isinstance(module, Object | Instance) and call.name.startswith(_RECLASS):
        module.state["reclassed"] = True
    if isinstance(module, Object | Instance) and call.name.startswith(_RECLASS):
        _parametrize(module, name, call)
    if (
        isinstance(module, Object | Instance)
        and name == "weight_norm"
        and m.state.get("optimizers")
    ):
        _take_apart(m, module, call)
    return module


def _parametrize(module: Object | Instance, name: str, call: Call) -> None:
    """Notes what is computed at each access from here on: `weight_norm(layer)`; or no longer."""
    of = call.constant(1, "tensor_name") or call.constant(None, "name") or "weight"
    held: set[object] = module.state.setdefault("parametrized", set())
    if name == "remove_parametrizations":
        held.discard(of)
    else:
        held.add(of)


def _take_apart(m: Machine, module: Object | Instance, call: Call) -> None:
    """`weight_norm(layer)` puts two new parameters, length and direction, in the place of the
    weight: one here.
    """
    name = call.constant(1, "name", "weight")
    own = module.state.get("parameters")
    held = own if isinstance(own, dict) and name in own else module.attrs
    before = held.get(name) if isinstance(name, str) else None
    if isinstance(name, str) and isinstance(before, Tensor) and is_parameter(before):
        held[name] = new = make_parameter(
            m, name, module.module, call, requires_grad=before.node.requires_grad
        )
        m.emit(
            tape.Fact(at=call.frame.span(call.node), what="attached", value=new.node, detail=name)
        )
