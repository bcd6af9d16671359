"""`torch.nn`: modules, what they are made of, and what calling a layer does."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import conditions, layouts, tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.iteration import iterates
from gradlint.interpret.registry import (
    alias,
    attribute,
    canonical,
    fallback,
    function,
    method,
    tell,
    typed,
)
from gradlint.interpret.storage import name_value
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
    Symbol,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library import losses
from gradlint.library.autograd import clears, refuse_in_transform
from gradlint.library.devices import place
from gradlint.library.effects import LayerEffect, layer
from gradlint.library.flags import set_requires_grad
from gradlint.library.python.results import argument
from gradlint.library.results import INDICES
from gradlint.tape import DType, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine, Visit

MODULE = "torch.nn.Module"
CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)
HANDLE = "torch.utils.hooks.RemovableHandle"
alias("torch.nn.modules", "torch.nn")
alias("torch.nn.modules.module", "torch.nn")
alias("torch.nn.parameter", "torch.nn")


def is_module(value: Abstract) -> bool:
    """Whether a value is a module as far as is known."""
    if isinstance(value, Object):
        return value.module is not None
    return isinstance(value, Instance) and value.module is not None


def module_of(m: Machine, value: Abstract, call: Call) -> tape.Module | None:
    """The module on the tape behind a value."""
    if isinstance(value, Instance | Object):
        return value.module
    if isinstance(value, Unknown):
        own = tensors.leaf(m, value.symbol, call.node, call.frame)
        return own.parameter.module if own.parameter is not None else None
    return None


# making modules


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
    made.state["arguments"] = dict(call.kwargs)
    if effect is None or effect.has_parameters or call.name.startswith("torch.nn.utils"):
        names = _parameter_names(effect, call)
        made.state["parameters"] = {
            name: make_parameter(m, name, made.module, call) for name in names
        }
    _inner_modules(made, call)
    wanted = dtype_of(call.kwargs.get("dtype"))
    if wanted in (DType.HALF, DType.BFLOAT):
        _cast(m, made, wanted, call)
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


def _parameter_names(effect: LayerEffect | None, call: Call) -> list[str]:
    """The names of a layer's own parameters; a `*` stands for what is not known of a name."""
    names = (effect.parameters if effect is not None else ()) or ("weight", "bias")
    if _is_off(effect, "affine", call) or _is_off(effect, "elementwise_affine", call):
        return []
    if _is_off(effect, "bias", call):
        names = tuple(name for name in names if "bias" not in name)
    count = call.constant(2, "num_layers", 1 if call.get(2, "num_layers") is None else None)
    numbers = (
        [str(i) for i in range(count)]
        if isinstance(count, int) and 0 < count <= _MOST_LAYERS
        else ["*"]
    )
    ends = ("", "_reverse") if call.constant(None, "bidirectional") is True else ("",)
    each = [number + end for number in numbers for end in ends]
    counted = [name.replace("#", layer) for layer in each for name in names if "#" in name]
    return counted + [name for name in names if "#" not in name]


PACKED = "torch.nn.utils.rnn.PackedSequence"
_MOST_LAYERS = 8  # of a recurrent network, whose parameters are told apart


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
    if source is not None and source.dtype in (DType.DOUBLE, DType.HALF, DType.BFLOAT):
        made.node.dtype = source.dtype
    return made


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


