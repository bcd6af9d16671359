"""`inspect.signature(function)`: the parameters that a function of the program writes down.

names = list(inspect.signature(model.forward).parameters)     # which columns of a batch a model
takes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Lib,
    Mapping,
    Object,
)
from gradlint.library.python.results import argument, fresh, place

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_EMPTY = Lib("inspect._empty")
_KINDS = {
    "positional": "POSITIONAL_OR_KEYWORD",
    "keyword": "KEYWORD_ONLY",
    "args": "VAR_POSITIONAL",
}
_KINDS |= {"kwargs": "VAR_KEYWORD"}

alias("inspect.Parameter.empty", "inspect._empty")
alias("inspect.Signature.empty", "inspect._empty")


@function("inspect.signature")
def signature(m: Machine, call: Call) -> Abstract:
    """The signature of what is called; of a class, that of its constructor."""
    asked, skipped = _function(m, argument(m, call))
    if asked is None:
        return fresh(m, call)
    parameters = Mapping({})
    for parameter in asked.node.parameters[skipped:]:
        attrs = {
            "name": Const(parameter.name),
            "default": asked.defaults.get(parameter.name, _EMPTY),
            "annotation": m.unknown("annotation", data=True)
            if parameter.annotation is not None
            else _EMPTY,
            "kind": Lib(f"inspect.Parameter.{_KINDS[parameter.kind]}"),
        }
        parameters.items[parameter.name] = Object("inspect.Parameter", place(call), attrs=attrs)
    attrs = {"parameters": parameters, "return_annotation": m.unknown("annotation", data=True)}
    return Object("inspect.Signature", place(call), attrs=attrs)


def _function(m: Machine, value: Abstract) -> tuple[Function | None, int]:
    """The function behind what can be called, and how many of its parameters are given already:
    `self`.
    """
    match value:
        case Function():
            return value, 0
        case Bound(function=Function() as bound):
            return bound, 1
        case Builtin(wraps=Function() as wrapped):
            return wrapped, 0
        case Class():
            made = m.session.member_of(value, "__init__")
            return (made, 1) if isinstance(made, Function) else (None, 0)
    return None, 0
