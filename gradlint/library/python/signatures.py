"""`inspect.signature(function)`: the parameters that a function of the program writes down.

names = list(inspect.signature(model.forward).parameters)     # which columns of a batch a model
takes
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, function
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
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.python.results import argument, fresh, place

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_EMPTY = Lib("inspect._empty")
_KINDS = {
    "positional": "POSITIONAL_OR_KEYWORD",
    "keyword": "KEYWORD_ONLY",
    "args": "VAR_POSITIONAL",
}
_KINDS |= {"kwargs": "VAR_KEYWORD"}

alias("inspect.Parameter.empty", "inspect._empty")
alias("inspect.Signature.empty", "inspect._empty")


for _name in ("POSITIONAL_ONLY", *_KINDS.values()):
    alias(f"inspect._ParameterKind.{_name}", f"inspect.Parameter.{_name}")


@attribute("inspect.Parameter", "POSITIONAL_ONLY", *_KINDS.values())
def kind(m: Machine, parameter: Object, at: Call) -> Abstract:
    """`parameter.KEYWORD_ONLY`, taken from the parameter itself."""
    return Lib(f"inspect.Parameter.{at.name}")


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
            "annotation": _annotation(m, asked, parameter.annotation, call),
            "kind": Lib(f"inspect.Parameter.{_KINDS[parameter.kind]}"),
        }
        parameters.items[parameter.name] = Object("inspect.Parameter", place(call), attrs=attrs)
    attrs = {
        "parameters": parameters,
        "return_annotation": _of_return(asked, call),
    }
    return Object("inspect.Signature", place(call), attrs=attrs)


def _annotation(m: Machine, asked: Function, node: ir.Node | None, call: Call) -> Abstract:
    """What a signature shows of a parameter's annotation."""
    if node is None:
        return _EMPTY
    if _are_postponed(asked.scope):
        return Const(asked.scope.text(node), place(call))
    is_name = isinstance(node, ir.Literal | ir.Name | ir.Attribute)
    found = m.evaluate(node, asked.scope) if is_name else None
    return _some_type(call) if found is None or isinstance(found, Unknown) else found


def _of_return(asked: Function, call: Call) -> Abstract:
    """What a signature shows of the annotation of what is returned."""
    written = getattr(asked.node.source, "returns", None)  # a lambda has none
    if written is None:
        return _EMPTY
    if _are_postponed(asked.scope):
        return Const(ast.unparse(written), place(call))
    return _some_type(call)


def _some_type(call: Call) -> Object:
    """A type that is written as an expression, which no class stands for: `Optional[Tensor]`."""
    return Object("typing.annotation", place(call))


def _are_postponed(scope: Frame) -> bool:
    """Whether the annotations of a file are kept as text."""
    imported = scope.module.locals.get("annotations")
    return isinstance(imported, Lib) and imported.name == "__future__.annotations"


def _function(m: Machine, value: Abstract) -> tuple[Function | None, int]:
    """The function behind what can be called, and how many of its parameters are given already:
    `self`.
    """
    match value:
        case Function():
            return value, 0
        case Bound(function=Function() | Builtin() as bound):
            found, skipped = _function(m, bound)
            return found, skipped + 1
        case Builtin(wraps=Function() as wrapped):
            return wrapped, 0
        case Class():
            made = m.session.member_of(value, "__init__")
            return (made, 1) if isinstance(made, Function) else (None, 0)
    return None, 0