@method(MODULE, "__init__")
def initialise(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`super().__init__()`; a container keeps what it is given, a layer makes its parameters."""
    for base in module.cls.libraries() if isinstance(module, Instance) else ():
        if base in CONTAINERS:
            _fill(m, module, base, call)
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
        module.attrs |= {name: own.get(name, NONE) for name in effect.parameters}


def _fill(m: Machine, module: Instance | Object, kind: str, call: Call) -> None:
    items: Sequence | Mapping
    if kind == "torch.nn.Sequential":
        if len(call.args) == 1 and isinstance(call.args[0], Mapping):
            items = Mapping(dict(call.args[0].items), call.args[0].open)
        else:
            items = Sequence("list", list(call.args), call.open)
    elif kind in ("torch.nn.ModuleDict", "torch.nn.ParameterDict"):
        given = call.args[0] if call.args else None
        items = (
            Mapping(dict(given.items), given.open)
            if isinstance(given, Mapping)
            else Mapping({}, open=given is not None)
        )
    else:
        given = call.args[0] if call.args else None
        items = Sequence(
            "list",
            m.items(given, call) if given is not None else [],
            isinstance(given, Unknown) or getattr(given, "open", False),
        )
    if kind in _OF_PARAMETERS:
        _make_parameters(m, items, call)
    module.state["items"] = items
    for name, child in contained(items):
        adopt(module, name, child)


_OF_PARAMETERS = ("torch.nn.ParameterList", "torch.nn.ParameterDict")


def _make_parameters(m: Machine, items: Sequence | Mapping, call: Call) -> None:
    """Tensors that a list or dict of parameters is given become parameters there."""
    held: list[tuple[Any, Abstract]]
    held = (
        list(enumerate(items.items)) if isinstance(items, Sequence) else list(items.items.items())
    )
    for key, item in held:
        if isinstance(item, Tensor) and item.node.kind in (
            Kind.CONSTANT,
            Kind.OPERATION,
            Kind.DATA,
        ):
            items.items[key] = parameter(
                m, Call("torch.nn.Parameter", [item], {}, call.node, call.frame)
            )


@function(*CONTAINERS)
def container(m: Machine, call: Call) -> Abstract:
    module = tape.Module(f"<{call.name.rpartition('.')[2]}>", is_container=True)
    made = Object(call.name, call.frame.span(call.node), module=module)
    _fill(m, made, call.name, call)
    return made


def contained(items: Abstract | None) -> Iterator[tuple[str, Abstract]]:
    """What a container holds, by name."""
    if isinstance(items, Sequence):
        yield from ((str(position), item) for position, item in enumerate(items.items))
    elif isinstance(items, Mapping):
        yield from ((str(key), item) for key, item in items.items.items())


def adopt(owner: Instance | Object, name: str, child: Abstract) -> None:
    """Gives a part of a module its place, once."""
    if owner.module is None or owner is child:
        return
    if (
        isinstance(child, Instance | Object)
        and child.module is not None
        and child.module.parent is None
    ):
        child.module.name, child.module.parent = name, owner.module
    elif (
        isinstance(child, Tensor)
        and child.node.parameter is not None
        and child.node.parameter.module is None
    ):
        child.node.parameter.name, child.node.parameter.module = name, owner.module
        child.node.name = child.node.name or name


@method(MODULE, "__set_*__")
def set_attribute(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`module.name = value`, in a container also in the place of the item of that name."""
    from gradlint.library import holdings

    if call.name == "requires_grad":
        holdings.freezes_module(m, module, call)
    elif call.name in holdings.MISSPELT:
        holdings.misspelt(m, module, call)
    elif call.name == "training":
        _put_in_mode(m, module, call)
    adopt(module, call.name, call.args[0])
    holdings.attached(m, module, call.name, call.args[0], call)
    module.state["unregistered"] = module.state.get("unregistered", frozenset()) - {call.name}
    items = module.state.get("items")
    if isinstance(items, Sequence) and call.name.isdecimal() and int(call.name) < len(items.items):
        items.items[int(call.name)] = call.args[0]
    elif isinstance(items, Mapping) and call.name in items.items:
        items.items[call.name] = call.args[0]
    elif is_module(call.args[0]) and _kind(module) == "torch.nn.Sequential":
        named = _named_items(module)
        if named is not None:
            named.items[call.name] = call.args[0]  # it runs with the others
    else:
        module.attrs[call.name] = call.args[0]
    return NONE


def _put_in_mode(m: Machine, module: Instance | Object, call: Call) -> None:
    """`module.training = mode`, of this module alone: a program that puts modes back does so for
    every part.
    """
    from gradlint.library.phases import tell_mode

    told = conditions.truth(m, call.args[0])
    module.state["training"] = told
    if told is not False:
        tell_mode(m, module, told, call)


# what a module is made of


def parts(value: Abstract) -> list[tuple[str, Abstract]]:
    """The registered parts of a module by name: modules, and parameters of its own."""
    if not isinstance(value, Instance | Object):
        return []
    own = value.state.get("parameters")
    held = dict(contained(value.state["items"])) if "items" in value.state else {}
    others: frozenset[str] = value.state.get("unregistered", frozenset())
    found = [*own.items(), *held.items()] if isinstance(own, dict) else list(held.items())
    for name, part in value.attrs.items():
        if (
            type(part) in _REGISTERED
            and _is_registered(part)
            and name not in held
            and name not in others
        ):
            found.append((name, part))
    return found


_REGISTERED = frozenset([Instance, Object, Tensor, Unknown])  # what can be a module or a parameter


def _is_registered(part: Abstract) -> bool:
    """Whether a module registers what becomes an attribute of it."""
    if isinstance(part, Instance | Object):
        return part.module is not None
    if isinstance(part, Tensor):
        return part.node.parameter is not None and is_parameter(part)
    return isinstance(part, Unknown) and _may_be_module(part)


def is_parameter(tensor: Tensor) -> bool:
    return tensor.node.kind is Kind.PARAMETER


def _may_be_module(part: Unknown) -> bool:
    return (
        part.type in ("", "module") and not part.data and part.test is None and part.origin is None
    )


def named_parameters(
    m: Machine, value: Abstract, call: Call, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Every parameter of a module, depth first, each once; those of an unknown part as one."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    for name, part in parts(value):
        full = f"{prefix}{name}"
        if isinstance(part, Tensor):
            if id(part) not in seen and is_parameter(part):
                seen.add(id(part))
                yield full, part
        elif isinstance(part, Unknown):
            yield full, unknown_parameters(m, part, call)
        else:
            yield from named_parameters(m, part, call, f"{full}.", seen)
    if isinstance(value, Instance) and (value.cls.has_unknown_base or _is_kind_of_layer(value)):
        yield f"{prefix}*", unknown_parameters(m, Unknown(m.symbol(value)), call)


def _is_kind_of_layer(module: Instance) -> bool:
    """Whether its class is derived from a layer of torch that has parameters, which are not told
    one by one.
    """
    if "effect" in module.state:
        return False
    bases = [canonical(base) for base in module.cls.libraries()]
    layers = [
        base for base in bases if base.startswith("torch.nn.") and base not in (MODULE, *CONTAINERS)
    ]
    return any(effect is None or effect.has_parameters for effect in map(layer, layers))


def unknown_parameters(m: Machine, unknown: Unknown, call: Call) -> Tensor:
    """The parameters of an unknown module, as one tensor."""
    unknown.data = False  # what was loaded is a module
    own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    assert own.parameter is not None
    return m.parameters.setdefault(own.parameter, Tensor(own))


def modules(
    value: Abstract, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Abstract]]:
    """The module and every module below it, by name."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield prefix.rstrip("."), value
    for name, part in parts(value):
        if is_module(part):
            yield from modules(part, f"{prefix}{name}.", seen)


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


@method(MODULE, "children", "modules")
def submodules(m: Machine, module: Abstract, call: Call) -> Abstract:
    found = modules(module) if call.called == "modules" else _children(module)
    return Sequence("generator", [part for _, part in found])


@method(MODULE, "named_children", "named_modules")
def named_submodules(m: Machine, module: Abstract, call: Call) -> Abstract:
    found = modules(module) if call.called == "named_modules" else _children(module)
    return Sequence("generator", [Sequence("tuple", [Const(name), part]) for name, part in found])


def _children(module: Abstract) -> Iterator[tuple[str, Abstract]]:
    """The modules that a module is made of, each once."""
    seen: set[int] = set()
    for name, part in parts(module):
        if is_module(part) and id(part) not in seen:
            seen.add(id(part))
            yield name, part


@method(MODULE, "buffers", "named_buffers")
def buffers(m: Machine, module: Abstract, call: Call) -> Abstract:
    made: Abstract = tensors.batch(m, "buffer", call.node, call.frame)
    named = Sequence("tuple", [m.unknown("name", data=True, type="str"), made])
    return Sequence("generator", [named if call.called == "named_buffers" else made])


@method(MODULE, "state_dict")
def state_dict(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Names and detached tensors that share the parameters' memory."""
    items: dict[object, Abstract] = {}
    for name, tensor in named_parameters(m, module, call):
        items[name] = tensors.detach(m, tensor, "torch.nn.Module.state_dict", call.node, call.frame)
    buffer = tensors.batch(m, "buffer", call.node, call.frame)
    return Mapping(
        items, open=True, symbol=m.symbol(module).derive("state_dict", "state_dict"), rest=buffer
    )


@method(MODULE, "load_state_dict")
def load_state_dict(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Copies values into the parameters of a module, under the names that are known."""
    from gradlint.library import holdings

    given = call.get(0, "state_dict")
    items = given.items if isinstance(given, Mapping) else {}
    for name, parameter in named_parameters(m, module, call) if items else ():
        value = items.get(name)
        if isinstance(value, Tensor):
            holdings.loaded(m, parameter, value, call)
    return m.unknown("keys", data=True)


@method(MODULE, "register_buffer")
def register_buffer(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    name, value = call.constant(0, "name"), call.get(1, "tensor") or NONE
    if isinstance(name, str):
        if (
            isinstance(value, Tensor)
            and not value.node.requires_grad
            and value.node.kind is Kind.CONSTANT
        ):
            value.node.kind, value.node.cut = Kind.DATA, None
        name_value(m, value, name)
        module.attrs[name] = value
        module.state.setdefault("buffers", set()).add(name)
        if isinstance(value, Tensor) and value.node.records:
            m.emit(tape.Fact(at=call.frame.span(call.node), what="buffer-set", value=value.node))
    return NONE


@method(MODULE, "register_parameter", "add_module", "register_module")
def register(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    name, value = call.get(0, "name"), call.args[1] if len(call.args) > 1 else NONE
    key = str(name.value) if isinstance(name, Const) else f"part{len(module.attrs)}"
    from gradlint.library import holdings

    adopt(module, key, value)
    holdings.attached(m, module, key, value, call)
    module.attrs[key] = value
    return NONE


@method(MODULE, "get_submodule", "get_parameter")
def part_by_name(m: Machine, module: Abstract, call: Call) -> Abstract:
    name = call.constant(0, "target")
    found: Abstract = module
    for piece in name.split(".") if isinstance(name, str) and name else []:
        found = m.attribute(found, piece, call)
    return found if isinstance(name, str) else m.unknown(call.frame.text(call.node))


# what changes a module


@method(MODULE, "train", "eval")
def set_training(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`module.train(mode)`, `module.eval()`: for all of its parts."""
    from gradlint.library.phases import tell_mode

    training: bool | None = call.called != "eval"
    given, told = call.get(0, "mode"), training
    if training and given is not None:
        told = conditions.truth(m, given)
        training = conditions.decide(m, given, call.node, call.frame) if told is None else told
    for _, part in modules(module):
        if isinstance(part, Instance | Object):
            part.state["training"] = training
            part.attrs.pop("training", None)
    m.note("attribute", "training", training)
    tell_mode(m, module, told, call)
    return module


@attribute(MODULE, "training")
def training(m: Machine, module: Instance | Object, at: Call) -> Abstract | None:
    """`self.training`: what was set; in a script, which makes its modules itself, they train until
    something is.
    """
    known = module.state.get("training", True if m.is_script else None)
    return Const(known) if isinstance(known, bool) else None


@method(MODULE, "requires_grad_")
def requires_grad_(m: Machine, module: Abstract, call: Call) -> Abstract:
    refuse_in_transform(m, "requires_grad_", call)
    given = call.get(0, "requires_grad")
    wanted = True if given is None else conditions.truth(m, given)
    if wanted is None and given is not None:
        wanted = conditions.decide(m, given, call.node, call.frame)
    for _, tensor in list(named_parameters(m, module, call)):
        set_requires_grad(m, tensor, bool(wanted), call, "torch.nn.Module.requires_grad_")
    m.note("attribute", "requires_grad", wanted)
    return module


@method(
    MODULE,
    "to",
    "cuda",
    "cpu",
    "float",
    "double",
    "half",
    "bfloat16",
    "type",
    "xpu",
    "to_empty",
    "share_memory",
)
def move(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Moves a module where it is: parameters keep their identity; a cast changes their dtype."""
    place(m, call)
    wanted = cast_of(call)
    if wanted is not None:
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node),
                what="module-cast",
                detail=wanted.value,
                text=call.frame.text(call.node),
            )
        )
        _cast(m, module, wanted, call)
    if "memory_format" in call.kwargs:
        for _, tensor in named_parameters(m, module, call):
            tensor.node.flags |= {layouts.RELAID}
    return module


def _cast(m: Machine, module: Abstract, wanted: DType, call: Call) -> None:
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    for _, tensor in named_parameters(m, module, call):
        if tensor.node.dtype is not wanted:
            tensor.node.dtype = wanted
            m.emit(
                tape.Fact(
                    at=at, what="parameter-cast", value=tensor.node, detail=wanted.value, text=text
                )
            )


def cast_of(call: Call) -> DType | None:
    """The dtype that `.half()` or `.to(torch.float16)` casts to."""
    name = call.called
    if name in ("to", "type"):
        return next(
            (found for value in call.values if (found := dtype_of(value)) is not None), None
        )
    return {
        "half": DType.HALF,
        "bfloat16": DType.BFLOAT,
        "float": DType.FLOAT,
        "double": DType.DOUBLE,
    }.get(name)


@method(MODULE, "zero_grad")
def zero_grad(m: Machine, module: Abstract, call: Call) -> Abstract:
    held = tuple(tensor.node for _, tensor in named_parameters(m, module, call))
    m.emit(
        tape.ZeroGrad(
            at=call.frame.span(call.node),
            optimizer=None,
            parameters=held,
            text=call.frame.text(call.node),
            to_none=clears(call),
        )
    )
    return NONE


@method(MODULE, "apply")
def apply(m: Machine, module: Abstract, call: Call) -> Abstract:
    if call.args:
        for part in list(_inside_out(module, set())):
            m.invoke(call.args[0], [part], call)
    return module


def _inside_out(module: Abstract, seen: set[int]) -> Iterator[Abstract]:
    """The module and every module below it, those that others are made of first."""
    if id(module) not in seen:
        seen.add(id(module))
        for _, part in parts(module):
            if is_module(part):
                yield from _inside_out(part, seen)
        yield module


@method(MODULE, "register_forward_hook", "register_forward_pre_hook")
def register_forward_hook(m: Machine, module: Abstract, call: Call) -> Abstract:
    """`module.register_forward_hook(hook)`: the hook sees each result, and can give another in its
    place.

    A `forward_pre_hook` sees the arguments, and can give others.
    """
    hook = call.get(0, "hook")
    if not isinstance(module, Instance | Object) or hook is None:
        return m.unknown("handle", data=True)
    moment = "forward-pre-hooks" if "_pre_" in call.name else "forward-hooks"
    hooks, entry = (
        module.state.setdefault(moment, []),
        (hook, call.constant(None, "with_kwargs") is True),
    )
    hooks.append(entry)
    return Object(HANDLE, call.frame.span(call.node), {"hooks": hooks, "entry": entry})


@method(HANDLE, "remove", "__exit__")
def remove_hook(m: Machine, handle: Object, call: Call) -> Abstract:
    """`handle.remove()`: from here on the hook is not called."""
    handle.state["hooks"][:] = [
        each for each in handle.state["hooks"] if each is not handle.state["entry"]
    ]
    return NONE


@method(HANDLE, "__enter__")
def with_hook(m: Machine, handle: Object, call: Call) -> Abstract:
    return handle


@method(
    MODULE,
    "register_full_backward_hook",
    "register_backward_hook",
    "extra_repr",
    "compile",
    "_register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
    "set_extra_state",
)
def harmless(m: Machine, module: Abstract, call: Call) -> Abstract:
    tell("data call", m, m.symbol(module), call)
    return m.unknown("handle", data=True)


@fallback
def init(m: Machine, call: Call) -> Abstract | None:
    """`nn.init.*`: writes a parameter under no_grad."""
    if not call.name.startswith("torch.nn.init."):
        return None
    if call.args and isinstance(call.args[0], Tensor) and call.name.endswith("_"):
        before = m.grad
        m.grad = type(before)(False, before.inference)
        try:
            tensors.write(m, call.args[0], call.name, [], call.node, call.frame)
        finally:
            m.grad = before
    return call.args[0] if call.args else NONE


# calling modules


@method(MODULE, "__call__", "forward")
def call_module(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """A layer does what the table says; a module that is not known is assumed to carry gradient."""
    effect = module.state.get("effect")
    if not isinstance(effect, LayerEffect) or effect.container:
        return _call_unknown(m, module, call)
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
    if isinstance(
        module, Instance
    ):  # it can have others beside them, which the layer knows nothing of
        own = [module.attrs.get(name) for name in module.state["effect"].parameters]
        return [part for part in own if isinstance(part, Tensor)]
    placed = (module.state.get("parameters") or {}).values()
    others = [part for part in placed if isinstance(part, Tensor) and not is_parameter(part)]
    return [*others, *(tensor for _, tensor in named_parameters(m, module, call))]


def _of(module: Instance | Object) -> tape.Module:
    return module.module or tape.Module("module")


def _call_unknown(m: Machine, module: Instance | Object, call: Call) -> Abstract:
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
    if effect.training == "dropout" and module.state.get("training") is False:
        return call.args[0]
    value = tensors.as_tensor(m, call.args[0], call.node, call.frame)
    return tensors.write(
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
    if effect.effect.view in ("always", "ordered") and call.args:
        shown = tensors.as_tensor(m, call.args[0], call.node, call.frame)
        if effect.effect.view == "always" or layouts.is_in_order(m, shown.node):
            return (
                shown
                if effect.effect.itself
                else tensors.view(m, shown, cls, call.node, call.frame)
            )
    kwargs = {**call.kwargs, "weight": own[0]} if own else call.kwargs
    losses.refuses(m, cls, call)
    made = tensors.apply(m, cls, call.args, call.node, call.frame, effect.effect, kwargs=kwargs)
    extra = [tensor.node for tensor in own[1:]]
    made.node.inputs += tuple(extra)
    if any(node.requires_grad for node in extra) and m.grad.enabled and not made.node.requires_grad:
        made.node.requires_grad, made.node.cut = True, None
    made.node.flags |= _flags(module, effect)
    losses.computed(m, cls, made.node, call.frame.text(call.node))
    if not effect.outputs:
        return _with_indices(m, module, cls, made, call)
    first = tensors.part(m, made, 0, call.node, call.frame)
    if any(saved.role == "result" for saved in made.node.saves):
        made.node.saves = tuple(saved for saved in made.node.saves if saved.role != "result")
        tensors.save(made.node, [first.node], "result")
    others = (tensors.part(m, made, number, call.node, call.frame) for number in itertools.count(1))
    parts = itertools.chain([first], others)
    built: list[Abstract] = [
        Sequence("tuple", [next(parts) for _ in named]) if isinstance(named, tuple) else next(parts)
        for named in effect.outputs
    ]
    if (
        call.args and isinstance(call.args[0], Object) and call.args[0].cls == PACKED
    ):  # a packed sequence gives one
        built[0] = Object(PACKED, call.frame.span(call.node), {"loc": first})
    return Sequence("tuple", built)


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
        value = _call_unknown(m, module, Call(call.name, [value], {}, call.node, call.frame))
    return value


# containers as containers


@method(CONTAINERS, "__getitem__")
def container_item(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    from gradlint.interpret.subscripts import item

    items = module.state.get("items", Sequence("list", [], True))
    if (
        isinstance(items, Mapping)
        and call.args
        and isinstance(call.args[0], Const)
        and isinstance(call.args[0].value, int)
    ):
        items = Sequence("list", list(items.items.values()), items.open)
    found = item(m, items, call.args[0], call.node, call.frame) if call.args else NONE
    if isinstance(found, Sequence):
        made = Object(
            "torch.nn.Sequential"
            if _kind(module) == "torch.nn.Sequential"
            else "torch.nn.ModuleList",
            call.frame.span(call.node),
        )
        made.module = tape.Module("slice", module.module)
        made.state["items"] = found
        return made
    return found


def _kind(module: Instance | Object) -> str:
    if isinstance(module, Object):
        return module.cls
    return next((base for base in module.cls.libraries() if base in CONTAINERS), "")


@method(CONTAINERS, "__setitem__")
def set_container_item(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    items, index, value = module.state.get("items"), argument(m, call), argument(m, call, 1)
    from gradlint.library import holdings

    name = str(index.value) if isinstance(index, Const) else "item"
    adopt(module, name, value)
    holdings.attached(m, module, name, value, call)
    if isinstance(items, Mapping) and isinstance(index, Const):
        names = dict(enumerate(items.items)) if _kind(module) == "torch.nn.Sequential" else {}
        items.items[names.get(index.value, index.value)] = value
    elif (
        isinstance(items, Sequence)
        and isinstance(index, Const)
        and isinstance(index.value, int)
        and -len(items.items) <= index.value < len(items.items)
    ):
        items.items[index.value] = value
    elif isinstance(items, Mapping):
        items.items["unknown", m.symbol(index)] = value
    return NONE


@method(CONTAINERS, "append", "insert", "add_module", "extend", "update")
def add_to_container(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    from gradlint.library import holdings

    name = call.called
    items = _named_items(module) if name == "add_module" else module.state.get("items")
    given = call.args[-1] if call.args else NONE
    new = m.items(given, call) if name == "extend" else [given]
    if name == "update" and isinstance(items, Mapping):
        held = given.state.get("items") if isinstance(given, Instance | Object) else given
        others = held if isinstance(held, Mapping) else Mapping({}, open=True)
        items.items.update(others.items)
        items.open = items.open or others.open
        new = list(others.items.values())
    elif (
        isinstance(items, Sequence)
        and name == "insert"
        and isinstance(call.constant(0, "index"), int)
    ):
        items.items.insert(call.constant(0, "index"), given)
    elif isinstance(items, Sequence):
        items.extend(new)
    elif isinstance(items, Mapping) and isinstance(first := argument(m, call), Const):
        items.items[first.value] = given
    offset = len(items.items) - len(new) if isinstance(items, Sequence | Mapping) else 0
    for position, part in enumerate(new):
        told = call.constant(0, "name") if name == "add_module" else None
        key = str(offset + position if told is None else told)
        adopt(module, key, part)
        holdings.attached(m, module, key, part, call)
    m.note("item", "append", len(new))
    return module


@method(CONTAINERS, "pop", "__delitem__")
def take_out(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`layers.pop(i)`, `del layers[i]`: what is known to go, goes."""
    items = module.state.get("items")
    if not isinstance(items, Sequence | Mapping):
        return m.unknown(call.frame.text(call.node))
    return m.call(m.attribute(items, "pop", call), call)


def _named_items(module: Instance | Object) -> Mapping | None:
    """The items of a container by name: `add_module` gives one to each, beside the numbers of those
    before.
    """
    items = module.state.get("items")
    if isinstance(items, Sequence):
        items = module.state["items"] = Mapping(dict(contained(items)), items.open)
    return items if isinstance(items, Mapping) else None


@method(CONTAINERS, "__len__")
def container_length(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    items = module.state.get("items")
    if isinstance(items, Sequence | Mapping) and not items.open:
        return Const(len(items.items))
    return Unknown(m.symbol(module).derive("len", "len"), data=True, type="number")


@method(
    ("torch.nn.ModuleDict", "torch.nn.ParameterDict"), "items", "keys", "values", "__contains__"
)
def dict_methods(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    items = module.state.get("items")
    return (
        m.call(m.attribute(items, call.called, call), call)
        if isinstance(items, Mapping)
        else m.unknown("items")
    )


@iterates(*CONTAINERS)
def iterate(m: Machine, module: Instance | Object, visit: Visit, call: Call) -> None:
    items = module.state.get("items", Sequence("list", [], True))
    if isinstance(items, Mapping) and _kind(module) in (
        "torch.nn.Sequential",
        "torch.nn.ModuleList",
    ):
        items = Sequence("list", list(items.items.values()), items.open)
    m.iterate(items, visit, call)


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
        return NONE  # the inverse of what computes it finds its way to the parameter
    module.state.setdefault("instead", {}).pop(call.name, None)
    if isinstance(call.args[0], Unknown):
        module.state["instead"][call.name] = call.args[0]
    if isinstance(module, Object) and isinstance(call.args[0], Const):
        module.state.get("parameters", {}).pop(call.name, None)
    if isinstance(module, Object) and isinstance(call.args[0], Tensor):
        from gradlint.library import holdings

        adopt(module, call.name, call.args[0])
        holdings.attached(m, module, call.name, call.args[0], call)
        module.state.setdefault("parameters", {})[call.name] = call.args[0]
    return NONE


@method(MODULE, "__set_requires_grad__")
def freeze_in_vain(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`module.requires_grad = False` sets an attribute that nobody reads."""
    from gradlint.library import holdings

    holdings.freezes_module(m, module, call)
    module.attrs["requires_grad"] = call.args[0]
    return NONE


@typed("torch.nn.Module")
def typed_module(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, type="module")


@typed("torch.Tensor")
def typed_tensor(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, type="tensor")


@typed("torch.device", "torch.dtype")
def typed_plain(m: Machine, symbol: Symbol, function_: Function, parameter_: object) -> Abstract:
    return Unknown(symbol, data=True, type="object")
