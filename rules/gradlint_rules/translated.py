"""A statement of one function as it is written in another, of which one calls the other."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping

from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import PLACES
from gradlint_rules.order import names_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def lifted(statement: ast.stmt, call: ast.Call, source: FixSource) -> list[str]:
    """A statement of a function as it is written where that function is called."""
    function = source.scope(statement)
    assert isinstance(function, FUNCTIONS), function
    given = _given(function, call)
    names = names_of(statement, ast.Load)
    if names & _bound_in(function) - given.keys() or (names - given.keys()) & _bound_in(
        source.scope(call)
    ):
        raise NoFixError("it reads what only its function knows")
    return _renamed(statement, given, source)


def sunk(statement: ast.stmt, call: ast.Call, function: Function, source: FixSource) -> list[str]:
    """A statement beside the call of a function as it is written in that function.

    What is no argument has to be known there already: the code of a function that is given its
    model and optimizer reads no other from around it.
    """
    given = _given(function, call)
    names = {
        source.text(argument): ast.Name(name)
        for name, argument in given.items()
        if isinstance(argument, PLACES)
    }
    lines = _renamed(statement, names, source)
    known = {*given, *_imported(source.tree), *names_of(function, ast.Load)}
    read = names_of(ast.parse("\n".join(lines)), ast.Load)
    if not read <= known or (read - given.keys()) & _bound_in(function):
        raise NoFixError("it reads what the function does not know")
    return lines


def _given(function: Function, call: ast.Call) -> Mapping[str, ast.expr]:
    """What a call gives to the parameters of a function; a method's first one is its object."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        raise NoFixError("what it is given is not written out")
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_method = owner is not None and names[:1] == ["self"]
    arguments = [owner, *call.args] if owner is not None and is_method else call.args
    given = dict(zip(names, arguments, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
    return {
        name: argument
        for name, argument in given.items()
        if isinstance(argument, (*PLACES, ast.Constant)) and name not in _stored_in(function)
    }


def _renamed(statement: ast.stmt, names: Mapping[str, ast.expr], source: FixSource) -> list[str]:
    """The lines of a statement with what is written so replaced; as it is, where nothing is."""
    renaming = _Renaming(names)
    changed = renaming.visit(copy.deepcopy(statement))
    text = source.text(statement)
    if not renaming.changes and "\n" not in text:
        return [text]
    if "#" in text:
        raise NoFixError("its comments would be lost")
    return ast.unparse(changed).splitlines()


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names
        self.changes = False

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.unparse(node) if isinstance(node, PLACES) else ""
        if text not in self.names:
            return self.generic_visit(node)
        new = self.names[text]
        self.changes = self.changes or ast.unparse(new) != text
        return new


def _bound_in(scope: ast.AST) -> frozenset[str]:
    """The names that are a function's own: its parameters, and what it binds."""
    if not isinstance(scope, FUNCTIONS):
        return frozenset()
    return frozenset({*_parameters(scope), *_stored_in(scope)})


def _parameters(function: Function) -> Iterable[str]:
    return (node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))


def _stored_in(function: Function) -> set[str]:
    return names_of(function, ast.Store)


def _imported(tree: ast.Module) -> set[str]:
    """The names that the file's imports and definitions bind."""
    imports = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    names = {
        (each.asname or each.name).partition(".")[0] for node in imports for each in node.names
    }
    defined = (node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef)))
    return names | {node.name for node in defined}
