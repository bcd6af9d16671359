"""`functools.singledispatch`: which of several functions is called goes by the class of the first
argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.registry import function, method
from gradlint.interpret.values import Abstract, Builtin, Call, Function, Object
from gradlint.library.python.classes import belongs, is_subclass
from gradlint.library.python.results import argument, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_GENERIC = "functools.singledispatch"


@function(_GENERIC)
def singledispatch(m: Machine, call: Call) -> Abstract:
    """`@singledispatch`: the function, for classes that no other is registered for."""
    return Object(_GENERIC, place(call), {"base": argument(m, call), "cases": []})


@method(_GENERIC, "register")
def register(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`@f.register`, by the annotation of the first parameter; `@f.register(cls)`;
    `f.register(cls, g)`.
    """
    cls, written = argument(m, call), call.get(1, "func")
    if isinstance(cls, Function):
        cls, written = _annotated(m, cls), cls
    if written is not None:
        receiver.state["cases"].append((cls, written))
        return written
    return Builtin(
        "register",
        lambda m, at: register(m, receiver, Call(at.name, [cls, *at.args], {}, at.node, at.frame)),
    )


def _annotated(m: Machine, written: Function) -> Abstract:
    """The class that a function is for: what its first parameter is annotated with."""
    first = next(iter(written.node.parameters), None)
    if first is None or first.annotation is None:
        return m.unknown(written.node.name)
    return m.evaluate(first.annotation, written.scope)


@method(_GENERIC, "__call__")
def dispatch(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Calls what is registered for the class of the first argument, a class's own before those of
    its bases.
    """
    return m.call(_chosen(m, receiver, call), call)


def _chosen(m: Machine, receiver: Object, call: Call) -> Abstract:
    value, chosen = argument(m, call), None
    for cls, written in receiver.state["cases"]:
        if chosen is not None and is_subclass(cls, chosen[0]) is False:
            continue
        if conditions.decide(
            m, belongs(m, value, cls, text(call)), call.node, call.frame, default=False
        ):
            chosen = cls, written
    base: Abstract = receiver.state["base"]
    return base if chosen is None else chosen[1]
