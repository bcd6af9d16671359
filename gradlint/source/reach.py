"""How something is reached from a name: `self.optimizer` by way of `self`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.source.blocks import walk

# where a path begins that goes on with a method of the object's class
SUPER, TYPE = ("super()", "type()")
Key = tuple[object]  # of an item: `state["count"]` is ("state", ("count",))
Path = tuple[str | Key, ...]  # of a name, and of attributes and items below it; () of what has none


def path_of(node: ast.AST | None) -> Path:
    """How something is reached from a name; () where it is made on the way."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=owner, attr=name):
            above = path_of(owner)
            return (*above, name) if above else ()
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            above = path_of(owner)
            return (*above, (key,)) if above else ()
        case ast.Call(func=ast.Name(id="super")):
            return (SUPER,)
        case ast.Call(func=ast.Name(id="type")):
            return (TYPE,)
    return ()


def paths_in(node: ast.AST) -> Iterator[Path]:
    """The paths of all that is read in an expression."""
    return (
        path_of(part)
        for part in walk(node)
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)
    )


def last(node: ast.AST | None) -> str:
    """The name of a variable, or of an attribute of whatever it is; "" of anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
