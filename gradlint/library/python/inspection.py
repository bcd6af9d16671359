"""Looking at objects: hasattr, getattr, vars, super, and the wrappers of methods."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from gradlint.interpret import conditions, defaults, registry
from gradlint.interpret.lineage import canonical, of_tables
from gradlint.interpret.registry import attribute, function, method
from gradlint.interpret.storage import set_attribute, store
from gradlint.interpret.subscripts import item
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Package,
    Range,
    Sequence,
    Super,
    Tensor,
    Unknown,
)
from gradlint.library import roles
from gradlint.library.effects import lookup
from gradlint.library.handover import escapes
from gradlint.library.python.classes import python_type
from gradlint.library.python.numbered import numbered
from gradlint.library.python.results import argument, fresh, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

# Chosen by name at run time (`getattr(torch.optim, args.optimizer)`), these are still known by what
# they inherit from.
_FAMILIES = {
    "torch.optim": "torch.optim.Optimizer",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
}


def defines(value: Abstract, name: str) -> bool:
    """Whether the class of `value` is known to have the method `name`."""
    match value:
        case Instance():
            return name in value.attrs or _in_class(value.cls, name)
        case Object():
            return registry.find_method(value.cls, name) is not None
        case Class():
            return _in_class(value, name)
    return False


def _in_class(cls: Class, name: str) -> bool:
    for entry in cls.lineage():
        if isinstance(entry, Class) and name in entry.namespace:
            return True
        if isinstance(entry, Lib) and _in_library(entry.name, name):
            return True
    return False


def _in_library(cls: str, name: str) -> bool:
    cls = canonical(cls)
    return (
        registry.find_method(cls, name) is not None
        or registry.find_attribute(cls, name) is not None
    )


# attributes by name


def has(m: Machine, value: Abstract, name: str) -> bool | None:
    """Whether `value` has the attribute `name`."""
    match value:
        case Instance():
            return _instance_has(value, name)
        case Object():
            return name in value.attrs or _in_library(value.cls, name) or None
        case Tensor():
            return name in value.attrs or _in_library("torch.Tensor", name) or None
        case Class():
            return True if _in_class(value, name) else None if value.has_unknown_base else False
        case Package():
            return True if name in value.scope.locals else None
        case Lib():
            full = canonical(f"{value.name}.{name}")
            return True if full in registry.FUNCTIONS or lookup(full) is not None else None
        case Function():
            return name in value.attrs or hasattr(types.FunctionType, name)
        case Const() | Sequence() | Mapping() | Range():
            known = python_type(value)
            return None if known is None else hasattr(known, name)
        case Unknown():
            return True if m.override(value.symbol, "attribute", name) is not None else None
    return None


def _instance_has(value: Instance, name: str) -> bool | None:
    if defines(value, name):
        return True
    if value.cls.has_unknown_base or "__getattr__" in value.cls.namespace:
        return None
    known = {
        "torch.nn.Module",
        "torch.utils.data.Dataset",
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
    }
    return False if all(base in known for base in value.cls.libraries()) else None


@function("builtins.hasattr")
def hasattr_(m: Machine, call: Call) -> Abstract:
    """`hasattr(x, name)`."""
    name = call.constant(1, "name")
    if not isinstance(name, str):
        return fresh(m, call, "bool")
    asked = m.symbol(call.args[0])
    known = has(m, call.args[0], name)
    if known is None:
        known = _as_with_others(m, asked, name)
    if known is not None:
        return TRUE if known else FALSE
    return conditions.boolean(m, Test(asked, "has", name), text(call))


def _as_with_others(m: Machine, asked: Symbol, name: str) -> bool | None:
    """What is known by the attributes that this path has asked for: what has an `eval` has a
    `train` as well, and what has no `train` no `eval`.
    """
    own = _owners(name)
    for (relation, other), holds in m.oracle.facts.answers.get(asked, {}).items():
        others = _owners(other) if relation == "has" and isinstance(other, str) else frozenset()
        if holds and others and others <= own:
            return True
        if not holds and own and own <= others:
            return False
    return None


@of_tables
def _owners(name: str) -> frozenset[str]:
    """The library classes that have a method of this name themselves."""
    return frozenset(owner for owner, each in registry.METHODS if each == name) - {"unknown"}


@function("builtins.getattr")
def getattr_(m: Machine, call: Call) -> Abstract:
    """`getattr(x, name, default)`."""
    if len(call.args) < 2:
        return m.unknown(text(call))
    value, name = call.args[0], call.constant(1, "name")
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(name, str):
        return _any_attribute(m, call, value)
    known = has(m, value, name)
    if default is not None and (known is False or (known is None and default is value)):
        return default
    found = m.attribute(value, name, call)
    if known is None and isinstance(default, Const) and isinstance(found, Unknown):
        defaults.take(m, found.symbol, default)
    return found


def _any_attribute(m: Machine, call: Call, value: Abstract) -> Abstract:
    """An attribute whose name is not known."""
    if isinstance(value, Lib) and value.name in _FAMILIES:
        return Lib(_FAMILIES[value.name])
    chosen = _by_option(m, call, value)
    if chosen is None:
        chosen = numbered(m, value, call)
    if chosen is not None:
        return chosen
    if roles.looks_like_optimizer(m, value):  # its `step`, it may be
        escapes(m, [value], call)
    key = ("attribute", m.symbol(call.args[1]))
    return Unknown(
        m.symbol(value).derive(key, text(call)), data=isinstance(value, Unknown) and value.data
    )


def _by_option(m: Machine, call: Call, value: Abstract) -> Abstract | None:
    """What `getattr(losses, args.loss)` finds: what a dict of all that can be chosen has under that
    name. Most objects of a part are made with its defaults: `activation: str = "ReLU"`.
    """
    name = call.args[1]
    by_default = Const(m.state.get("defaults", {}).get(m.symbol(name)))
    choices, default = m.state.get("options", {}).get(m.symbol(name)) or (None, by_default)
    names = choices.items if isinstance(choices, Sequence) and not choices.open else [default]
    words = [
        each.value for each in names if isinstance(each, Const) and isinstance(each.value, str)
    ]
    is_known = isinstance(value, Lib | Package) or all(has(m, value, word) for word in words)
    found = Mapping({word: m.attribute(value, word, call) for word in words} if is_known else {})
    if not found.items or any(isinstance(each, Unknown) for each in found.items.values()):
        return None
    return item(m, found, name, call.node, call.frame)


@function("builtins.setattr")
def setattr_(m: Machine, call: Call) -> Abstract:
    """`setattr(x, name, value)`."""
    if len(call.args) != 3:
        return NONE
    owner, name, value = call.args
    if isinstance(name, Const) and isinstance(name.value, str):
        set_attribute(m, owner, name.value, value, call.node, call.frame)
    elif isinstance(owner, Instance):
        # a name that nothing else has: modules and parameters are registered by any
        set_attribute(m, owner, f"<{text(call)} {len(owner.attrs)}>", value, call.node, call.frame)
    return NONE


@function("builtins.object.__setattr__", "torch.nn.Module.__setattr__")
def set_past_hooks(m: Machine, call: Call) -> Abstract:
    """`object.__setattr__(x, name, value)` asks no `__setattr__` of the program's own, and none of
    a module either.
    """
    owner, name, value = call.args if len(call.args) == 3 else (NONE, NONE, NONE)
    if not (
        isinstance(owner, Instance) and isinstance(name, Const) and isinstance(name.value, str)
    ):
        return setattr_(m, call)
    if call.name == "builtins.object.__setattr__":
        Mapping(owner.attrs, of=owner).put(Mapping({name.value: value}))
    else:
        store(m, owner, name.value, value, Call(name.value, [value], {}, call.node, call.frame))
    return NONE


@function("builtins.delattr")
def delattr_(m: Machine, call: Call) -> Abstract:
    """`delattr(x, name)`."""
    name = call.constant(1, "name")
    if len(call.args) == 2 and isinstance(call.args[0], Instance | Object):
        call.args[0].attrs.pop(name, None)
    return NONE


@function("builtins.callable")
def callable_(m: Machine, call: Call) -> Abstract:
    """`callable(x)`."""
    value = argument(m, call)
    match value:
        case Function() | Bound() | Builtin() | Class() | Lib():
            return TRUE
        case Const() | Sequence() | Mapping() | Tensor() | Range():
            return FALSE
        case Unknown() if value.type in ("number", "bool", "str", "array", "tensor"):
            return FALSE
        case Instance() if value.module is not None or defines(value, "__call__"):
            return TRUE
        case Object() if value.module is not None or defines(value, "__call__"):
            return TRUE
    return conditions.boolean(m, Test(m.symbol(value), "callable"), text(call))


@function("inspect.isfunction", "inspect.ismethod", "inspect.isclass")
def is_of_kind(m: Machine, call: Call) -> Abstract:
    """`inspect.isfunction(x)`: of what the program defines it is known; a function of a library can
    be built in.
    """
    value = argument(m, call)
    kind = {"inspect.isfunction": Function, "inspect.ismethod": Bound, "inspect.isclass": Class}[
        call.name
    ]
    if isinstance(value, kind):
        return TRUE
    if isinstance(value, Unknown | Lib | Builtin | Object):
        return conditions.boolean(m, Test(m.symbol(value), call.name), text(call))
    return FALSE


@function("builtins.vars")
def vars_(m: Machine, call: Call) -> Abstract:
    """`vars(x)`: the attributes themselves, so that writing to them writes to the object."""
    value = argument(m, call)
    if isinstance(value, Instance):
        return Mapping(value.attrs, of=value)
    symbol = m.symbol(value)
    if isinstance(value, Object):
        return Mapping(value.attrs, open=True, symbol=symbol)
    set_here = {
        key.removeprefix("attribute:"): found for key, found in m.overrides.get(symbol, {}).items()
    }
    return Mapping(set_here, open=True, symbol=symbol.derive("vars", text(call)))


@function("builtins.dir", "builtins.globals", "builtins.locals")
def names(m: Machine, call: Call) -> Abstract:
    """Names in scope: nothing that the analysis follows."""
    return fresh(m, call)


# super and the wrappers of methods


@function("builtins.super")
def super_(m: Machine, call: Call) -> Abstract:
    """`super()`, or `super(Owner, self)`."""
    if len(call.args) == 2 and isinstance(call.args[0], Class):
        return Super(call.args[1], call.args[0])
    frame: Frame | None = call.frame
    while frame is not None:
        owner = frame.function.owner if isinstance(frame.function, Function) else None
        if owner is not None and frame.function.node.parameters:
            receiver = frame.locals.get(frame.function.node.parameters[0].name)
            if receiver is not None:
                return Super(receiver, owner)
        frame = frame.parent
    return m.unknown(text(call))


@function("functools.cached_property")
def cached_property_(m: Machine, call: Call) -> Abstract:
    """`@cached_property`: what the getter has given once is an attribute of the object from then
    on.
    """
    getter = argument(m, call)

    def first(machine: Machine, asked: Call) -> Abstract:
        value = machine.call(getter, asked)
        if asked.args and isinstance(asked.args[0], Instance):
            asked.args[0].attrs[getter.name if isinstance(getter, Function) else asked.name] = value
        return value

    return Object(
        "builtins.property",
        place(call),
        {"get": Builtin("functools.cached_property", first, wraps=getter)},
    )


@function("builtins.property")
def property_(m: Machine, call: Call) -> Abstract:
    """`@property`."""
    state: dict[str, Any] = {"get": call.get(0, "fget"), "set": call.get(1, "fset")}
    return Object(
        "builtins.property",
        place(call),
        {key: value for key, value in state.items() if value is not None},
    )


def _accessor(name: str, key: str) -> None:
    @method("builtins.property", name)
    def handler(m: Machine, receiver: Object, call: Call) -> Abstract:
        return Object("builtins.property", receiver.at, {**receiver.state, key: argument(m, call)})


for _name, _key in (("getter", "get"), ("setter", "set"), ("deleter", "delete")):
    _accessor(_name, _key)


def _wrapper(name: str) -> None:
    @function(f"builtins.{name}")
    def handler(m: Machine, call: Call) -> Abstract:
        return Object(
            f"builtins.{name}", place(call), {"function": call.args[0]} if call.args else {}
        )


_wrapper("staticmethod")
_wrapper("classmethod")


@function("builtins.object")
def object_(m: Machine, call: Call) -> Abstract:
    """`object()`: a marker, different from everything else."""
    return Object("builtins.object", place(call))


@attribute("builtins.property", "fget")
def getter(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The function behind a property."""
    found = receiver.state.get("get")
    return found if isinstance(found, Abstract) else NONE
