"""Layers of `torch.nn`: how each is made, and what calling it gives."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, layouts, memory, saving, tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.registry import (
    fallback,
    method,
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
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library import losses
from gradlint.library.containers import fill_container
from gradlint.library.layer_effects import LayerEffect, layer
from gradlint.library.modules import cast_module
from gradlint.library.parameters import make_parameter
from gradlint.library.phases import lets_through
from gradlint.library.results import INDICES
from gradlint.library.structure import (
    CONTAINERS,
    MODULE,
    contained,
    is_module,
    is_parameter,
    named_parameters,
)
from gradlint.tape import DType

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
PACKED = "torch.nn.utils.rnn.PackedSequence"
_MOST_LAYERS = 8  # of a recurrent network, whose parameters are told apart


@fallback
def make_layer(m: Machine, call: Call) -> Abstract | None:
    """`nn.Linear(…)` and every other layer of the table."""
    short = call.name.rpartition(".")[2]
    if (
        not call.name.startswith("torch.nn.")
        or not short[:1].isupper()
        or short.endswith("Parameter")
    ):
        return None
    effect = layer(call.name)
    made = Object(
        call.name, call.frame.span(call.node), {"effect": effect}, module=tape.Module(f"<{short}>")
    )
    made.state["inplace"] = _is_in_place(m, effect, call)
    made.state["arguments"] = _by_name(effect, call)
    made.state["settings"] = _settings(effect, call)
    if effect is None or effect.has_parameters or call.name.startswith("torch.nn.utils"):
        names = _parameter_names(effect, call)
        made.state["parameters"] = {
            name: make_parameter(m, name, made.module, call) for name in names
        }
    _inner_modules(made, call)
    wanted = dtype_of(call.kwargs.get("dtype"))
    if wanted in (DType.HALF, DType.BFLOAT):
        cast_module(m, made, wanted, call)
    return made


@fallback
def embedded(m: Machine, call: Call) -> Abstract | None:
    """`nn.Embedding.from_pretrained(vectors)`: an embedding whose weight is frozen, unless
    `freeze=False`.
    """
    cls, _, made_by = call.name.rpartition(".")
    if cls not in ("torch.nn.Embedding", "torch.nn.EmbeddingBag") or made_by != "from_pretrained":
        return None
    freeze = call.constant(1, "freeze", True if call.get(1, "freeze") is None else None)
    if not isinstance(freeze, bool):
        return None
    made = Object(
        cls, call.frame.span(call.node), {"effect": layer(cls)}, module=tape.Module(f"<{cls}>")
    )
    made.state["arguments"] = {}
    weight = make_parameter(m, "weight", made.module, call, requires_grad=not freeze)
    made.state["parameters"] = {"weight": weight}
    return made


def _by_name(effect: LayerEffect | None, call: Call) -> dict[str, Abstract]:
    """What a layer is made with by name, and what of the rest decides what it does."""
    names = [name for name, _ in effect.positions] if effect is not None else []
    given = ((name, call.get(_position(effect, name, call), name)) for name in names)
    return {**call.kwargs, **{name: value for name, value in given if value is not None}}


def _settings(effect: LayerEffect | None, call: Call) -> dict[str, Abstract]:
    """What a layer keeps of its arguments: `dropout.p`, `linear.in_features`."""
    made: dict[str, Abstract] = {}
    for name, place, default in effect.settings if effect is not None else ():
        given = call.get(place, name)
        if given is not None:
            made[name] = given
        elif default is not ... and not call.open:
            made[name] = Const(default)
    return made


def _parameter_names(effect: LayerEffect | None, call: Call) -> list[str]:
    """The names of a layer's own parameters; a `*` stands for what is not known of a name."""
    names = (effect.parameters if effect is not None else ()) or ("weight", "bias")
    if _is_off(effect, "affine", call) or _is_off(effect, "elementwise_affine", call):
        return []
    if _is_off(effect, "bias", call):
        names = tuple(name for name in names if "bias" not in name)
    numbered = [name for name in names if "#" in name]
    counted = [name.replace("#", each) for each in _layer_numbers(call) for name in numbered]
    return counted + [name for name in names if "#" not in name]


def _layer_numbers(call: Call) -> list[str]:
    """What stands for `#` in `weight_ih_l#` of a recurrent network: `0`, `0_reverse`, `1`, …"""
    count = call.constant(2, "num_layers", 1 if call.get(2, "num_layers") is None else None)
    is_known = isinstance(count, int) and 0 < count <= _MOST_LAYERS
    numbers = [str(number) for number in range(count)] if is_known else ["*"]
    ends = ("", "_reverse") if call.constant(None, "bidirectional") is True else ("",)
    return [number + end for number in numbers for end in ends]


def _is_off(effect: LayerEffect | None, argument: str, call: Call) -> bool:
    """Whether a layer is made without what an argument asks for."""
    given = call.get(_position(effect, argument, call), argument)
    if given is None:
        return effect is not None and effect.on_request and argument == "affine"
    return isinstance(given, Const) and given.value is False


