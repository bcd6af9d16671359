"""Which statements of a module put something into a container of it: registries are filled by decorators.

Module names are bound as they are looked up, so a class that registers itself would not be there when its registry is
asked for it. When a container is bound, the statements found here are run as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint import memo

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@memo.of_programs
def reaching(tree: ast.Module, name: str) -> frozenset[str]:
    """`name` and the functions and classes of its module that mention it."""
    found = {name}
    for statement in tree.body:
        if isinstance(statement, _DEFINITIONS) and name in mentioned(statement.body):
            found.add(statement.name)
    return frozenset(found)


def filling(tree: ast.Module, names: frozenset[str]) -> Iterator[ast.stmt]:
    """The statements at the top of a module that register by one of `names`: decorators, bases, calls, `X[key] = …`."""
    for statement in tree.body:
        match statement:
            case ast.ClassDef():
                used = mentioned([*statement.decorator_list, *statement.bases])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                used = mentioned(statement.decorator_list)
            case ast.Expr(value=ast.Call(func=function)):
                used = mentioned([function])
            case ast.Assign(targets=[ast.Subscript(value=container)]):
                used = mentioned([container])
            case _:
                continue
        if used & names:
            yield statement


def mentioned(nodes: list[ast.stmt] | list[ast.expr]) -> frozenset[str]:
    """Every name and attribute in `nodes`."""
    found = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                found.add(part.id)
            elif isinstance(part, ast.Attribute):
                found.add(part.attr)
    return frozenset(found)
