"""Attributes of classes of the program, and of `super()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.calls import construct
from gradlint.interpret.instances import library_receiver
from gradlint.interpret.lineage import canonical
from gradlint.interpret.methods import method
from gradlint.interpret.registry import MethodHandler, find_attribute, find_method
from gradlint.interpret.tables import ATTRIBUTE, handles
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
    Sequence,
    Super,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.tape import COMPUTED_ANEW, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


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


def setter(receiver: Abstract) -> Bound:
    """The `__setattr__` of modules, or else that of all objects."""
    is_module = isinstance(receiver, Instance) and receiver.module is not None
    return Bound(
        Lib(f"{'torch.nn.Module' if is_module else 'builtins.object'}.__setattr__"), receiver
    )


def in_lineage(
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
    if name in ("__bases__", "__mro__"):
        return _ancestry(cls, name)
    if name == "__dict__":
        return Mapping(dict(cls.namespace), open=bool(cls.node.decorators))
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


def _ancestry(cls: Class, name: str) -> Sequence | None:
    """`cls.__bases__` or `cls.__mro__`; None where a base is not known."""
    if cls.has_unknown_base:
        return None
    found = cls.bases if name == "__bases__" else cls.lineage()
    is_whole = name == "__bases__" and bool(found)
    return Sequence("tuple", [*found] if is_whole else [*found, Lib("builtins.object")])


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
    found = in_lineage(m, receiver, cls, behind, name, at)
    if found is not None:
        return found
    if name == "__setattr__":
        return setter(receiver)
    if name in ("__init__", "__init_subclass__", "__post_init__", "__enter__", "__exit__"):
        return Builtin(name, lambda _machine, _call: NONE)
    return Builtin(
        name,
        lambda machine, call: call_unknown(
            machine, machine.symbol(receiver).derive(("super", name), name), call
        ),
    )
