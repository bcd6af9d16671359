"""Which statements of a module put something into a container of it: registries are filled by
decorators.

Module names are bound as they are looked up, so a class that registers itself would not be there
when its registry is asked for it. When a container is bound, the statements found here are run as
well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint import memo
from gradlint.source import effects

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@memo.of_programs
def reaching(tree: ast.Module, name: str) -> frozenset[str]:
    """`name` and the functions and classes of its module that mention it."""
    return frozenset(
        [name, *(defined for defined, mentions in _defining(tree) if name in mentions)]
    )


def filling(tree: ast.Module, names: frozenset[str]) -> Iterator[ast.stmt]:
    """The statements at the top of a module that register by one of `names`: decorators, bases,
    calls, `X[key] = …`.
    """
    return (statement for statement, used in _registering(tree) if not used.isdisjoint(names))


@memo.of_programs
def _defining(tree: ast.Module) -> tuple[tuple[str, frozenset[str]], ...]:
    """The functions and classes of a module, each with what it mentions."""
    return tuple(
        (each.name, effects.mentions(each.body))
        for each in tree.body
        if isinstance(each, _DEFINITIONS)
    )


@memo.of_programs
def _registering(tree: ast.Module) -> tuple[tuple[ast.stmt, frozenset[str]], ...]:
    """The statements that can register something, each with the names by which it would."""
    return tuple(
        (statement, effects.mentions(by)) for statement in tree.body if (by := _by(statement))
    )


def _by(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.ClassDef():
            return [*statement.decorator_list, *statement.bases]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return statement.decorator_list
        case ast.Expr(value=ast.Call(func=function)):
            return [function]
        case ast.Assign(targets=[ast.Subscript(value=container)]):
            return [container]
    return []
