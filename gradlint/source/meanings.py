"""What the names of a file can mean where they are called.

def advance(optimizer): …       # functions["advance"]
self.flush = advance            # bound["flush"], and `flush` is a field
"""

from __future__ import annotations

import ast

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source import reach
from gradlint.source.blocks import statements

_CALLED_WITH_CLASS = frozenset(["__init__", "__call__", "__enter__", "__exit__"])
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Meanings:
    """What the names of a file can mean where they are called: by name, the last one of an
    attribute.
    """

    functions: dict[str, list[ast.AST]]  # those of a class by its name
    # whatever is decorated: what runs where it is read is among them
    properties: dict[str, list[ast.AST]]
    bound: dict[str, list[ast.expr]]
    fields: set[str]  # attributes that are bound

    def bind(self, name: str, value: ast.expr) -> None:
        if name:
            self.bound.setdefault(name, []).append(value)


@memo.of_programs
def of(tree: ast.Module) -> Meanings:
    """What each name of a file can mean, where the file itself says so."""
    found = Meanings({}, {}, {}, set())
    for node in statements(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.functions.setdefault(node.name, []).append(node)
                if node.decorator_list:
                    found.properties.setdefault(node.name, []).append(node)
            case ast.ClassDef():
                methods = (each for each in node.body if isinstance(each, _Function))
                run = (each for each in methods if each.name in _CALLED_WITH_CLASS)
                found.functions.setdefault(node.name, []).extend(run)
            case ast.ImportFrom():
                for each in node.names:
                    found.bind(each.asname or "", ast.Name(each.name, ast.Load()))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _bind(found, target, value)
            case ast.AnnAssign(target=target, value=value):
                _bind(found, target, value)
            case ast.AugAssign(target=target, value=value):
                _bind(found, target, value)
    return found


def _bind(found: Meanings, target: ast.expr, value: ast.expr | None) -> None:
    for part in ast.walk(target):
        if isinstance(part, ast.Attribute):
            found.fields.add(part.attr)
        if value is not None:
            found.bind(reach.last(part), value)
