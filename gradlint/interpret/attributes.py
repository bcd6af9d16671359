"""Attributes: where each kind of value looks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.calls import construct
from gradlint.interpret.instances import library_receiver
from gradlint.interpret.machine import ATTRIBUTE, Raised, handles
from gradlint.interpret.registry import (
    MethodHandler,
    canonical,
    find_attribute,
    find_guesses,
    find_method,
    member_name,
)  # fmt: skip
from gradlint.interpret.subscripts import derived
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    NONE,
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
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.tape import COMPUTED_ANEW, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def method(receiver: Abstract, cls: str, name: str) -> Builtin | None:
    """A method of the library's model, bound to its receiver; it is told its own name, whoever
    calls it.
    """
    handler = find_method(cls, name)
    return None if handler is None else _bound(handler, receiver, cls, name)


def _bound(handler: MethodHandler, receiver: Abstract, cls: str, name: str) -> Builtin:
    def run(m: Machine, call: Call) -> Abstract:
        call.name = name
        return handler(m, receiver, call)

    return Builtin(f"{cls}.{name}", run, receiver=receiver)


@handles(ATTRIBUTE, Tensor)
def of_tensor(m: Machine, tensor: Tensor, name: str, at: Call) -> Abstract | None:
    if name in tensor.attrs:
        return tensor.attrs[name]
    handler = find_attribute("torch.Tensor", name)
    if handler is not None:
        return handler(m, tensor, at)
    return method(tensor, "torch.Tensor", name) or _any_method(m, tensor, "torch.Tensor", name)


def _any_method(m: Machine, receiver: Abstract, cls: str, name: str) -> Abstract | None:
    """A method that only the class's catch-all knows (`torch.Tensor.*`)."""
    handler = find_method(cls, "*")
    return (
        None if handler is None or name.startswith("__") else _bound(handler, receiver, cls, name)
    )


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
    if name == "__name__":
        return Const(library.name.rpartition(".")[2])
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


def _computed(found: Abstract, receiver: Abstract) -> Abstract:
    """What a property gives, marked where it has memory of its own and the object does not keep
    it.
    """
    if (
        not isinstance(found, Tensor)
        or found.node.kind is not Kind.OPERATION
        or found.node.storage is None
    ):
        return found
    is_kept = any(held is found for held in getattr(receiver, "attrs", {}).values())
    is_view = any(source.storage is found.node.storage for source in found.node.inputs)
    if not is_kept and not is_view and found.node.in_torch:
        found.node.flags |= {COMPUTED_ANEW}
    return found


def bound_member(
    m: Machine, member: Abstract, receiver: Abstract, cls: Abstract, at: Call
) -> Abstract:
    """What looking up `member` on an object gives: a bound method, a property's value, the member
    itself.
    """
    if isinstance(member, Function):
        return Bound(member, receiver)
    if isinstance(member, Builtin) and member.wraps is not None:
        return Bound(member, receiver)
    if isinstance(member, Object):
        if member.cls == "builtins.property":
            getter = member.state.get("get")
            if not isinstance(getter, Abstract):
                return m.unknown(at.name)
            return _computed(m.invoke(getter, [receiver], at), receiver)
        if member.cls == "builtins.staticmethod":
            inner = member.state.get("function")
            return inner if isinstance(inner, Abstract) else member
        if member.cls == "builtins.classmethod":
            inner = member.state.get("function")
            return Bound(inner, cls) if isinstance(inner, Abstract) else member
    if (
        isinstance(member, Instance)
        and (getter := m.session.member_of(member.cls, "__get__")) is not None
    ):
        return m.invoke(getter, [member, receiver, cls], at)
    return member


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
    found = _in_lineage(m, instance, instance.cls, instance.cls.lineage(), name, at)
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
        return _setter(instance)
    if name.startswith("__") and not instance.cls.has_unknown_base:
        return Unknown(m.symbol(instance).derive(("attribute", name), name), data=True)
    if _is_left_out(m, instance, name):
        raise Raised(
            Object("builtins.AttributeError", at.frame.span(at.node)), at.frame.span(at.node)
        )
    return None


def _setter(receiver: Abstract) -> Bound:
    """The `__setattr__` of modules, or else that of all objects."""
    is_module = isinstance(receiver, Instance) and receiver.module is not None
    return Bound(
        Lib(f"{'torch.nn.Module' if is_module else 'builtins.object'}.__setattr__"), receiver
    )


def _is_left_out(m: Machine, instance: Instance, name: str) -> bool:
    """Whether only the `__init__` of the object that was entered makes an attribute, as on another
    path than this.
    """
    if m.oracle.prepares or instance is not m.state.get("made") or m.session.elsewhere is None:
        return False
    return name in m.session.elsewhere.made & m.session.made and not instance.cls.has_unknown_base