def _position(effect: LayerEffect | None, argument: str, call: Call) -> int | None:
    """Where a layer takes an argument; a lazy one is not told its inputs, which stand first."""
    position = dict(effect.positions).get(argument) if effect is not None else None
    is_lazy = call.name.rpartition(".")[2].startswith("Lazy")
    return position - 1 if position is not None and is_lazy else position


def _is_in_place(m: Machine, effect: LayerEffect | None, call: Call) -> bool:
    """Whether a layer writes into its input; either, where nothing says which."""
    given = call.get(_position(effect, "inplace", call), "inplace")
    if isinstance(given, Unknown) and effect is not None and effect.takes_inplace:
        named = call.node.kwargs if isinstance(call.node, ir.Call) else ()
        written = next((node for name, node in named if name == "inplace"), call.node)
        return conditions.decide(m, given, written, call.frame, default=False, writes=True)
    return isinstance(given, Const) and given.value is True


def _inner_modules(made: Object, call: Call) -> None:
    """Modules given to a layer (`nn.TransformerEncoder(layer, n)`) are parts of it, by a name that
    is not known.
    """
    for position, value in enumerate(call.values):
        if is_module(value):
            made.attrs[f"*{position}"] = value


@method(MODULE, "__init__")
def initialise(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`super().__init__()`; a container keeps what it is given, a layer makes its parameters."""
    for base in module.cls.libraries() if isinstance(module, Instance) else ():
        if base in CONTAINERS:
            fill_container(m, module, base, call)
    effect = layer(call.name)
    if isinstance(module, Instance) and effect is not None and effect.has_parameters:
        _become(m, module, effect, call)
    return NONE


def _become(m: Machine, module: Instance, effect: LayerEffect, call: Call) -> None:
    """Makes an object of the program the layer that its class is derived from, where that has all
    of its parameters by itself.
    """
    if all(map(str.isidentifier, effect.parameters)):
        module.state["effect"], module.state["arguments"] = effect, dict(call.kwargs)
        own = {
            name: make_parameter(m, name, module.module, call)
            for name in _parameter_names(effect, call)
        }
        module.state["settings"] = _settings(effect, call)
        module.attrs |= {name: own.get(name, NONE) for name in effect.parameters}


@fallback
def init(m: Machine, call: Call) -> Abstract | None:
    """`nn.init.*`: writes a parameter under no_grad."""
    if not call.name.startswith("torch.nn.init."):
        return None
    if call.args and isinstance(call.args[0], Tensor) and call.name.endswith("_"):
        before = m.grad
        m.grad = type(before)(False, before.inference)
        try:
            memory.write(m, call.args[0], call.name, [], call.node, call.frame)
        finally:
            m.grad = before
    return call.args[0] if call.args else NONE


@method(MODULE, "__call__", "forward")
def call_module(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """A layer does what the table says; a module that is not known is assumed to carry gradient."""
    effect = module.state.get("effect")
    if not isinstance(effect, LayerEffect) or effect.container:
        return call_unknown_layer(m, module, call)
    own = _weights(m, module, call)
    if effect.takes_inplace and module.state.get("inplace") and call.args:
        return _in_place(m, module, effect, call)
    result = layer_result(m, module, effect, own, call)
    made = tensors.sources(m, [result], call.node, call.frame)
    m.emit(
        tape.ModuleCall(
            at=call.frame.span(call.node),
            module=_of(module),
            result=made[0] if made else None,
            trainable=bool(own),
        )
    )
    return result


def _weights(m: Machine, module: Instance | Object, call: Call) -> list[Tensor]:
    """What a layer computes with: its parameters, or what a functional call has put in their
    place.
    """
    # it can have others beside them, which the layer knows nothing of
    if isinstance(module, Instance):
        own = [module.attrs.get(name) for name in module.state["effect"].parameters]
        return [part for part in own if isinstance(part, Tensor)]
    placed = (module.state.get("parameters") or {}).values()
    others = [part for part in placed if isinstance(part, Tensor) and not is_parameter(part)]
    return [*others, *(tensor for _, tensor in named_parameters(m, module, call))]


def _of(module: Instance | Object) -> tape.Module:
    return module.module or tape.Module("module")


def call_unknown_layer(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    own = [tensor.node for _, tensor in named_parameters(m, module, call)]
    inputs = tensors.sources(m, call.values, call.node, call.frame)
    made = tensors.operation(m, "call", [*inputs, *own], call.node, call.frame)
    made.storage = tape.Storage()
    if not inputs and not own:
        made.requires_grad = made.assumed = m.grad.enabled
    result = Unknown(Symbol(call.frame.text(call.node)))
    m.nodes[result.symbol] = made
    m.emit(tape.ModuleCall(at=call.frame.span(call.node), module=_of(module), result=made))
    return result


def _in_place(m: Machine, module: Instance | Object, effect: LayerEffect, call: Call) -> Abstract:
    if lets_through(m, module, effect):
        return call.args[0]
    value = tensors.as_tensor(m, call.args[0], call.node, call.frame)
    return memory.write(
        m,
        value,
        f"{module.cls if isinstance(module, Object) else effect.name}(inplace=True)",
        [],
        call.node,
        call.frame,
        effect=effect.in_place(),
    )


def layer_result(
    m: Machine, module: Instance | Object, effect: LayerEffect, own: list[Tensor], call: Call
) -> Abstract:
    """What a layer gives: one tensor, or the parts that the table names, of one operation."""
    cls = module.cls if isinstance(module, Object) else f"torch.nn.{effect.name}"
    if call.args and lets_through(m, module, effect):
        return call.args[0]
    if call.args and effect.effect.view in ("always", "ordered"):
        shown = tensors.as_tensor(m, call.args[0], call.node, call.frame)
        if effect.effect.view == "always" or layouts.is_in_order(m, shown.node):
            if effect.effect.itself:
                return shown
            return memory.view(m, shown, cls, call.node, call.frame)
    made = _computed(m, module, effect, own, cls, call)
    if not effect.outputs:
        return _with_indices(m, module, cls, made, call)
    return _in_parts(m, effect.outputs, made, call)


def _computed(
    m: Machine,
    module: Instance | Object,
    effect: LayerEffect,
    own: list[Tensor],
    cls: str,
    call: Call,
) -> Tensor:
    """What a layer computes, with its parameters among the inputs."""
    kwargs = {**call.kwargs, "weight": own[0]} if own else call.kwargs
    losses.refuses(m, cls, call)
    made = tensors.apply(m, cls, call.args, call.node, call.frame, effect.effect, kwargs=kwargs)
    if effect.integer_input and not (own and own[0].node.requires_grad):
        _look_up(made.node)
    extra = [tensor.node for tensor in own[1:]]
    made.node.inputs += tuple(extra)
    # a bias that requires grad is enough for the output to require it
    is_trained = any(node.requires_grad for node in extra) and m.grad.enabled
    if is_trained and not made.node.requires_grad:
        made.node.requires_grad, made.node.cut = True, None
    made.node.flags |= _flags(module, effect)
    losses.computed(m, cls, made.node, call.frame.text(call.node))
    return made


def _in_parts(
    m: Machine, outputs: tuple[str | tuple[str, ...], ...], made: Tensor, call: Call
) -> Sequence:
    """The tensors of a layer that gives several: `output, (hidden, cell) = lstm(x)`."""
    first = memory.part(m, made, 0, call.node, call.frame)
    if any(saved.role == "result" for saved in made.node.saves):
        made.node.saves = tuple(saved for saved in made.node.saves if saved.role != "result")
        saving.save(made.node, [first.node], "result")
    others = (memory.part(m, made, number, call.node, call.frame) for number in itertools.count(1))
    parts = itertools.chain([first], others)
    built: list[Abstract] = [
        Sequence("tuple", [next(parts) for _ in named]) if isinstance(named, tuple) else next(parts)
        for named in outputs
    ]
    given = call.args[0] if call.args else None
    if isinstance(given, Object) and given.cls == PACKED:  # a packed sequence gives one
        built[0] = Object(PACKED, call.frame.span(call.node), {"loc": first})
    return Sequence("tuple", built)


def _look_up(made: tape.Value) -> None:
    """Rows of a table that is not trained: no gradient goes to the integers that they are chosen
    by, whatever was assumed of these.
    """
    made.requires_grad = made.assumed = False
    made.cut, made.saves = None, ()
    made.flags |= {tape.LOOKUP}


def _with_indices(
    m: Machine, module: Instance | Object, cls: str, made: Tensor, call: Call
) -> Abstract:
    """What a layer gives, or two where it was made with `return_indices=True`: indices have no
    gradient.
    """
    asked = module.state.get("arguments", {}).get("return_indices")
    if not (isinstance(asked, Const) and asked.value is True):
        return made
    indices = tensors.apply(m, f"{cls}.indices", call.args, call.node, call.frame, INDICES)
    return Sequence("tuple", [made, indices])


_ACTIVATIONS = {"Softmax": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax"}


def _flags(module: Instance | Object, effect: LayerEffect) -> frozenset[str]:
    found = {_ACTIVATIONS[effect.name]} if effect.name in _ACTIVATIONS else set()
    reduction = module.state.get("arguments", {}).get("reduction")
    if isinstance(reduction, Const) and reduction.value in ("sum", "none"):
        found.add(f"{reduction.value}-reduction")
    return frozenset(found)


@method("torch.nn.Sequential", "__call__", "forward")
def call_sequential(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """Each module on the result of the one before."""
    items = module.state.get("items")
    value = call.args[0] if call.args else NONE
    for position, (_, part) in enumerate(contained(items)):
        m.spend(call.frame.span(call.node))
        args = call.args if position == 0 else [value]
        value = m.invoke(part, list(args), call)
        if isinstance(part, Object) and isinstance(value, Tensor):
            value.node.layer_at = value.node.layer_at or part.at
    if isinstance(items, Sequence) and items.open:
        value = call_unknown_layer(m, module, Call(call.name, [value], {}, call.node, call.frame))
    return value


@typed("torch.nn.Module")
def typed_module(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, type="module")
