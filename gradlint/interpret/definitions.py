"""Definitions of functions and classes, under their decorators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import (
    away,
    decorators,
)
from gradlint.interpret.lineage import canonical
from gradlint.interpret.registry import find_method, notify
from gradlint.interpret.scopes import Frame
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import (
    Abstract,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# steps of what a decorator does to a function or class, which is as it is written behind that
MOST_DECORATING = 200


@handles(EXECUTE, ir.Function)
def define(m: Machine, node: ir.Function, frame: Frame) -> None:
    value = m.evaluate(node, frame)
    for decorator in reversed(node.decorators):
        value = _decorated(m, m.evaluate(decorator, frame), value, decorator, frame)
    frame.locals[node.name] = value
    if frame.function is not None:
        m.session.program.scopes.add(frame)


def _decorated(
    m: Machine, decorator: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """What a decorator makes; one that nothing is known of leaves the function as it is."""
    if isinstance(decorator, Unknown):
        notify("decorated", m, value, node, frame)
        return value
    if isinstance(decorator, Lib) and not m.session.has_model(decorator.name):
        return value
    with m.oracle.registering() as met:
        made = away.within_steps(
            m,
            MOST_DECORATING,
            lambda: m.call(decorator, Call("decorator", [value], {}, node, frame)),
        )
    if made is None or isinstance(made, Unknown) or decorators.passes_on(m, made, value):
        return value
    if made is not value:  # what it makes hangs on its branches
        for seen in met():
            seen.registers = False
    return made


@handles(EXECUTE, ir.Class)
def class_(m: Machine, node: ir.Class, frame: Frame) -> None:
    scope = Frame(frame.code, {}, frame, is_class=True)
    given = [m.evaluate(base, frame) for base in node.bases if not isinstance(base, ir.Star)]
    bases: list[Abstract] = [
        base if isinstance(base, Class | Lib | Unknown) else m.unknown(node.name) for base in given
    ]
    m.execute(node.body, scope)
    annotations = scope.locals.pop("__annotations__", Mapping({}))
    made = Class(node.name, bases, scope.locals, node)
    m.session.program.classes.append(made)
    assert isinstance(annotations, Mapping)
    made.annotations = {
        str(name): (scope.locals.get(str(name)), node) for name in annotations.items
    }
    for name, member in list(scope.locals.items()):
        _own(member, made)
        named = (
            m.session.member_of(member.cls, "__set_name__")
            if isinstance(member, Instance)
            else None
        )
        if named is not None:
            m.invoke(named, [member, made, Const(name)], Call(name, [], {}, node, frame))
    for base in made.libraries():
        hook = find_method(canonical(base), "__init_subclass__")
        if hook is not None:
            hook(m, made, Call(node.name, [], {}, node, frame))
    _note_base(m, made, node, frame)
    value: Abstract = made
    for decorator in reversed(node.decorators):
        value = _decorated(m, m.evaluate(decorator, frame), value, decorator, frame)
    frame.locals[node.name] = value


def _note_base(m: Machine, made: Class, node: ir.Class, frame: Frame) -> None:
    """Runs the `__init_subclass__` that a base of the program defines."""
    for base in made.bases:
        hook = m.session.member_of(base, "__init_subclass__") if isinstance(base, Class) else None
        if hook is not None:
            given = {
                key: m.evaluate(value, frame)
                for key, value in node.keywords
                if key not in (None, "metaclass")
            }
            run = (
                hook
                if isinstance(hook, Function)
                else m.attribute(made, "__init_subclass__", Call(node.name, [], {}, node, frame))
            )
            m.call(
                run,
                Call(
                    node.name,
                    [made] if run is hook else [],
                    {str(key): value for key, value in given.items()},
                    node,
                    frame,
                ),
            )
            return


def _own(member: Abstract, cls: Class) -> None:
    """Tells functions of a class (under decorators, too) whose they are, for `super()`."""
    while isinstance(member, Builtin) and member.wraps is not None:
        member = member.wraps
    if isinstance(member, Function) and member.owner is None:
        member.owner = cls
    elif isinstance(member, Object) and member.cls in (
        "builtins.property",
        "builtins.staticmethod",
        "builtins.classmethod",
    ):
        for inner in member.state.values():
            if isinstance(inner, Abstract):
                _own(inner, cls)