def _in_lineage(
    m: Machine,
    receiver: Abstract,
    cls: Class,
    lineage: list[Class | Lib | Unknown],
    name: str,
    at: Call,
) -> Abstract | None:
    for entry in lineage:
        if isinstance(entry, Class):
            if name in entry.namespace:
                return bound_member(m, entry.namespace[name], receiver, cls, at)
        elif isinstance(entry, Lib):
            base = canonical(entry.name)
            handler, model = find_attribute(base, name), find_method(base, name)
            own = (
                library_receiver(receiver, base)
                if handler is not None or model is not None
                else None
            )
            if handler is not None and own is not None:
                return handler(m, own, at)
            if name == "__init__" and isinstance(receiver, Instance):
                return _constructor(receiver, base)
            if model is not None and own is not None:
                return method(own, base, name)
    return None


def _constructor(instance: Instance, base: str) -> Builtin:
    """`super().__init__`, where a library's class is next."""
    return Builtin(
        "__init__", lambda m, call: construct(m, instance, base, call), receiver=instance
    )


@handles(ATTRIBUTE, Class)
def of_class(m: Machine, cls: Class, name: str, at: Call) -> Abstract | None:
    if name == "__name__":
        return Const(cls.name)
    for entry in cls.lineage():
        if isinstance(entry, Class) and name in entry.namespace:
            return _taken(m, cls, name, _class_member(cls, entry.namespace[name]), at)
        if isinstance(entry, Lib):
            handler = find_method(canonical(entry.name), f"class.{name}")
            if handler is not None:
                return _of_class(name, handler, cls)
            own = find_method(canonical(entry.name), name)
            if own is not None:
                return _unbound(canonical(entry.name), name, own)
    return None


def _class_member(cls: Class, member: Abstract) -> Abstract:
    """A member of a class as the class itself has it."""
    inner = member.state.get("function") if isinstance(member, Object) else None
    if isinstance(member, Object) and isinstance(inner, Abstract):
        if member.cls == "builtins.staticmethod":
            return inner
        if member.cls == "builtins.classmethod":
            return Bound(inner, cls)
    return member


def _taken(m: Machine, cls: Class, name: str, member: Abstract, at: Call) -> Abstract:
    """`member`, or what a library base makes of its being taken from the class
    (`MyFunction.forward`).
    """
    for base in cls.libraries():
        handler = find_method(canonical(base), f"taken.{name}")
        if handler is not None:
            return handler(m, cls, Call(at.name, [member], {}, at.node, at.frame))
    return member


def _of_class(name: str, handler: MethodHandler, cls: Class) -> Builtin:
    """A method that the library's model has for the class itself (`Function.apply`)."""
    return Builtin(name, lambda machine, call: handler(machine, cls, call))


def _unbound(base: str, name: str, handler: MethodHandler) -> Builtin:
    """A method taken from its class: the receiver is the first argument."""

    def run(m: Machine, call: Call) -> Abstract:
        receiver = library_receiver(call.args[0], base) if call.args else None
        if receiver is None:
            return call_unknown(m, m.session.library_symbol(f"{base}.{name}"), call)
        if name == "__init__" and isinstance(receiver, Instance):
            return construct(m, receiver, base, _rest(call, name))
        return handler(m, receiver, _rest(call, name))

    return Builtin(name, run)


def _rest(call: Call, name: str) -> Call:
    return Call(name, call.args[1:], call.kwargs, call.node, call.frame, call.open)


@handles(ATTRIBUTE, Super)
def of_super(m: Machine, value: Super, name: str, at: Call) -> Abstract | None:
    receiver = value.receiver
    cls = receiver.cls if isinstance(receiver, Instance) else receiver
    if not isinstance(cls, Class):
        return None
    lineage = cls.lineage()
    behind = lineage[lineage.index(value.owner) + 1 :] if value.owner in lineage else []
    found = _in_lineage(m, receiver, cls, behind, name, at)
    if found is not None:
        return found
    if name == "__setattr__":
        return _setter(receiver)
    if name in ("__init__", "__init_subclass__", "__post_init__", "__enter__", "__exit__"):
        return Builtin(name, lambda _machine, _call: NONE)
    return Builtin(
        name,
        lambda machine, call: call_unknown(
            machine, machine.symbol(receiver).derive(("super", name), name), call
        ),
    )


@handles(ATTRIBUTE, Object)
def of_object(m: Machine, made: Object, name: str, at: Call) -> Abstract | None:
    if name in made.attrs:
        return made.attrs[name]
    handler = find_attribute(made.cls, name)
    if handler is not None:
        return handler(m, made, at)
    found = method(made, made.cls, name) or _any_method(m, made, made.cls, name)
    if found is not None:
        return found
    return class_of(made) if name == "__class__" else _held_part(made, name)


def _held_part(made: Instance | Object, name: str) -> Abstract | None:
    """`net.act`, `net.get_submodule("0")`, `lstm.bias_hh_l0`: a part of a module by the name that
    it has there.
    """
    own, items = made.state.get("parameters"), made.state.get("items")
    if isinstance(own, dict) and name in own:
        return own[name]  # type: ignore[no-any-return]
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
    kind = m.session.kind_of_field(unknown.symbol, name) if m.session.classes else ""
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
    if known is not None:
        # clear = optimizer.zero_grad; clear()
        m.state.setdefault("looked at", {})[made.symbol] = known
    return made
