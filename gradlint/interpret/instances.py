"""Objects of the program's classes: how each is made, and what calling it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.calls import initialise, prepare
from gradlint.interpret.lineage import canonical, is_a
from gradlint.interpret.registry import FUNCTIONS, METHODS, find_method
from gradlint.interpret.scopes import Frame
from gradlint.interpret.tables import CALL, handles
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    Abstract,
    Call,
    Class,
    Const,
    Instance,
    Mapping,
    Object,
    Package,
    Range,
    Sequence,
    Super,
    Tensor,
    Unknown,
)  # fmt: skip

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@handles(CALL, Class)
def instantiate(m: Machine, cls: Class, call: Call) -> Abstract:
    """A new object of a class of the program."""
    for base in cls.libraries():
        maker = METHODS.get((canonical(base), "__new__"))
        if maker is not None:
            made = maker(m, cls, call)
            if not isinstance(made, Instance) or "member" in made.state:
                return made
            break
    at = call.frame.span(call.node)
    instance = Instance(cls, symbol=None, at=at)
    prepare(m, instance)
    if instance.module is not None and not m.oracle.prepares and _is_in_view(m, call.frame):
        instance.state["training"] = True
    m.note("new", cls.name, at)
    initialise(m, instance, call)
    return instance


def _is_in_view(m: Machine, frame: Frame) -> bool:
    """Whether what becomes of a module that is made here is seen: it trains until a function puts
    it in eval mode.
    """
    if frame.function is not None:
        return True
    return not m.session.program.mentions(frame, ".eval(")


_KINDS: dict[str, type[Abstract]] = {  # of what is never an instance of a class of the program
    "torch.Tensor": Tensor, "numpy.ndarray": Unknown,
    "torch.autograd.function.FunctionCtx": Object, "torch.utils.hooks.RemovableHandle": Object,
}  # fmt: skip


def library_receiver(value: Abstract, base: str) -> Abstract | None:
    """What the model's methods of a library's class take for `value`; None where it is of another
    class.
    """
    if isinstance(value, Object):
        return value if is_a(value.cls, base) else None
    for owner, kind in _KINDS.items():
        if is_a(base, owner):
            return value if isinstance(value, kind) else None
    if not isinstance(value, Instance) or not any(is_a(own, base) for own in value.cls.libraries()):
        return None
    if find_method(base, "__init__") is None and base in FUNCTIONS:
        return value.state.get("part")
    return value


@handles(CALL, Instance)
def call_instance(m: Machine, instance: Instance, call: Call) -> Abstract:
    """`__call__` of an object; of a torch module, its `forward`."""
    own = m.session.member_of(instance.cls, "__call__")
    if own is not None:
        return m.invoke(own, [instance, *call.args], call, **call.kwargs)
    forward = m.session.member_of(instance.cls, "forward") or instance.attrs.get("forward")
    if forward is not None:
        call = _prepared(m, instance, call)
        args = call.args if "forward" in instance.attrs else [instance, *call.args]
        result = m.call(
            forward,
            Call(call.name, args, call.kwargs, call.node, call.frame, call.open, rest=call.rest),
        )
        if instance.module is not None:
            m.made += 1
            made = tensors.sources(m, [result], call.node, call.frame)
            at = call.frame.span(call.node)
            m.emit(tape.ModuleCall(at=at, module=instance.module, result=made[0] if made else None))
        return _hooked(m, instance, result, call)
    for base in map(canonical, instance.cls.libraries()):
        handler, receiver = find_method(base, "__call__"), library_receiver(instance, base)
        if handler is not None and receiver is not None:
            return handler(m, receiver, call)
    return call_unknown(m, m.symbol(instance), call)


def _prepared(m: Machine, module: Instance | Object, call: Call) -> Call:
    """The call of a module after its forward pre-hooks: with the arguments that they return, where
    they do.
    """
    for hook, takes_kwargs in module.state.get("forward-pre-hooks", ()):
        kwargs = [Mapping(dict(call.kwargs))] if takes_kwargs else []
        match m.invoke(hook, [module, Sequence("tuple", list(call.args)), *kwargs], call):
            case Sequence(items=[Sequence(items=args), Mapping(items=named)]) if takes_kwargs:
                call = _with(
                    call,
                    args,
                    {name: value for name, value in named.items() if isinstance(name, str)},
                )
            case Sequence(kind="tuple", items=args) if not takes_kwargs:
                call = _with(call, args, call.kwargs)
            case Tensor() as only if not takes_kwargs:
                call = _with(call, [only], call.kwargs)
    return call


def _with(call: Call, args: list[Abstract], kwargs: dict[str, Abstract]) -> Call:
    return Call(call.name, list(args), kwargs, call.node, call.frame, call.open, rest=call.rest)


def _hooked(m: Machine, module: Instance | Object, result: Abstract, call: Call) -> Abstract:
    """What a module gives after its forward hooks: theirs, where they return something."""
    for hook, takes_kwargs in module.state.get("forward-hooks", ()):
        kwargs = [Mapping(dict(call.kwargs))] if takes_kwargs else []
        given = m.invoke(hook, [module, Sequence("tuple", list(call.args)), *kwargs, result], call)
        if not isinstance(given, Const | Unknown):
            result = given
    return result


@handles(CALL, Object)
def call_object(m: Machine, made: Object, call: Call) -> Abstract:
    handler = find_method(made.cls, "__call__")
    m.made += made.module is not None
    if handler is not None:
        call = _prepared(m, made, call)
        return _hooked(m, made, handler(m, made, call), call)
    return call_unknown(m, m.symbol(made), call)


@handles(CALL, Const, Sequence, Mapping, Range, Tensor, Package, Super)
def call_other(m: Machine, value: Abstract, call: Call) -> Abstract:
    """What cannot be called, or is a name bound to something the analysis lost: of tensors it makes
    what they carry.
    """
    if any(isinstance(given, Tensor) for given in call.values):
        return call_unknown(m, m.symbol(value), call)
    return m.unknown(call.frame.text(call.node))
