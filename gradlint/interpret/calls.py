"""Calls: of functions of the program, of classes, of the library's model, of things unknown; and
`with`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import calm, tensors
from gradlint.interpret.gaps import BACKWARDS, Gap, GiveUp, Overrun
from gradlint.interpret.machine import (
    BREAK,
    CALL,
    MAX_DEPTH,
    MAX_RECURSION,
    MAX_UNKNOWN,
    Frame,
    Raised,
    handles,
)
from gradlint.interpret.registry import (
    FALLBACKS,
    FUNCTIONS,
    METHODS,
    canonical,
    find_method,
    is_a,
    tell,
)
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
    Symbol,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.ir.lower import body

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

SHARE = 3  # the part of the steps that are left which a call out of the file of a part may take
# results, by the literals of their calls
_ByLiterals = dict[tuple[tuple[object, object], ...], list[tape.Value]]


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
    entered = m.session.entered
    if entered is None or (frame.code is entered) is (call.frame.code is entered):
        return run_it()
    if frame.code is entered:
        return _back(m, run_it)
    made = within(m, (m.most - m.steps) // SHARE, run_it)
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
    calls = (node for node in ir.within(statements) if isinstance(node, ir.Call))
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
    symbol, given = m.session.library_symbol(function.name), call.args
    if function.owner is not None and given:
        receiver, *given = given
        symbol = m.symbol(receiver).derive(("attribute", function.name), function.name)
    return call_unknown(
        m, symbol, Call(call.name, given, call.kwargs, call.node, call.frame, call.open)
    )


def within(m: Machine, most: int, run_it: Callable[[], Abstract]) -> Abstract | None:
    """What some code gives; None where it raises or takes more than so many steps: the program goes
    on behind it.
    """
    before = m.most
    bound = m.most = min(m.steps + most, before)
    grad, autocast, loops, branch = m.grad, list(m.autocast), list(m.loops), m.branch
    is_tried = any(node.handlers for node, frame, _ in m.trying if frame.code is m.session.entered)
    try:
        return run_it()
    except GiveUp as gave_up:
        if m.steps > before + m.most - bound:
            raise
        m.session.gaps.add(gave_up.gap)
    except Raised:
        if is_tried:
            raise
    finally:
        m.most += before - bound
    m.grad, m.autocast[:], m.branch = grad, autocast, branch
    m.set_loops(loops)
    return None


def _back(m: Machine, run_it: Callable[[], Abstract]) -> Abstract:
    """What code of the part's own file gives that code out of it has called: its steps are those of
    the part.
    """
    bound, before = m.most, m.steps
    m.most = m.session.most
    try:
        return run_it()
    finally:
        m.most = bound + m.steps - before


def _recurses(m: Machine, frame: Frame) -> bool:
    """Whether a function that is called runs already, as often as that shows anything."""
    active = m.running.count(frame.function.node)
    return active >= MAX_RECURSION or (active >= MAX_UNKNOWN and _goes_astray(m, frame))


def _goes_astray(m: Machine, frame: Frame) -> bool:
    """Whether a function that runs calls itself for nothing but parts of what is unknown: each
    level is like the last.

    Where each has two items, four levels are fifteen calls that show what three do.
    """
    outer = next(
        other
        for other in reversed(m.frames)
        if other.function and other.function.node is frame.function.node
    )
    fresh = [value for name, value in frame.locals.items() if value is not outer.locals.get(name)]
    return bool(fresh) and not any(map(_says_something, fresh))


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
            bound[parameter.name] = Sequence("tuple", args, call.open)
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
            bound[parameter.name] = m.session.parameter(m, function, parameter)
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
    return m.call(
        bound.function,
        Call(call.name, args, call.kwargs, call.node, call.frame, call.open, rest=call.rest),
    )


@handles(CALL, Builtin)
def call_builtin(m: Machine, builtin: Builtin, call: Call) -> Abstract:
    return builtin.run(m, call)


@handles(CALL, Lib)
def call_library(m: Machine, function: Lib, call: Call) -> Abstract:
    """A function or constructor of a library: its handler, or what the fallbacks make of it."""
    call.name = canonical(function.name)
    made = _given(m, call)
    tell("library call", m, call, made)
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


@handles(CALL, Unknown)
def call_unknown_value(m: Machine, function: Unknown, call: Call) -> Abstract:
    known = m.state.get("looked at", {}).get(function.symbol)
    known = known or m.session.called_as(m, function.symbol)
    if known is not None:
        return m.call(known, call)
    if (
        function.data
        and function.origin is None
        and function.type != "module"
        and not _is_made(m, function.symbol)
    ):
        tell("data call", m, function.symbol, call)
    elif _listed(call) != "names":  # the keys of a dict have no gradient
        function.data = False
        return call_unknown(m, function.symbol, call)
    made = Unknown(function.symbol.derive(_asked(m, call), call.frame.text(call.node)), data=True)
    _note_listing(m, made, call)
    _note_counting(m, made, function.symbol, call)
    return made


def _is_made(m: Machine, symbol: Symbol) -> bool:
    """Whether what is called may be a module although it came with data, loaded or looked up: no
    method of data.
    """
    key = symbol.key
    if not (isinstance(key, tuple) and key[:1] == ("attribute",)):
        return True
    return _is_loaded(m, symbol) and not any(hasattr(kind, key[1]) for kind in (dict, list, str))


def _is_loaded(m: Machine, symbol: Symbol) -> bool:
    """Whether it was unpickled, or taken out of what was: a whole model can be, whose methods
    compute.
    """
    loaded: set[Symbol] = m.state.get("loaded", set())
    inner: Symbol | None = symbol
    while inner is not None and inner not in loaded:
        inner = inner.source
    return inner is not None


def call_unknown(m: Machine, symbol: Symbol, call: Call) -> Unknown:
    """A call of something unknown: it is assumed to carry gradient, from parameters of its own."""
    node, frame = call.node, call.frame
    inputs = tensors.sources(m, call.values, node, frame)
    tell("unknown call", m, symbol, call)
    own = tensors.leaf(m, _owner(m, symbol), node, frame, fed=bool(inputs) or call.open)
    made = tensors.operation(m, "call", [*inputs, own], node, frame)
    made.storage = tape.Storage()
    made.assumed = not any(source.requires_grad and not source.assumed for source in inputs)
    _tell_apart(m, symbol, made, call)
    result = Unknown(Symbol(call.frame.text(node)))
    result.symbol.twin = symbol.derive(_asked(m, call), call.frame.text(node))
    _note_listing(m, result, call)
    _note_counting(m, result, symbol, call)
    m.nodes[result.symbol] = made
    m.emit(tape.ModuleCall(at=frame.span(node), module=_module_of(own), result=made))
    return result


def _owner(m: Machine, called: Symbol) -> Symbol:
    """Whose parameters a call uses: of the method of something unknown whose parameters were asked
    for, its own.

    `optimizer = SGD(model.parameters()); loss = model.compute_loss(batch)`
    """
    receiver = called.source
    is_method = isinstance(called.key, tuple) and called.key[:1] == ("attribute",)
    return receiver if is_method and receiver is not None and receiver in m.leaves else called


def _tell_apart(m: Machine, symbol: Symbol, made: tape.Value, call: Call) -> None:
    """Marks the results of a callable that is called with different literals: `loss(x, fake, 0)`,
    `loss(x, fake, 1)`.

    Each can be computed from some of the arguments alone: the loss of the generator, or of the
    discriminator.
    """
    if not isinstance(call.node, ir.Call):
        return
    by_place = [*enumerate(call.node.args), *call.node.kwargs]
    literals = tuple(
        (place, node.value) for place, node in by_place if isinstance(node, ir.Literal)
    )
    if not literals:
        return
    known: _ByLiterals = m.state.setdefault("told apart", {}).setdefault(symbol, {})
    known.setdefault(literals, []).append(made)
    for given, others in known.items():
        if any(dict(given).get(place, value) != value for place, value in literals):
            for each in (made, *others):
                each.flags |= {tape.TOLD_APART}
            others.clear()


def _note_listing(m: Machine, result: Unknown, call: Call) -> None:
    """Takes down that something lists the entries of a dict, or their names."""
    listed = None if call.args or call.kwargs else _listed(call)
    if listed is not None:
        m.state.setdefault(listed, set()).add(result.symbol)


def _note_counting(m: Machine, result: Unknown, method: Symbol, call: Call) -> None:
    """Has `mask.any()` be the question that `mask.sum() > 0` is, of what is handed in as of
    tensors.
    """
    if call.args or call.kwargs or method.source is None:
        return
    function = call.node.function if isinstance(call.node, ir.Call) else None
    if isinstance(function, ir.Attribute) and function.name == "any":
        counting = method.source.derive(("attribute", "sum"), f"{method.source.text}.sum")
        result.test = m.oracle.facts.any_of(
            counting.derive(_asked(m, call), f"{counting.text}()").asked
        )


def _listed(call: Call) -> str | None:
    """What a method of something unknown lists: the "entries" of a dict, `x.items()`, or their
    "names", `x.keys()`.
    """
    function = call.node.function if isinstance(call.node, ir.Call) else None
    if not isinstance(function, ir.Attribute) or call.values:
        return None
    return {"items": "entries", "keys": "names"}.get(function.name)


def _module_of(own: tape.Value) -> tape.Module:
    assert own.parameter is not None
    assert own.parameter.module is not None
    return own.parameter.module


def _asked(m: Machine, call: Call) -> object:
    by_name = (
        tuple([(name, m.symbol(call.kwargs[name])) for name in sorted(call.kwargs)])
        if call.kwargs
        else ()
    )
    return ("call", tuple(map(m.symbol, call.args)), by_name)


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


class _Unwound(Exception):
    """Leaves a generator that is not resumed."""


def run_generator(
    m: Machine, generator: Object, visit: Callable[[Abstract], bool], call: Call
) -> None:
    """Runs a generator; each value that it yields goes to `visit` before it goes on.

    One that came to its end is used up, which is told; it is run again all the same, for its end
    may be assumed. What a decorator has put "around" it is handed the run of it.
    """
    around = generator.state.get("around")
    if around is None:
        _run_generator(m, generator, visit, call)
    else:
        around(m, lambda inner: _run_generator(m, generator, inner, call), visit)


def _run_generator(
    m: Machine, generator: Object, visit: Callable[[Abstract], bool], call: Call
) -> None:
    frame, function = generator.state["frame"], generator.state["function"]
    given = Sequence("generator", [])
    if "given" in generator.state:
        tell("used up", m, generator.state["given"], call)

    outside = list(m.loops)

    def on_yield(value: Abstract) -> Abstract:
        inside = m.loops
        # what is done with a value is no part of the generator's own loops
        m.set_loops(list(outside))
        for loop in inside[len(outside) :] if outside else ():
            outside[-1].sizes.update(loop.sizes)  # but how long something is stays known
            outside[-1].fed_by.add(loop.number)
        if outside:
            outside[-1].skipped = sum(loop.skipped for loop in inside[len(outside) :])
        given.items.append(value)
        try:
            if visit(value):
                raise _Unwound
        finally:
            m.set_loops(inside)
        return m.unknown("yield", data=True) if "sent to" in generator.state else NONE

    frame.on_yield = on_yield
    frame.wanted = outside[-1].rounds if outside else 0
    was_run = function.node in m.executed
    try:
        run(m, function, frame, body(function.node), call)
        if frame.is_endless:
            generator.state["endless"] = True
        given.consumed = call.frame.span(call.node)
        generator.state["given"] = given
    except _Unwound:
        if (
            not was_run and outside and not outside[-1].over
        ):  # `next(learner)`: what stands behind the `yield` was not run
            m.executed.discard(function.node)


def run_context(
    m: Machine, context: Abstract, inside: Callable[[Abstract], None], call: Call
) -> None:
    """`with context as entered: inside(entered)`."""
    if isinstance(context, Lib):
        tell("discarded", m, context, call.node, call.frame)  # with torch.no_grad: …
        context = _as_called(m, context, call)
    if isinstance(context, Object) and context.cls == "contextlib.generator":
        _run_context_function(m, context, inside, call)
        return
    if isinstance(context, Object):
        runner = find_method(context.cls, "__with__")
        if runner is not None:
            m.state["with"] = inside
            runner(m, context, call)
            return
    entered, leave = enter(m, context, call)
    try:
        inside(entered)
    except Raised:
        swallowed = leave(call, *[m.unknown("exception", data=True)] * 3)
        if not (isinstance(swallowed, Const) and swallowed.value is True):
            raise
        return
    leave(call, NONE, NONE, NONE)


def _as_called(m: Machine, cls: Lib, call: Call) -> Abstract:
    """What a class of contexts gives that was not called: Python raises, and what follows is run as
    it is meant.
    """
    made = m.call(cls, Call(cls.name, [], {}, call.node, call.frame))
    is_context = isinstance(made, Object) and find_method(made.cls, "__enter__") is not None
    return made if is_context else cls


def enter(m: Machine, context: Abstract, call: Call) -> tuple[Abstract, Callable[..., Abstract]]:
    """What `__enter__` gives, and what is called in the end with the call that ends it and the
    error: `__exit__`.
    """
    begin, end = m.attribute(context, "__enter__", call), m.attribute(context, "__exit__", call)
    before, start = m.grad, len(m.tape.events)
    entered = m.invoke(begin, [], call) if not isinstance(begin, Unknown) else context
    switched = [event for event in m.tape.events[start:] if isinstance(event, tape.GradMode)]

    def leave(call: Call, *error: Abstract) -> Abstract:
        answer = m.invoke(end, list(error), call) if not isinstance(end, Unknown) else NONE
        if m.grad.enabled == before.enabled:
            for event in switched:
                event.by_call = False  # what `__enter__` has switched, `__exit__` has restored
        return answer

    return entered, leave


def _run_context_function(
    m: Machine, context: Object, inside: Callable[[Abstract], None], call: Call
) -> None:
    """A context manager written as a generator: its `yield` is where the body runs."""
    function = context.state["function"]
    made = m.call(
        function,
        Call(call.name, context.state["args"], context.state["kwargs"], call.node, call.frame),
    )
    if not (isinstance(made, Object) and made.cls == "builtins.generator"):
        inside(made)
        return
    entered: list[Abstract] = []

    def visit(value: Abstract) -> bool:
        if not entered:
            entered.append(value)
            inside(value)
        return False

    run_generator(m, made, visit, call)
    if not entered:
        raise GiveUp(
            Gap("dynamic", call.frame.span(call.node), "a context manager that does not yield")
        )
