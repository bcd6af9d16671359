"""How an entry is begun: a script from its top, a function or a method with unknown arguments, a
part by the driver of its contract, a statement by itself; and how its path ends.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import (
    calls,
    driving,
)
from gradlint.interpret.cases import cases
from gradlint.interpret.facts import Member
from gradlint.interpret.gaps import Gap, GiveUp
from gradlint.interpret.lineage import is_a
from gradlint.interpret.machine import Machine, Raised, Stop
from gradlint.interpret.registry import ENTRIES, notify
from gradlint.interpret.scopes import Frame
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import lower
from gradlint.ir import nodes as ir
from gradlint.program import contexts, fields, parts
from gradlint.program.entries import Entry
from gradlint.program.modules import Program
from gradlint.source import effects

# of the constructor of what is entered and trains nothing; then nothing is known of the object
MOST_PREPARING = 2_500
MOST_PREPARING_A_PART = 30_000  # of the constructor of a part


def run(m: Machine, program: Program, path: Path, entry: Entry) -> bool:
    source = program.source(path)
    assert source is not None
    raised, at = "", source.code.span((1, 0, 1, 0))
    try:
        if entry.contract == "statement":
            _run_statement(m, program, path, entry)
        elif entry.function:
            _enter(m, program, path, entry)
        else:
            frame = Frame(
                source.code, {"__name__": Const("__main__"), "__file__": Const(str(path))}
            )
            program.scripts.append(frame)
            program.dependencies.ask(frame, parts.WHOLE)
            m.frames.append(frame)
            m.execute(source.statements, frame)
    except Raised as error:
        raised, at = "exception", error.at
        if not _is_refused(m):
            m.session.raised.append(error.running)
    except Stop:
        raised = "exit"
    except GiveUp as gave_up:
        session = m.session
        session.passes_over(m, gave_up.running)
        session.gaps.add(gave_up.gap)
        _end(m, at, "gap")
        return False
    except RecursionError:  # calls that no function of the program stands for: `A.__call__ = A()`
        m.session.gaps.add(Gap("depth", at, entry.name))
        _end(m, at, "gap")
        return False
    _end(m, at, raised)
    return True


def _is_refused(m: Machine) -> bool:
    """Whether torch itself has ended the program, for what it was given: nobody gets past that."""
    last = m.tape.events[-1] if m.tape.events else None
    return isinstance(last, tape.Fact) and last.what in tape.REFUSED


def _end(m: Machine, at: Span, raised: str) -> None:
    notify("end", m)
    m.emit(tape.End(at=at, raised=raised))


def _run_statement(m: Machine, program: Program, path: Path, entry: Entry) -> None:
    """Runs a statement by itself, in the scope of its module; nothing is known of the names bound
    around it.
    """
    frame = program.frame(path)
    assert frame is not None
    assert frame.source is not None
    program.dependencies.ask(frame, entry.function[0] if entry.function else parts.WHOLE)
    for suspect in contexts.unentered(frame.source.tree):
        if (suspect.path, suspect.line) == (entry.function, entry.line):
            scope = Frame(
                frame.code,
                {name: m.unknown(name) for name in contexts.bound_around(suspect)},
                frame,
            )
            m.frames.append(scope)
            m.execute(lower.module(ast.Module(contexts.alone(suspect), []), frame.code), scope)


def _enter(m: Machine, program: Program, path: Path, entry: Entry) -> None:
    """Calls a function with unknown arguments; a method on an object made with unknown
    arguments.
    """
    frame = program.frame(path)
    source = program.source(path)
    assert frame is not None
    assert frame.source is not None
    assert source is not None
    node = ir.Literal((entry.line, 0, entry.line, 0), None)
    call = Call(entry.name, [], {}, node, frame, open=True)
    value = program.bind(m, frame, entry.function[0])
    if value is None:
        return
    for position, name in enumerate(entry.function[1:], 1):
        if isinstance(value, Class):
            last = position == len(entry.function) - 1
            if not last:
                value = value.namespace.get(name)
                continue
            if entry.contract == "forward" and not calls.is_module(value):
                return
            instance = _object(m, value, call)
            program.dependencies.ask(frame, parts.below(instance.cls.name))
            _forget(m, instance, name, source.tree)
            m.state["older"] = frozenset(m.parameters)
            value = m.attribute(instance, name, call)
            call.kwargs = driving.typed_by_defaults(
                m, value.function if isinstance(value, Bound) else value
            )
            if entry.contract:
                driving.drive(m, value, call)
            else:
                _hook(m, instance, name, value, call)
            return
    call.kwargs = driving.typed_by_defaults(m, value)
    if entry.contract and value is not None:
        driving.drive(m, value, call)
        return
    test = driving.undecorated(value)
    if isinstance(test, Function):
        _note_cases(m, test)
    if isinstance(value, Function | Abstract):
        result = m.call(value, call)
        _drain(m, result, call)


def _note_cases(m: Machine, test: Function) -> None:
    """Has the parameters of a test come together as its cases give them."""
    parameters = {parameter.name: parameter for parameter in test.node.parameters}
    members: set[Symbol] = set()

    def member(node: ir.Node) -> Member | None:
        """A member of an enum: `Mode.OFF`."""
        if not (isinstance(node, ir.Attribute) and isinstance(node.target, ir.Name)):
            return None
        value = m.evaluate(node, test.scope)
        if not (
            isinstance(value, Instance)
            and any(is_a(base, "enum.Enum") for base in value.cls.libraries())
        ):
            return None
        members.add(symbol := m.symbol(value).asked)
        return Member(symbol, members)

    for rows in cases(test.node, member):
        own = [name for name in rows[0] if name in parameters]
        given = {name: m.session.parameters.given(m, test, parameters[name]) for name in own}
        symbols = {name: m.symbol(value) for name, value in given.items()}
        m.oracle.facts.one_of([{symbols[name]: row[name] for name in own} for row in rows])


def _object(m: Machine, cls: Class, call: Call) -> Instance:
    instance = Instance(cls, at=call.frame.span(call.node))
    calls.prepare(m, instance)
    depth, before = len(m.running), m.steps
    m.oracle.prepares = True
    try:
        known = driving.typed_by_defaults(m, m.session.member_of(cls, "__init__"))
        is_made = _initialised(
            m, instance, Call(cls.name, [], known, call.node, call.frame, open=True)
        )
    except Raised:
        if (
            m.session.makes
        ):  # where the branches go this way there is no object to call the method of
            raise
        m.session.unmade.append(m.tape)
        del m.running[depth:]
    else:
        if is_made:
            m.session.makes, m.state["made"] = True, instance
            m.session.made |= instance.attrs.keys()
        elif m.session.contract:
            del m.running[depth:]
        else:
            instance = Instance(cls, at=instance.at)
            calls.prepare(m, instance)
    m.oracle.prepares = False
    m.session.prepared += m.steps - before
    return instance


def _initialised(m: Machine, instance: Instance, call: Call) -> bool:
    """Runs a constructor; that of what trains nothing to its end only where it does not take too
    many steps.
    """
    if m.session.may_train:
        calls.initialise(m, instance, call)
        return True
    most, m.most = (
        m.most,
        m.steps + (MOST_PREPARING_A_PART if m.session.contract else MOST_PREPARING),
    )
    bound = m.most
    try:
        calls.initialise(m, instance, call)
    except GiveUp as gave_up:
        if (
            m.steps <= bound
            or (m.most != bound and m.session.entered is None)
            or m.steps > m.session.most
        ):
            raise
        m.session.gaps.add(gave_up.gap)
        return False
    finally:
        m.most = max(m.most, most)
    return True


def _forget(m: Machine, instance: Instance, name: str, tree: ast.Module) -> None:
    """Makes unknown what other methods than `name`, and those that it leads to, put in the place of
    plain values.
    """
    if m.session.elsewhere is None:  # the same on all paths
        lineage = [cls for cls in instance.cls.lineage() if isinstance(cls, Class)]
        own = [
            node.source
            for cls in lineage
            for node in cls.node.body
            if isinstance(node, ir.Function)
        ]
        others = [
            method
            for cls in fields.relatives(instance.cls.name, tree)
            for method in fields.methods(cls)
        ]
        m.session.elsewhere = fields.elsewhere(name, [*own, *others])
    known = instance.attrs
    for written in sorted(m.session.elsewhere.written & known.keys()):
        value = known[written]
        if _is_plain(value):
            known[written] = made = Unknown(
                m.symbol(instance).derive(("attribute", written), f"self.{written}")
            )
            if m.session.contract and isinstance(value, Const):
                m.state.setdefault("defaults", {})[made.symbol] = value.value
            elif m.session.contract == "forward" and _is_empty(value):
                m.state.setdefault("left empty", set()).add(made.symbol)
    m.state["stepped elsewhere"] = [
        known[each] for each in sorted(m.session.elsewhere.stepped & known.keys())
    ]


def _is_empty(value: Abstract) -> bool:
    """Whether it is a container with nothing in it: hooks that nobody has registered yet."""
    return isinstance(value, Sequence | Mapping) and not value.open and not value.items


def _is_plain(value: Abstract) -> bool:
    """Whether a value is data: a constant, a tensor of numbers, or a container of such."""
    match value:
        case Const():
            return True
        case Tensor():
            return not value.node.requires_grad
        case Sequence():
            return all(map(_is_plain, value.items))
        case Mapping():
            return all(map(_is_plain, value.items.values()))
    return False


def _hook(m: Machine, instance: Abstract, name: str, method: Abstract, call: Call) -> None:
    for hook in ENTRIES:
        if hook(m, instance, name, method, call):
            return
    _drain(m, m.call(method, call), call)


def _drain(m: Machine, result: Abstract, call: Call) -> None:
    """Runs a generator that an entry returns, what it is sent is not known; and a function that it
    has made for those who train.
    """
    if isinstance(result, Object) and result.cls == "builtins.generator":
        result.state["sent to"] = True
        m.items(result, call)
    for made in result.items if isinstance(result, Sequence) else [result]:
        if isinstance(made, Function) and _is_made_to_train(made):
            known = driving.typed_by_defaults(m, made)
            _drain(m, m.call(made, replace(call, name=made.name, kwargs=known)), call)


def _is_made_to_train(function: Function) -> bool:
    """Whether it is a closure in which a backward stands."""
    return function.scope.function is not None and any(
        each.at_hand & tape.May.BACKWARD for each in effects.of([function.node.source])
    )
