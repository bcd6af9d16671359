"""What a module is made of: its parts, the modules below it, and their parameters by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import canonical
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Call,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.layer_effects import layer
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MODULE = "torch.nn.Module"
CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)


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


def contained(items: Abstract | None) -> Iterator[tuple[str, Abstract]]:
    """What a container holds, by name; keys that are not known may read the same."""
    if isinstance(items, Sequence):
        yield from ((str(position), item) for position, item in enumerate(items.items))
    elif isinstance(items, Mapping):
        names: set[str] = set()
        for position, (key, item) in enumerate(items.items.items()):
            name = str(key) if str(key) not in names else f"{key} {position}"
            names.add(name)
            yield name, item


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
            yield from parameters_put_on(m, part.symbol, call, f"{full}.", seen)
        else:
            yield from named_parameters(m, part, call, f"{full}.", seen)
    if isinstance(value, Instance) and (value.cls.has_unknown_base or _is_kind_of_layer(value)):
        yield f"{prefix}*", unknown_parameters(m, Unknown(m.symbol(value)), call)


def parameters_put_on(
    m: Machine, module: Symbol, call: Call, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """The parameters that the program has put on something unknown, or on a part of it:
    `encoder.neck.proj = nn.Linear(8, 8)`.
    """
    seen = set() if seen is None else seen
    for owner, held in list(m.overrides.items()):
        if not _is_in(owner, module):
            continue
        for key, part in held.items():
            name = f"{prefix}{key.removeprefix('attribute:')}"
            if isinstance(part, Tensor) and is_parameter(part) and id(part) not in seen:
                seen.add(id(part))
                yield name, part
            elif isinstance(part, Instance | Object) and part.module is not None:
                yield from named_parameters(m, part, call, f"{name}.", seen)


def _is_in(part: Symbol, module: Symbol) -> bool:
    inner: Symbol | None = part
    while inner is not None and inner is not module:
        inner = inner.source
    return inner is not None


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


def container_kind(module: Instance | Object) -> str:
    if isinstance(module, Object):
        return module.cls
    return next((base for base in module.cls.libraries() if base in CONTAINERS), "")


def named_items(module: Instance | Object) -> Mapping | None:
    """The items of a container by name: `add_module` gives one to each, beside the numbers of those
    before.
    """
    items = module.state.get("items")
    if isinstance(items, Sequence):
        items = module.state["items"] = Mapping(dict(contained(items)), items.open)
    return items if isinstance(items, Mapping) else None
