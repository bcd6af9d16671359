"""Parameters: `nn.Parameter(x)`, the names under which a module has them, `state_dict()`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import memory, tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.registry import (
    attribute,
    function,
    method,
    on,
    typed,
)
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import freezing, holdings
from gradlint.library.layer_effects import LayerEffect
from gradlint.library.members import adopt
from gradlint.library.structure import MODULE, is_parameter, named_parameters, parts
from gradlint.tape import DType, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def make_parameter(
    m: Machine, name: str, module: tape.Module | None, call: Call, *, requires_grad: bool = True
) -> Tensor:
    """A parameter: a leaf with an identity of its own."""
    identity = tape.Parameter(name, module, call.frame.span(call.node), stack=m.where)
    made_there: Counter[object] = m.state.setdefault("made there", Counter())
    identity.number = made_there[identity.at, identity.stack, name]
    made_there[identity.at, identity.stack, name] += 1
    default: tape.Fact | None = m.state.get("default-dtype")
    dtype = DType(default.detail) if default is not None else DType.FLOAT
    made = tensors.value(
        m, "parameter", Kind.PARAMETER, (), call.node, call.frame, parameter=identity, dtype=dtype
    )
    if default is not None:
        m.emit(replace(default, value=made))
    made.requires_grad, made.storage, made.name = requires_grad, tape.Storage(), name
    if not requires_grad:
        made.cut, made.cut_at = tape.Cut.FROZEN, made.at
    return Tensor(made)


@function("torch.nn.Parameter", "torch.nn.UninitializedParameter")
def parameter(m: Machine, call: Call) -> Abstract:
    """`nn.Parameter(x)`: a new leaf over the data of `x`."""
    wanted = call.constant(1, "requires_grad", True) is not False
    made = make_parameter(m, "", None, call, requires_grad=wanted)
    content = call.get(0, "data")
    source = tensors.node_of(m, content, call.node, call.frame) if content is not None else None
    if source is not None:
        m.state.setdefault("wrapped", {})[id(made.node)] = source
        _begins_with(m, made, source)
        if source.requires_grad and source.kind is Kind.OPERATION:
            made.node.inputs = (source,)  # `nn.Parameter(loss)`: a leaf over what was computed
    if source is not None and source.dtype in (DType.DOUBLE, DType.HALF, DType.BFLOAT):
        made.node.dtype = source.dtype
    return made


def _begins_with(m: Machine, made: Tensor, source: tape.Value) -> None:
    """Notes the number that all of a parameter begins with: `nn.Parameter(torch.zeros(n))`."""
    if source.kind is Kind.CONSTANT and source.number is not None:
        made.node.number = source.number
        m.state.setdefault("begin with numbers", []).append(made.node)


@on("unknown call")
def numbers_escape(m: Machine, symbol: Symbol, call: Call) -> None:
    """Code out of view can write other numbers into a parameter, or those of a module, that it is
    given: `trunc_normal_(self.table)`.
    """
    known: list[tape.Value] = m.state.get("begin with numbers", [])
    if not known:
        return
    if any(isinstance(value, Instance | Object) and value.module for value in call.values):
        given = known
    else:
        given = [value.node for value in call.values if isinstance(value, Tensor)]
    for node in given:
        if node.parameter is not None:
            node.number = None


@function("torch.set_default_dtype")
def set_default_dtype(m: Machine, call: Call) -> Abstract:
    """`torch.set_default_dtype(torch.float16)`: what is made from here on has this dtype."""
    wanted = dtype_of(call.get(0, "d"))
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    told = (
        tape.Fact(at=at, what="parameter-cast", detail=wanted.value, text=text)
        if wanted is not None
        else None
    )
    m.state["default-set"] = True
    m.state["default-dtype"] = told if wanted in (DType.HALF, DType.BFLOAT) else None
    return NONE


@function("torch.nn.Buffer")
def buffer(m: Machine, call: Call) -> Abstract:
    return call.get(0, "data") or NONE


def _recurses(call: Call, position: int) -> bool:
    return call.constant(position, "recurse", True) is not False


@method(MODULE, "parameters")
def parameters(m: Machine, module: Abstract, call: Call) -> Abstract:
    return Sequence("generator", [tensor for _, tensor in _chosen(m, module, call, 0)])


def _chosen(m: Machine, module: Abstract, call: Call, position: int) -> list[tuple[str, Tensor]]:
    if _recurses(call, position):
        return list(named_parameters(m, module, call))
    return [
        (name, part)
        for name, part in parts(module)
        if isinstance(part, Tensor) and is_parameter(part)
    ]


@method(MODULE, "named_parameters")
def named_parameters_(m: Machine, module: Abstract, call: Call) -> Abstract:
    start = _prefix(call, 0)
    pairs = [(f"{start}{name}", tensor) for name, tensor in _chosen(m, module, call, 1)]
    return Sequence(
        "generator", [Sequence("tuple", [_name(m, name, tensor), tensor]) for name, tensor in pairs]
    )


def _prefix(call: Call, position: int) -> str:
    """What the names that are asked for begin with; a `*` stands for what is not known of it."""
    given = call.get(position, "prefix")
    known = given.value if isinstance(given, Const) else "*" if given is not None else ""
    return f"{known}." if known else ""


def _name(m: Machine, name: str, tensor: Tensor) -> Abstract:
    """The name of a parameter as the program sees it."""
    return (
        Unknown(m.symbol(tensor).derive("name", "name"), data=True, type="str")
        if "*" in name
        else Const(name)
    )


@method(MODULE, "state_dict")
def state_dict(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Names and detached tensors that share the parameters' memory."""
    items: dict[object, Abstract] = {}
    for name, tensor in named_parameters(m, module, call):
        items[name] = memory.detach(m, tensor, "torch.nn.Module.state_dict", call.node, call.frame)
    buffer = tensors.batch(m, "buffer", call.node, call.frame)
    return Mapping(
        items, open=True, symbol=m.symbol(module).derive("state_dict", "state_dict"), rest=buffer
    )


