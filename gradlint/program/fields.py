"""What becomes of an object's attributes behind a method that is run by itself: what other methods do with them.

`loss = zeros(1)` of an `__init__` says nothing of what a method finds there that another method was called before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradlint.dataclass import dataclass

_FILLING = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])
Method = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The attributes that some methods write, and those that they call the `step` of."""

    written: frozenset[str]
    stepped: frozenset[str]


def elsewhere(entry: str, methods: Iterable[Method]) -> Elsewhere:
    """What the methods do that `entry` does not lead to; `__init__` was run before it."""
    by_name: dict[str, list[Method]] = {}
    for method in methods:
        by_name.setdefault(getattr(method, "name", ""), []).append(method)
    pending, reached = [entry], {entry, "__init__"}
    for name in pending:
        for method in by_name.get(name, []):
            found = {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)} & by_name.keys()
            pending.extend(sorted(found - reached))
            reached |= found
    others = [method for name, found in by_name.items() if name not in reached for method in found]
    return Elsewhere(
        frozenset(name for method in others for name in _written(method)),
        frozenset(name for method in others for name in _stepped(method)),
    )


def _own(method: Method) -> str:
    parameters = [*method.args.posonlyargs, *method.args.args]
    return parameters[0].arg if parameters else ""


def _stepped(method: Method) -> Iterator[str]:
    """The attributes of its object that a method calls the `step` of."""
    own = _own(method)
    for node in ast.walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            target = node.func.value
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
                yield target.attr


def _written(method: Method) -> Iterator[str]:
    """The attributes of its object that a method assigns, or puts something into."""
    own = _own(method)
    for node in ast.walk(method):
        target: ast.AST = node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLING:
            target = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)):
            continue
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
            yield target.attr


def relatives(name: str, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of a file that inherit from the one of this name, and what else these inherit from there."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    below: set[str] = {name}
    while more := {other for other, node in classes.items() if other not in below and below & set(_bases(node))}:
        below |= more
    pending = sorted(below - {name})
    for other in pending:
        pending.extend(base for base in _bases(classes[other]) if base in classes and base not in pending)
    return [classes[other] for other in pending if other in classes]


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name | ast.Attribute):
            yield inner.id if isinstance(inner, ast.Name) else inner.attr


def methods(node: ast.ClassDef) -> Iterator[Method]:
    """The methods that a class defines."""
    return (member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef))
