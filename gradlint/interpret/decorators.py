"""Decorators of other files whose wrappers do nothing to tensors: a function under one is as it is
written.

def wrapper(self, *args, **kwargs):     # of transformers' `deprecate_kwarg`, `can_return_tuple`, …
    ...                                 # names, warnings, settings
    return function(self, *args, **kwargs)
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.values import Abstract, Function
from gradlint.source import effects
from gradlint.tape import May

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_BESIDE = May.WRITE | May.KEEP | May.BIND | May.LEAVE  # what is done to names, lists and dicts
_ON_TENSORS = May.CUT | May.SPOIL | May.LEAF


def passes_on(m: Machine, wrapper: Abstract, function: Abstract) -> bool:
    """Whether a wrapper hands all that it is given to the function of another file, and does no
    more to tensors.
    """
    if not isinstance(wrapper, Function) or not isinstance(function, Function):
        return False
    module = wrapper.scope.module.source
    if wrapper.node.code is function.node.code or module is None or wrapper.node.is_generator:
        return False
    names = frozenset(name for name, value in wrapper.scope.locals.items() if value is function)
    written = wrapper.node.source
    if not isinstance(written, ast.FunctionDef) or not _only_calls(written, names):
        return False
    return not m.session.may_do(written, _ON_TENSORS, module.tree)


def handed_to(wrapper: Function) -> Function | None:
    """The function whose result a wrapper gives back, and nothing else:
    `return function(*args, **kwargs)`.
    """
    written = wrapper.node.source
    match written:
        case ast.FunctionDef(body=[ast.Return(value=ast.Call(func=ast.Name(id=name)) as call)]):
            found = wrapper.scope.locals.get(name) if _takes_all(call, written) else None
            return found if isinstance(found, Function) else None
    return None


@memo.of_programs
def _only_calls(wrapper: ast.FunctionDef, names: frozenset[str]) -> bool:
    """Whether a wrapper calls the function of these names with its own arguments, and has no effect
    beside that.
    """
    calls = [
        node
        for node in ast.walk(wrapper)
        if isinstance(node, ast.Call) and _is_named(node.func, names)
    ]
    if not calls or not all(_takes_all(call, wrapper) for call in calls):
        return False
    return not any(found.at_hand & ~_BESIDE for found in effects.of([wrapper]))


def _is_named(node: ast.expr, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _takes_all(call: ast.Call, wrapper: ast.FunctionDef) -> bool:
    """Whether a call hands on the parameters of a wrapper: `function(self, *args, **kwargs)`."""
    given = [each.value if isinstance(each, ast.Starred) else each for each in call.args]
    own = wrapper.args
    taken = [*own.posonlyargs, *own.args, *([own.vararg] if own.vararg else [])]
    named = [keyword.value for keyword in call.keywords]
    wanted = [parameter.arg for parameter in taken], [own.kwarg.arg] if own.kwarg else []
    return not own.kwonlyargs and (_names(given), _names(named)) == wanted


def _names(given: Collection[ast.expr]) -> list[str]:
    return [each.id if isinstance(each, ast.Name) else "" for each in given]