@method(MODULE, "load_state_dict")
def load_state_dict(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Copies values into the parameters of a module, under the names that are known."""
    given = call.get(0, "state_dict")
    items = given.items if isinstance(given, Mapping) else {}
    for name, parameter in named_parameters(m, module, call):
        parameter.node.number = None
        value = items.get(name)
        if isinstance(value, Tensor):
            holdings.loaded(m, parameter, value, call)
    return m.unknown("keys", data=True)


@attribute(MODULE, "weight")
def weight(m: Machine, module: Instance | Object, at: Call) -> Abstract | None:
    return _own_parameter(m, module, "weight", at)


@attribute(MODULE, "bias")
def bias(m: Machine, module: Instance | Object, at: Call) -> Abstract | None:
    return _own_parameter(m, module, "bias", at)


def _own_parameter(m: Machine, module: Instance | Object, name: str, at: Call) -> Abstract | None:
    """A layer's own parameter, or what was put in its place; None where it was made without one, or
    has it no more.

    Of a parametrized layer it is computed at each access.
    """
    found = _held_parameter(module, name)
    if name not in module.state.get("parametrized", ()) or not isinstance(found, Tensor):
        return found
    made = tensors.operation(m, "torch.nn.utils.parametrize", [found.node], at.node, at.frame)
    made.storage, made.dtype = tape.Storage(), found.node.dtype
    made.flags |= {tape.COMPUTED_ANEW}
    return Tensor(made)


def _held_parameter(module: Instance | Object, name: str) -> Abstract | None:
    if name in module.state.get("instead", ()):
        found: Abstract = module.state["instead"][name]
        return found
    own, effect = module.state.get("parameters"), module.state.get("effect")
    if not isinstance(module, Object) or not isinstance(own, dict):
        return None
    is_missing = isinstance(effect, LayerEffect) and name in effect.parameters and name not in own
    return NONE if is_missing else own.get(name)


@method(MODULE, "__set_weight__", "__set_bias__")
def set_parameter(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`layer.weight = nn.Parameter(…)`: another parameter in the place of the old; None takes it
    away.

    What code out of view has made, `bnb.nn.Params4bit(…)`, may be of a class of its own.
    """
    if call.name in module.state.get("parametrized", ()):
        if isinstance(call.args[0], Tensor):
            call.args[0].node.name = call.args[0].node.name or call.name  # no write is lost
        return NONE  # the inverse of what computes it finds its way to the parameter
    module.state.setdefault("instead", {}).pop(call.name, None)
    if isinstance(call.args[0], Unknown):
        module.state["instead"][call.name] = call.args[0]
    if isinstance(module, Object) and isinstance(call.args[0], Const):
        module.state.get("parameters", {}).pop(call.name, None)
    if isinstance(module, Object) and isinstance(call.args[0], Tensor):
        adopt(module, call.name, call.args[0])
        holdings.attached(m, module, call.name, call.args[0], call)
        module.state.setdefault("parameters", {})[call.name] = call.args[0]
    return NONE


@method(MODULE, "__set_requires_grad__")
def freeze_in_vain(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`module.requires_grad = False` sets an attribute that nobody reads."""
    freezing.freezes_module(m, module, call)
    module.attrs["requires_grad"] = call.args[0]
    return NONE


@typed("torch.Tensor")
def typed_tensor(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, type="tensor")


@typed("torch.device", "torch.dtype")
def typed_plain(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, data=True, type="object")
