"""Calls of functions of the program, of their methods, and of functions of libraries."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import away, calm
from gradlint.interpret.gaps import BACKWARDS, GiveUp, Overrun
from gradlint.interpret.lineage import canonical, is_a
from gradlint.interpret.machine import MAX_DEPTH, MAX_RECURSION, MAX_UNKNOWN, Raised
from gradlint.interpret.registry import AROUND, FALLBACKS, FUNCTIONS, find_method, notify
from gradlint.interpret.scopes import BREAK, Frame
from gradlint.interpret.tables import CALL, handles
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
    function_of,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.ir.lower import body
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@handles(CALL, Function)
def call_function(m: Machine, function: Function, call: Call) -> Abstract:
    """Runs a function of the program; a generator function waits until it is iterated."""
    statements = body(function.node)
    frame = Frame(
        function.node.code, bind_arguments(m, function, call), function.scope, function=function
    )
    if function.node.is_generator:
        return Object(
            "builtins.generator", call.frame.span(call.node), {"frame": frame, "function": function}
        )
    run_it = functools.partial(run, m, function, frame, statements, call)
    made = away.run(m, call.frame.code, frame.code, run_it)
    return _unseen(m, function.name, call) if made is None else made


def run(
    m: Machine, function: Function, frame: Frame, statements: list[ir.Node], call: Call
) -> Abstract:
    """The body of a function, within the bounds on depth and recursion."""
    if _recurses(m, frame):
        m.gap("recursion", call.frame.span(call.node), function.name)
        return m.unknown(f"{function.name}()")
    if len(m.running) >= MAX_DEPTH:
        m.gap("depth", call.frame.span(call.node), function.name)
        return m.unknown(f"{function.name}()")
    if function.node in m.session.passed_over:
        m.gap(m.session.passed_over[function.node], call.frame.span(call.node), function.name)
        return _passed_over(m, function, call)
    if m.steps > m.calm:
        calm.look(m)
    frame.began = m.steps, m.made
    m.running.append(function.node)
    m.frames.append(frame)
    outside = m.where
    if not m.is_driver(call.frame):
        m.where = (*m.where, call.frame.span(call.node))
    was_run, before = function.node in m.executed, len(m.tape.events)
    m.executed.add(function.node)
    try:
        signal = m.execute(statements, frame)
    except (GiveUp, Raised) as ended:  # what stands behind was not run: it is entered by itself
        ended.running.append(function)
        steps = (event for event in m.tape.events[before:] if isinstance(event, tape.Backward))
        if not was_run and (
            isinstance(ended, GiveUp)
            or next(steps, None) is None
            or _has_more(m, statements, frame)
        ):
            m.executed.discard(function.node)
        if not isinstance(ended, Overrun) or ended.frame is not frame:
            raise
        m.session.passed_over[function.node] = "steps"
        signal = BREAK
    finally:
        m.where = outside
        m.running.pop()
        m.frames.pop()
    if signal is BREAK:
        m.gap("steps", call.frame.span(call.node), function.name)
        return _passed_over(m, function, call)
    calm.took(m, frame)
    result = signal.value if signal is not None else NONE
    if isinstance(result, Tensor | Sequence) and getattr(result, "kind", "") != "tuple":
        is_one = isinstance(result, Tensor) and result.node.op != "torch.stack"
        others = _of_other_classes(m, function) if is_one else frozenset[int]()
        if lengths := function.node.arities | others:
            m.state["instead of a tuple"] = (result, lengths)
    return result


def _has_more(m: Machine, statements: list[ir.Node], frame: Frame) -> bool:
    """Whether backwards stand in a function that was left that nothing has come to."""
    calls = (node for node in within(statements) if isinstance(node, ir.Call))
    methods = [
        each
        for each in calls
        if isinstance(each.function, ir.Attribute) and each.function.name in BACKWARDS
    ]
    return any((frame.code.path, each.at[0]) not in m.session.reached for each in methods)


def _passed_over(m: Machine, function: Function, call: Call) -> Abstract:
    """What a function gives that is not run, as it cannot train and has ended the analysis:
    something unknown.
    """
    if function.owner is None or not call.args:
        return _unseen(m, function.name, call)
    receiver, *given = call.args
    symbol = m.symbol(receiver).derive(("attribute", function.name), function.name)
    return call_unknown(
        m, symbol, Call(call.name, given, call.kwargs, call.node, call.frame, call.open)
    )


def _recurses(m: Machine, frame: Frame) -> bool:
    """Whether a function that is called runs already, as often as that shows anything."""
    active = m.running.count(frame.function.node)
    return active >= MAX_RECURSION or (active > 0 and _goes_astray(m, frame, active))


def _goes_astray(m: Machine, frame: Frame, active: int) -> bool:
    """Whether a function that runs calls itself for nothing but parts of what is unknown: each
    level is like the last.

    Where each has two items, four levels are fifteen calls that show what three do; what it was
    called with itself shows as much, where that is unknown, too.
    """
    outer = next(
        other
        for other in reversed(m.frames)
        if other.function and other.function.node is frame.function.node
    )
    fresh = [name for name, value in frame.locals.items() if value is not outer.locals.get(name)]
    if not fresh or any(_says_something(frame.locals[name]) for name in fresh):
        return False
    return active >= MAX_UNKNOWN or all(
        isinstance(outer.locals.get(name), Unknown) for name in fresh
    )


def _says_something(value: Abstract) -> bool:
    return not isinstance(value, Unknown) and not (
        isinstance(value, Tensor) and not value.node.requires_grad
    )


def _of_other_classes(m: Machine, function: Function) -> frozenset[int]:
    """The lengths of the tuples that methods of this name return in the file: who takes one apart
    has another model.
    """
    return (
        m.session.program.arities(function.scope.module, function.name)
        if function.owner
        else frozenset()
    )


def bind_arguments(m: Machine, function: Function, call: Call) -> dict[str, Abstract]:
    """The parameters of a function by name, as the call gives them; what is not given and has no
    default is unknown.
    """
    bound: dict[str, Abstract] = {}
    args, kwargs = list(call.args), dict(call.kwargs)
    for parameter in function.node.parameters:
        if parameter.kind == "args":
            rest = m.session.parameters.rest_of(m, function, parameter) if not args else None
            bound[parameter.name] = rest or Sequence("tuple", args, call.open)
            args = []
        elif parameter.kind == "kwargs":
            bound[parameter.name] = Mapping(dict(kwargs), call.open)
            _note_source(m, bound[parameter.name], call)
            kwargs = {}
        elif parameter.kind == "positional" and args:
            bound[parameter.name] = args.pop(0)
        elif parameter.name in kwargs:
            bound[parameter.name] = kwargs.pop(parameter.name)
        elif parameter.name in function.defaults and not call.open:
            bound[parameter.name] = function.defaults[parameter.name]
        else:
            bound[parameter.name] = m.session.parameters.given(m, function, parameter)
            _note_source(m, bound[parameter.name], call)
    return bound


def _note_source(m: Machine, given: Abstract, call: Call) -> None:
    """Writes down that something unknown, or more of a dict, comes out of what a call hands on by
    `**`.
    """
    if call.rest is not None:
        m.state.setdefault("copied from", {})[m.symbol(given)] = m.symbol(call.rest)


@handles(CALL, Bound)
def call_bound(m: Machine, bound: Bound, call: Call) -> Abstract:
    args = [bound.receiver, *call.args]
    given = Call(call.name, args, call.kwargs, call.node, call.frame, call.open, rest=call.rest)
    run_it = functools.partial(m.call, bound.function, given)
    written, receiver = function_of(bound.function), bound.receiver
    if written is None or written.name not in AROUND or not isinstance(receiver, Instance):
        return run_it()
    base, handler = AROUND[written.name]
    is_derived = any(is_a(library, base) for library in receiver.cls.libraries())
    return handler(m, receiver, call, run_it) if is_derived else run_it()


@handles(CALL, Builtin)
def call_builtin(m: Machine, builtin: Builtin, call: Call) -> Abstract:
    return builtin.run(m, call)


@handles(CALL, Lib)
def call_library(m: Machine, function: Lib, call: Call) -> Abstract:
    """A function or constructor of a library: its handler, or what the fallbacks make of it."""
    call.name = canonical(function.name)
    made = _given(m, call)
    notify("library call", m, call, made)
    return made


def _given(m: Machine, call: Call) -> Abstract:
    handler = FUNCTIONS.get(call.name)
    if handler is not None:
        return handler(m, call)
    for ask in FALLBACKS:
        found = ask(m, call)
        if found is not None:
            return found
    return call_unseen(m, call)


def call_unseen(m: Machine, call: Call) -> Unknown:
    """A function of a library, or a class of one, that nothing is known of."""
    return _unseen(m, call.name, call)


def _unseen(m: Machine, name: str, call: Call) -> Unknown:
    symbol = m.session.library_symbol(name)
    made = call_unknown(m, symbol, call)
    if not name.rpartition(".")[2][:1].isupper():
        m.leaves[symbol].flags |= {tape.OF_A_FUNCTION}
    return made


def prepare(m: Machine, instance: Instance) -> None:
    """Gives an object of a torch module class its place among modules."""
    if is_module(instance.cls):
        instance.module = tape.Module(f"<{instance.cls.name}>")


def is_module(cls: Class) -> bool:
    """Whether a class is derived from `nn.Module`."""
    return any(is_a(canonical(base), "torch.nn.Module") for base in cls.libraries())


def initialise(m: Machine, instance: Instance, call: Call) -> None:
    """Runs `__init__`: the program's own, that of a dataclass, or that of a library base."""
    for position, cls in enumerate(instance.cls.lineage()):
        if isinstance(cls, Class):
            own = cls.namespace.get("__init__")
            if own is not None:
                m.invoke(own, [instance, *call.args], call, **call.kwargs)
                return
            if cls.dataclass:
                _fill_dataclass(m, instance, call)
                return
        elif isinstance(cls, Lib):
            base = canonical(cls.name)
            if find_method(base, "__init__") is not None or base in FUNCTIONS:
                construct(m, instance, base, call)
                return
        elif position:
            return


