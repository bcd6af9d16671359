"""A file of a program: its statements, and which of them bind each of its names."""

from __future__ import annotations

import ast
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.ir import lower
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Sides = tuple[tuple[ir.If, bool], ...]


@dataclass(eq=False, slots=True)
class Source:
    """One file: its statements, and by which of them each of its names is bound.

    Of statements at the top of the file the last one comes first, as importers get what it binds;
    those inside of others, which may not be run, follow in their order.
    """

    path: Path
    name: str
    code: ir.Code
    tree: ast.Module
    statements: list[ir.Node]
    bindings: dict[str, list[ir.Node]] = field(default_factory=dict)
    stars: list[ir.ImportFrom] = field(default_factory=list)
    # the branches that a statement stands in, and on which side of them, by its `id`
    within: dict[int, _Sides] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own, within = set(map(id, self.statements)), list[ir.Node]()
        for statement, sides in _bound_statements(self.statements):
            if sides:
                self.within[id(statement)] = sides
            if isinstance(statement, ir.ImportFrom) and _is_star(statement):
                self.stars.append(statement)
            if id(statement) not in own:
                within.append(statement)
        for statement in (*reversed(self.statements), *within):
            for name in bound_names(statement):
                self.bindings.setdefault(name, []).append(statement)

    def at(self, statements: Iterable[ast.stmt]) -> list[ir.Node]:
        """The lowered form of statements at the top of the file."""
        lowered = {statement.at[:2]: statement for statement in self.statements}
        places = [(statement.lineno, statement.col_offset) for statement in statements]
        return [lowered[place] for place in places if place in lowered]


def _lowered(path: Path, text: str, tree: ast.Module) -> Source:
    code = ir.Code(str(path), text)
    return Source(path, path.stem, code, tree, lower.module(tree, code))


source_of = memo.of_texts(_lowered, lambda source: source.code.close())


def _bound_statements(
    statements: list[ir.Node], sides: _Sides = ()
) -> Iterator[tuple[ir.Node, _Sides]]:
    """Each statement that is run when a module is, and the sides of branches that it stands on."""
    for statement in statements:
        yield statement, sides
        is_for_types = _asks_who_checks_types(statement)
        for block in ("body", "then", "otherwise"):
            if not isinstance(statement, ir.Class | ir.For | ir.While):
                own = sides
                if isinstance(statement, ir.If) and not is_for_types:
                    own = (*sides, (statement, block == "then"))
                within = _bound_statements(getattr(statement, block, []), own)
                is_hidden = block == "then" and is_for_types
                yield from (each for each in within if not (is_hidden and _is_star(each[0])))
        for handler in getattr(statement, "handlers", ()):
            yield from _bound_statements(handler.body, sides)


def _is_star(statement: ir.Node) -> bool:
    return isinstance(statement, ir.ImportFrom) and any(name == "*" for name, _ in statement.names)


def _asks_who_checks_types(statement: ir.Node) -> bool:
    """Whether it is `if TYPE_CHECKING: …`: a package that is filled lazily names all of its
    modules' names there.
    """
    match statement:
        case ir.If(test=ir.Name(id="TYPE_CHECKING") | ir.Attribute(name="TYPE_CHECKING")):
            return True
    return False


def bound_names(statement: ir.Node) -> Iterator[str]:
    """The names that a statement binds itself, other than by what stands in it."""
    match statement:
        case ir.Function() | ir.Class():
            yield statement.name
        case ir.Import():
            yield statement.name
        case ir.ImportFrom():
            yield from (bound for _, bound in statement.names)
        case ir.Assign():
            for target in statement.targets:
                yield from _targets(target)


def _targets(target: ir.Node) -> Iterator[str]:
    if isinstance(target, ir.Name):
        yield target.id
    elif isinstance(target, ir.Display):
        for item in target.items:
            yield from _targets(item)
