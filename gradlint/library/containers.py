"""Containers of modules and parameters: `nn.Sequential`, `nn.ModuleList`, `nn.ParameterDict`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret.iteration import iterates
from gradlint.interpret.registry import (
    function,
    method,
)
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import holdings
from gradlint.library.members import adopt
from gradlint.library.parameters import parameter
from gradlint.library.python.results import argument
from gradlint.library.structure import CONTAINERS, contained, container_kind, named_items
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.tables import Visit


def fill_container(m: Machine, module: Instance | Object, kind: str, call: Call) -> None:
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
            given.rest if isinstance(given, Sequence) else None,
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


_LONG = 64  # more layers than anybody skips by hand


@function(*CONTAINERS)
def container(m: Machine, call: Call) -> Abstract:
    module = tape.Module(f"<{call.name.rpartition('.')[2]}>", is_container=True)
    made = Object(call.name, call.frame.span(call.node), module=module)
    fill_container(m, made, call.name, call)
    return made


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
        if found.rest is not None and not found.items and _picks_of_more(call.args[0]):
            found.items.append(found.rest)  # self.layers[2:] of a list that shows two
        made = Object(
            "torch.nn.Sequential"
            if container_kind(module) == "torch.nn.Sequential"
            else "torch.nn.ModuleList",
            call.frame.span(call.node),
        )
        made.module = tape.Module("slice", module.module)
        made.state["items"] = found
        return made
    return found


def _picks_of_more(index: Abstract) -> bool:
    """Whether a slice has items in it of a list that is long enough."""
    return isinstance(index, Const) and bool(range(_LONG)[index.value])


@method(CONTAINERS, "__setitem__")
def set_container_item(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    items, index, value = module.state.get("items"), argument(m, call), argument(m, call, 1)

    name = str(index.value) if isinstance(index, Const) else "item"
    adopt(module, name, value)
    holdings.attached(m, module, name, value, call)
    if isinstance(items, Mapping) and isinstance(index, Const):
        names = (
            dict(enumerate(items.items)) if container_kind(module) == "torch.nn.Sequential" else {}
        )
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
    name = call.called
    items = named_items(module) if name == "add_module" else module.state.get("items")
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
    if isinstance(items, Mapping) and container_kind(module) in (
        "torch.nn.Sequential",
        "torch.nn.ModuleList",
    ):
        items = Sequence("list", list(items.items.values()), items.open)
    m.iterate(items, visit, call)
