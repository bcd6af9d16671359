"""Attributes: where each kind of value looks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.classes import in_lineage, setter
from gradlint.interpret.derived import derived
from gradlint.interpret.lineage import canonical
from gradlint.interpret.machine import Raised
from gradlint.interpret.methods import any_method, method
from gradlint.interpret.registry import (
    find_attribute,
    find_guesses,
    find_method,
    member_name,
)
from gradlint.interpret.tables import ATTRIBUTE, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Package,
    Range,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_OF_BOTH = frozenset(["values"])  # what sparse tensors and dicts have


@handles(ATTRIBUTE, Tensor)
def of_tensor(m: Machine, tensor: Tensor, name: str, at: Call) -> Abstract | None:
    if name in tensor.attrs:
        return tensor.attrs[name]
    handler = find_attribute("torch.Tensor", name)
    if handler is not None:
        return handler(m, tensor, at)
    found = method(tensor, "torch.Tensor", name)
    if found is None and name not in _OF_BOTH and find_method("dict", name) is not None:
        text = tensor.node.text or tensor.node.name
        record = Unknown(m.symbol(tensor).derive("record", text))  # it is no tensor after all
        return m.attribute(record, name, at)
    return found or any_method(m, tensor, "torch.Tensor", name)


@handles(ATTRIBUTE, Sequence)
def of_sequence(m: Machine, sequence: Sequence, name: str, at: Call) -> Abstract | None:
    return method(sequence, sequence.kind, name)


@handles(ATTRIBUTE, Mapping)
def of_mapping(m: Machine, mapping: Mapping, name: str, at: Call) -> Abstract | None:
    return method(mapping, "dict", name) or mapping.items.get(name)


@handles(ATTRIBUTE, Const)
def of_constant(m: Machine, constant: Const, name: str, at: Call) -> Abstract | None:
    found = method(constant, type(constant.value).__name__, name)
    return found or Unknown(m.symbol(constant).derive(("attribute", name), name), data=True)


@handles(ATTRIBUTE, Lib)
def of_library(m: Machine, library: Lib, name: str, at: Call) -> Abstract | None:
    home, _, own = library.name.rpartition(".")
    if name in ("__name__", "__qualname__"):
        return Const(own)
    if name == "__module__" and home == "builtins":
        return Const(home)
    full = member_name(library.name, name)
    if full is not None:
        return Lib(full)
    handler = find_attribute(canonical(library.name), name)
    return None if handler is None else handler(m, library, at)


@handles(ATTRIBUTE, Package)
def of_package(m: Machine, package: Package, name: str, at: Call) -> Abstract | None:
    found = m.session.program.bind(m, package.scope, name)
    return found if found is not None else m.session.program.submodule(package, name)


@handles(ATTRIBUTE, Function)
def of_function(m: Machine, function: Function, name: str, at: Call) -> Abstract | None:
    if name in function.attrs:
        return function.attrs[name]
    return (
        Const(function.name)
        if name in ("__name__", "__qualname__")
        else NONE
        if name == "__doc__"
        else None
    )


@handles(ATTRIBUTE, Builtin)
def of_builtin(m: Machine, builtin: Builtin, name: str, at: Call) -> Abstract | None:
    return m.attribute(builtin.wraps, name, at) if builtin.wraps is not None else None


@handles(ATTRIBUTE, Bound)
def of_bound(m: Machine, bound: Bound, name: str, at: Call) -> Abstract | None:
    return bound.receiver if name == "__self__" else m.attribute(bound.function, name, at)


@handles(ATTRIBUTE, Range)
def of_range(m: Machine, value: Range, name: str, at: Call) -> Abstract | None:
    return getattr(value, name) if name in ("start", "stop", "step") else None


@handles(ATTRIBUTE, Instance)
def of_instance(m: Machine, instance: Instance, name: str, at: Call) -> Abstract | None:
    if name in instance.attrs:
        return instance.attrs[name]
    if name == "__class__":
        return class_of(instance)
    if name == "__dict__":
        return Mapping(instance.attrs, of=instance)
    if name == "__new__":
        return m.attribute(instance.cls, name, at)
    found = in_lineage(m, instance, instance.cls, instance.cls.lineage(), name, at)
    if found is not None:
        return found
    hook = m.session.member_of(instance.cls, "__getattr__")
    if hook is not None and not name.startswith("__"):
        return m.invoke(hook, [instance, Const(name)], at)
    override = m.override(m.symbol(instance), "attribute", name)
    if override is not None:
        return override
    held = _held_part(instance, name)
    if held is not None:
        return held
    if name == "__setattr__":
        return setter(instance)
    if name in ("__getattr__", "__getattribute__"):
        return Bound(Lib("builtins.getattr"), instance)
    if name.startswith("__") and not instance.cls.has_unknown_base:
        return Unknown(m.symbol(instance).derive(("attribute", name), name), data=True)
    if _is_left_out(m, instance, name):
        raise Raised(
            Object("builtins.AttributeError", at.frame.span(at.node)), at.frame.span(at.node)
        )
    return None


def _is_left_out(m: Machine, instance: Instance, name: str) -> bool:
    """Whether only the `__init__` of the object that was entered makes an attribute, as on another
    path than this.
    """
    if m.oracle.prepares or instance is not m.state.get("made") or m.session.elsewhere is None:
        return False
    return name in m.session.elsewhere.made & m.session.made and not instance.cls.has_unknown_base


@handles(ATTRIBUTE, Object)
def of_object(m: Machine, made: Object, name: str, at: Call) -> Abstract | None:
    if name in made.attrs:
        return made.attrs[name]
    handler = find_attribute(made.cls, name)
    if handler is not None:
        return handler(m, made, at)
    found = method(made, made.cls, name) or any_method(m, made, made.cls, name)
    if found is not None:
        return found
    return class_of(made) if name == "__class__" else _held_part(made, name)


def _held_part(made: Instance | Object, name: str) -> Abstract | None:
    """`net.act`, `net.get_submodule("0")`, `lstm.bias_hh_l0`: a part of a module by the name that
    it has there; `dropout.p`: what a layer keeps of its arguments.
    """
    own, items = made.state.get("parameters"), made.state.get("items")
    for held in (own, made.state.get("settings")):
        if isinstance(held, dict) and name in held:
            return held[name]  # type: ignore[no-any-return]
    if isinstance(items, Mapping):
        return items.items.get(name)
    if isinstance(items, Sequence) and name.isdecimal() and int(name) < len(items.items):
        return items.items[int(name)]
    return None


def class_of(made: Instance | Object) -> Abstract | None:
    """The class of an object; None where what was done to it has given it one of its own."""
    if made.state.get("reclassed"):
        return None
    return made.cls if isinstance(made, Instance) else Lib(made.cls)


_SIZES = frozenset(["shape", "ndim", "size"])  # `image.size`, which is not called


def is_looked_at(name: str, at: Call) -> bool:
    """Whether a name that is a method of tensors or modules is not called: `config.type`,
    `args.train` are settings.
    """
    return (
        isinstance(at.node, ir.Attribute)
        and not at.node.is_called
        and find_attribute("torch.Tensor", name) is None
    )


@handles(ATTRIBUTE, Unknown)
def of_unknown(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute of something unknown: what was assigned to it, what tensors and optimizers have,
    or a part of it.
    """
    override = m.override(unknown.symbol, "attribute", name)
    if override is not None:
        return override
    if unknown.type == "str":
        return method(unknown, "str", name) or derived(
            m, unknown, "attribute", name, at.node, at.frame
        )
    for guess in find_guesses(name):
        found = guess(m, unknown, name, at)
        if found is not None:
            return found
    kind = m.session.parameters.kind_of_field(unknown.symbol, name)
    if kind:
        return Unknown(
            unknown.symbol.derive(("attribute", name), at.frame.text(at.node)), data=True, type=kind
        )
    known = method(unknown, "unknown", name)
    if known is not None and not is_looked_at(name, at):
        return known
    if name in _SIZES:  # of a tensor, most likely: a number, and nothing to differentiate
        return Unknown(
            unknown.symbol.derive(("attribute", name), at.frame.text(at.node)), data=True
        )
    made = derived(m, unknown, "attribute", name, at.node, at.frame)
    if m.session.parameters.is_tensor_field(unknown.symbol, name):
        made.type = "tensor"
    if known is not None:
        # clear = optimizer.zero_grad; clear()
        m.state.setdefault("looked at", {})[made.symbol] = known
    return made
