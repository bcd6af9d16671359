"""What becomes part of a module: attributes, registered buffers and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import (
    method,
)
from gradlint.interpret.storage import name_value
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
from gradlint.library import freezing, holdings
from gradlint.library.phases import note_mode
from gradlint.library.structure import (
    MODULE,
    container_kind,
    is_module,
    is_parameter,
    named_items,
)
from gradlint.operations import Trait, has
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def adopt(owner: Instance | Object, name: str, child: Abstract) -> None:
    """Gives a part of a module its place, once."""
    if owner.module is None or owner is child:
        return
    if (
        isinstance(child, Instance | Object)
        and child.module is not None
        and child.module.parent is None
        and not owner.module.is_within(child.module)  # a part that holds its whole
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
    """`module.name = value`, in a container also in the place of the item of that name.

    Where a parameter has that name, torch takes another parameter, or None, and refuses the rest.
    """
    before = module.attrs.get(call.name)
    if (
        isinstance(before, Tensor)
        and is_parameter(before)
        and _is_no_parameter(call.args[0], before)
    ):
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.TypeError", at), at)
    if call.name == "requires_grad":
        freezing.freezes_module(m, module, call)
    elif freezing.is_misspelt(call.name):
        freezing.misspelt(m, module, call)
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
    elif is_module(call.args[0]) and container_kind(module) == "torch.nn.Sequential":
        named = named_items(module)
        if named is not None:
            named.items[call.name] = call.args[0]  # it runs with the others
    else:
        module.attrs[call.name] = call.args[0]
    return NONE


def _is_no_parameter(value: Abstract, before: Tensor) -> bool:
    """Whether a value surely is neither a parameter nor None; `p.to(device)` can be `p` itself."""
    match value:
        case Sequence() | Mapping():
            return True
        case Const():
            return value.value is not None
        case Tensor():
            is_made = value.node.kind in (Kind.OPERATION, Kind.CONSTANT)
            return (
                is_made
                and value is not before
                and not has(value.node.op, Trait.CASTS, Trait.COPIES)
            )
    return False


def _put_in_mode(m: Machine, module: Instance | Object, call: Call) -> None:
    """`module.training = mode`, of this module alone: a program that puts modes back does so for
    every part.
    """
    told = conditions.truth(m, call.args[0])
    module.state["training"] = told
    if told is not False:
        note_mode(m, module, told, call)


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
        value = _as_table(value)
        name_value(m, value, name)
        module.attrs[name] = value
        module.state.setdefault("buffers", set()).add(name)
        if _is_emptied(value, call):
            module.state.setdefault("emptied", set()).add(name)
        if isinstance(value, Tensor) and value.node.records:
            m.emit(tape.Fact(at=call.frame.span(call.node), what="buffer-set", value=value.node))
    return NONE


def _is_emptied(value: Abstract, call: Call) -> bool:
    """Whether a method other than the constructor puts nothing into a buffer:
    `def clear(self): self.register_buffer("cache", None)`.
    """
    function = call.frame.function
    is_nothing = isinstance(value, Const) and value.value is None
    return is_nothing and function is not None and function.name != "__init__"


def _as_table(value: Abstract) -> Abstract:
    """What a constructor was given for a buffer: a table, which carries no gradient."""
    if isinstance(value, Unknown):
        return Unknown(value.symbol, data=True, type=value.type)
    if isinstance(value, Tensor) and value.node.kind is Kind.UNKNOWN and value.node.op == "input":
        value.node.kind, value.node.requires_grad = Kind.DATA, False
    return value


@method(MODULE, "register_parameter", "add_module", "register_module")
def register(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    name, value = call.get(0, "name"), call.args[1] if len(call.args) > 1 else NONE
    key = str(name.value) if isinstance(name, Const) else f"part{len(module.attrs)}"

    adopt(module, key, value)
    holdings.attached(m, module, key, value, call)
    module.attrs[key] = value
    return NONE