def construct(m: Machine, instance: Instance, base: str, call: Call) -> Abstract:
    """Runs the constructor of a library's class on an object of a class derived from it.

    Where the library's model has no `__init__` but a function that makes its objects, such an
    object becomes the "part" of the instance to which the methods of the library are bound.
    """
    own, maker = find_method(base, "__init__"), FUNCTIONS.get(base)
    if own is not None:
        own(m, instance, Call(base, call.args, call.kwargs, call.node, call.frame, call.open))
    elif maker is not None:
        part = maker(m, Call(base, call.args, call.kwargs, call.node, call.frame, call.open))
        if isinstance(part, Object):
            instance.state["part"] = part
    return NONE


def _fill_dataclass(m: Machine, instance: Instance, call: Call) -> None:
    args = list(call.args)
    fields: dict[str, Abstract | None] = {}
    for cls in reversed(instance.cls.lineage()):
        if isinstance(cls, Class):
            fields.update({name: default for name, (default, _) in cls.annotations.items()})
    for name, default in fields.items():
        if (
            isinstance(default, Object)
            and default.cls == "dataclasses.field"
            and default.state.get("init") is False
        ):
            instance.attrs[name] = _field_default(m, default, call, name)
        elif args:
            instance.attrs[name] = args.pop(0)
        elif name in call.kwargs:
            instance.attrs[name] = call.kwargs[name]
        elif default is not None and not call.open:
            instance.attrs[name] = _field_default(m, default, call, name)
        else:
            instance.attrs[name] = m.unknown(name)
    hook = m.session.member_of(instance.cls, "__post_init__")
    if hook is not None:
        m.invoke(hook, [instance], call)


def _field_default(m: Machine, default: Abstract, call: Call, name: str) -> Abstract:
    if isinstance(default, Object) and default.cls == "dataclasses.field":
        factory = default.state.get("factory")
        if isinstance(factory, Abstract):
            return m.invoke(factory, [], call)
        given = default.state.get("default")
        return given if isinstance(given, Abstract) else m.unknown(name)
    return default
