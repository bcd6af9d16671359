"""What becomes of an object's attributes behind a method that is run by itself: what other methods
do with them.

`loss = zeros(1)` of an `__init__` says nothing of what a method finds there that another method was
called before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source import effects, reach
from gradlint.source.blocks import statements

Method = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The attributes that some methods write, those that they step, and those that only `__init__`
    makes.
    """

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
    others = [
        deeds for name, found in by_name.items() if name not in reached | before for deeds in found
    ]
    written = frozenset(name for deeds in others for name in deeds.written)
    return Elsewhere(
        written,
        frozenset(name for deeds in others for name in deeds.stepped),
        frozenset(
            name for each in before for deeds in by_name.get(each, []) for name in deeds.written
        )
        - written,
    )


def _reached(
    start: list[str], by_name: dict[str, list[_Deeds]], names: Callable[[_Deeds], frozenset[str]]
) -> set[str]:
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
    """The attributes that a method reads, and those of its object that it reads, calls, writes or
    calls the `step` of.

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
    has_its_methods = (own, reach.SUPER, reach.TYPE)
    summaries = list(effects.of([method]))
    reads = (read for found in summaries for read in found.does.reads)
    calls = [call for found in summaries for call in found.does.calls if call.is_method]
    given = (
        call
        for call in calls
        if call.args and call.args[0] in [(each,) for each in has_its_methods]
    )
    written = (path for found in summaries for path, _ in found.does.written)
    return _Deeds(
        frozenset(name for found in summaries for name in found.attributes),
        frozenset(
            [name for owner, name in reads if owner in has_its_methods]
            + [call.name for call in given]
        ),
        frozenset(call.name for call in calls if call.path == (own, call.name)),
        frozenset(name for path in written if (name := _of_own(path, own))),
        frozenset(
            name for call in calls if call.name == "step" and (name := _of_own(call.path[:-1], own))
        ),
    )


def _of_own(path: reach.Path, own: str) -> str:
    """The attribute of the method's object that something is, or is an item of:
    `self.seen["loss"]`.
    """
    match path:
        case (root, str(name), *items) if root == own and not any(
            isinstance(item, str) for item in items
        ):
            return name
    return ""


def relatives(name: str, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of a file that inherit from the one of this name, and what else these inherit
    from there.
    """
    classes = _classes(tree)
    below: set[str] = {name}
    while more := {
        other for other, node in classes.items() if other not in below and below & set(_bases(node))
    }:
        below |= more
    pending = sorted(below - {name})
    for other in pending:
        pending.extend(
            base for base in _bases(classes[other]) if base in classes and base not in pending
        )
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
    return (
        member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
    )
