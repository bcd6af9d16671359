"""Functions of functions: functools and operator."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradlint.interpret import retention
from gradlint.interpret.comparisons import compare_values
from gradlint.interpret.operators import binary
from gradlint.interpret.registry import attribute, function, method
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    NONE,
    TRUE,
    Abstract,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Mapping,
    Object,
    Sequence,
)
from gradlint.library.python.results import argument, functions, last, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "concat": "+",
    "iadd": "+", "isub": "-", "imul": "*",
}  # fmt: skip
_COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "is_": "is",
    "is_not": "is not",
}


@function("functools.partial")
def partial(m: Machine, call: Call) -> Abstract:
    """`partial(f, *args, **kwargs)`."""
    if not call.args:
        return m.unknown(text(call))
    state = {
        "func": call.args[0],
        "args": call.args[1:],
        "keywords": call.kwargs,
        "open": call.open,
        "made": call,
    }
    return Object("functools.partial", place(call), state)


@method("functools.partial", "__call__")
def call_partial(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Calls the function with what the partial holds, then what is given now."""
    state = receiver.state
    args, kwargs = [*state["args"], *call.args], {**state["keywords"], **call.kwargs}
    is_open = call.open or state["open"]
    return m.call(
        state["func"], Call(call.name, args, kwargs, call.node, call.frame, is_open, state["made"])
    )


@attribute("functools.partial", "func")
def behind(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The function of a partial."""
    found = receiver.state["func"]
    assert isinstance(found, Abstract)
    return found


@attribute("functools.partial", "keywords")
def keywords(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The keyword arguments of a partial."""
    return Mapping(receiver.state["keywords"])


@function("functools.reduce")
def reduce(m: Machine, call: Call) -> Abstract:
    """`reduce(f, items, start)`."""
    if len(call.args) < 2:
        return m.unknown(text(call))
    total, sinks = call.get(2, "initial"), len(m.sinks)
    items = m.items(call.args[1], call)
    through = m.sinks[sinks:]
    for item in items:
        total = item if total is None else m.invoke(call.args[0], [total, item], call)
    if total is None:
        return m.unknown(text(call))
    retention.report_sum(m, total, items, through, place(call))
    return total


def unchanged(m: Machine, call: Call) -> Abstract:
    """A decorator that leaves what its function does."""
    return argument(m, call)


@function("functools.wraps", "functools.update_wrapper")
def wraps(m: Machine, call: Call) -> Abstract:
    """`@wraps(f)`: the wrapper itself."""
    return call.args[0] if len(call.args) > 1 else Builtin("functools.wraps", unchanged)


@functions(
    "functools.cache", "functools.lru_cache", "functools.total_ordering", "typing.overload",
    "typing.final", "typing.no_type_check", "typing.runtime_checkable", "typing.override",
    "atexit.register", "warnings.deprecated", "enum.unique",
)  # fmt: skip
def transparent(m: Machine, call: Call, name: str) -> Abstract:
    """A decorator without effect on gradients, bare or with settings."""
    if call.args and isinstance(call.args[0], Function | Builtin | Class | Object):
        return call.args[0]
    return Builtin(name, unchanged)


@function("abc.abstractmethod")
def left_open(m: Machine, call: Call) -> Abstract:
    """`@abstractmethod`: the object has a method of a subclass in the place of one that is
    empty.
    """
    method = argument(m, call)
    if isinstance(method, Function):
        method.attrs["__isabstractmethod__"] = TRUE
    if not isinstance(method, Function) or not _is_empty(method):
        return method

    def run(machine: Machine, at: Call) -> Abstract:
        receiver, *given = at.args or [method]
        symbol = machine.symbol(receiver).derive(("attribute", method.name), method.name)
        return call_unknown(
            machine, symbol, Call(at.name, given, at.kwargs, at.node, at.frame, at.open)
        )

    return Builtin("abc.abstractmethod", run, wraps=method)


def _is_empty(method: Function) -> bool:
    body = [] if isinstance(method.node.source, ast.Lambda) else method.node.source.body
    return all(isinstance(each, ast.Pass) or _is_text(each) or _refuses(each) for each in body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _refuses(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise) and "NotImplementedError" in ast.unparse(statement)


@function("functools.cmp_to_key")
def key_function(m: Machine, call: Call) -> Abstract:
    """`cmp_to_key(f)`."""
    return unchanged(m, call)


# operator


@functions(*(f"operator.{name}" for name in _BINARY))
def binary_operator(m: Machine, call: Call, name: str) -> Abstract:
    """`operator.add(a, b)`."""
    if len(call.args) != 2:
        return m.unknown(text(call))
    return binary(m, _BINARY[last(name)], call.args[0], call.args[1], call.node, call.frame)


@functions(*(f"operator.{name}" for name in _COMPARISONS))
def comparison(m: Machine, call: Call, name: str) -> Abstract:
    """`operator.lt(a, b)`."""
    if len(call.args) != 2:
        return m.unknown(text(call))
    return compare_values(
        m, _COMPARISONS[last(name)], call.args[0], call.args[1], call.node, call.frame
    )


@function("operator.itemgetter")
def itemgetter(m: Machine, call: Call) -> Abstract:
    """`itemgetter(1)`."""
    from gradlint.interpret.subscripts import item

    def run(m: Machine, at: Call) -> Abstract:
        target = at.args[0] if at.args else NONE
        found = [item(m, target, index, at.node, at.frame) for index in call.args]
        return found[0] if len(found) == 1 else Sequence("tuple", found)

    return Builtin("itemgetter", run)


@function("operator.attrgetter")
def attrgetter(m: Machine, call: Call) -> Abstract:
    """`attrgetter("loss")`."""

    def run(m: Machine, at: Call) -> Abstract:
        found = at.args[0] if at.args else NONE
        for name in str(call.constant(0, "attr", "")).split("."):
            found = m.attribute(found, name, at)
        return found

    return Builtin("attrgetter", run)


@function("operator.methodcaller")
def methodcaller(m: Machine, call: Call) -> Abstract:
    """`methodcaller("item")`."""

    def run(m: Machine, at: Call) -> Abstract:
        target = at.args[0] if at.args else NONE
        called = m.attribute(target, str(call.constant(0, "name", "")), at)
        return m.invoke(called, call.args[1:], at, **call.kwargs)

    return Builtin("methodcaller", run)


@function("operator.getitem")
def getitem(m: Machine, call: Call) -> Abstract:
    """`operator.getitem(x, index)`."""
    from gradlint.interpret.subscripts import item

    return (
        item(m, call.args[0], call.args[1], call.node, call.frame)
        if len(call.args) == 2
        else Const(None)
    )
