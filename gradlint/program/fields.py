"""What becomes of an object's attributes behind a method that is run by itself: what other methods do with them.

`loss = zeros(1)` of an `__init__` says nothing of what a method finds there that another method was called before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source.blocks import statements, walk

_FILLING = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])
Method = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The attributes that some methods write, those that they step, and those that only `__init__` makes."""

    written: frozenset[str]
    stepped: frozenset[str]
    made: frozenset[str]


def elsewhere(entry: str, methods: Iterable[Method]) -> Elsewhere:
    """What the methods do that `entry` does not lead to; `__init__` was run before it."""
    by_name: dict[str, list[_Deeds]] = {}
    for method in methods:
        by_name.setdefault(getattr(method, "name", ""), []).append(_deeds(method))
    reached = _reached([entry], by_name, lambda deeds: deeds.own) | {"__init__"}
    making = _reached(["__init__"], by_name, lambda deeds: deeds.called)
    later = {
        name
        for method, found in by_name.items()
        if method not in making
        for deeds in found
        for name in deeds.attributes
    }
    before = making - later | {"__init__"}
    others = [deeds for name, found in by_name.items() if name not in reached | before for deeds in found]
    written = frozenset(name for deeds in others for name in deeds.written)
    return Elsewhere(
        written,
        frozenset(name for deeds in others for name in deeds.stepped),
        frozenset(name for each in before for deeds in by_name.get(each, []) for name in deeds.written) - written,
    )


def _reached(start: list[str], by_name: dict[str, list[_Deeds]], names: Callable[[_Deeds], frozenset[str]]) -> set[str]:
    """The methods that some lead to, by the `names` in each."""
    pending, reached = list(start), set(start)
    for name in pending:
        for deeds in by_name.get(name, []):
            found = names(deeds) & by_name.keys()
            pending.extend(sorted(found - reached))
            reached |= found
    return reached


@dataclass(frozen=True, slots=True)
class _Deeds:
    """The attributes that a method reads, and those of its object that it reads, calls, writes or calls the `step` of.

    `self.model.train()` reads an attribute `train` that is not one of the object.
    """

    attributes: frozenset[str]
    own: frozenset[str]
    called: frozenset[str]
    written: frozenset[str]
    stepped: frozenset[str]


@memo.of_programs
def _deeds(method: Method) -> _Deeds:
    parameters = [*method.args.posonlyargs, *method.args.args]
    own = parameters[0].arg if parameters else ""
    attributes, read, called, written, stepped = set(), set(), set(), set(), set()
    for node in walk(method):
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
            if isinstance(node.ctx, ast.Load) and _is_own(node.value, own):
                read.add(node.attr)
            if isinstance(node.ctx, ast.Store | ast.Del):
                written.add(_of_own(node, own))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            written.add(_of_own(node.value, own))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called.add(_of_own(node.func, own))
            if node.args and _is_own(node.args[0], own):  # Base.fit(self)
                read.add(node.func.attr)
            if node.func.attr == "step":
                stepped.add(_of_own(node.func.value, own))
            elif node.func.attr in _FILLING:
                written.add(_of_own(node.func.value, own))
    return _Deeds(
        frozenset(attributes),
        frozenset(read),
        frozenset(called),
        frozenset(written - {""}),
        frozenset(stepped - {""}),
    )


def _is_own(owner: ast.expr, own: str) -> bool:
    """Whether this is the method's object, or what has its methods: `self`, `super()`, `type(self)`."""
    if isinstance(owner, ast.Call):
        return isinstance(owner.func, ast.Name) and owner.func.id in ("super", "type")
    return isinstance(owner, ast.Name) and owner.id == own


def _of_own(target: ast.expr, own: str) -> str:
    """The name of an attribute of the method's object; "" where the target is none."""
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own
    return target.attr if is_own and isinstance(target, ast.Attribute) else ""


def relatives(name: str, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of a file that inherit from the one of this name, and what else these inherit from there."""
    classes = _classes(tree)
    below: set[str] = {name}
    while more := {other for other, node in classes.items() if other not in below and below & set(_bases(node))}:
        below |= more
    pending = sorted(below - {name})
    for other in pending:
        pending.extend(base for base in _bases(classes[other]) if base in classes and base not in pending)
    return [classes[other] for other in pending if other in classes]


@memo.of_programs
def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in statements(tree) if isinstance(node, ast.ClassDef)}


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name | ast.Attribute):
            yield inner.id if isinstance(inner, ast.Name) else inner.attr


def methods(node: ast.ClassDef) -> Iterator[Method]:
    """The methods that a class defines."""
    return (member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef))
