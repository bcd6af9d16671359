"""The file of a finding, as its fix sees it: what stands where, and edits that leave all the rest
as it is.
"""

from __future__ import annotations

import ast
import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Span
from gradlint.fix import names
from gradlint.fix.layout import Layout, blocks, first_line, last_line
from gradlint.fix.parentheses import ATOMS, back, enclosed, forth
from gradlint.rule import Edits, NoFixError
from gradlint.source import document
from gradlint.source.imported import dotted, imported
from gradlint.source.parse import expression

if TYPE_CHECKING:
    from gradlint.fix.blocks import Draft

_ENCLOSED = (
    ast.Call,
    ast.keyword,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.FormattedValue,
)  # what brackets delimit
_WHOLE = (
    ast.withitem,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Expr,
    ast.If,
    ast.While,
)  # statements whose value stands alone


def _unread(path: str) -> File | None:
    """What a file knows of another where it was read alone: nothing."""
    return None


@dataclass(frozen=True)
class File:
    """One file as a `FixSource`."""

    path: str
    layout: Layout
    others: Callable[[str], File | None] = _unread

    @property
    def tree(self) -> ast.Module:
        return self.layout.tree

    @property
    def unit(self) -> str:
        return self.layout.unit

    def elsewhere(self, path: str) -> File:
        other = self.others(path)
        if other is None:
            raise NoFixError("the other file cannot be read")
        return other

    # what stands where

    @property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return self.layout.parents

    @functools.cached_property
    def _stretches(self) -> list[tuple[int, int, ast.expr | ast.stmt]]:
        """Where each expression and statement begins and ends, the outer ones first."""
        return [
            (*self._stretch(node), node)
            for node in self._parents
            if isinstance(node, ast.expr | ast.stmt)
        ]

    @functools.cached_property
    def _bound(self) -> frozenset[str]:
        return frozenset(names.bound(self.tree))

    @functools.cached_property
    def _imported(self) -> dict[str, str]:
        return imported(self.tree)

    def _stretch(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg), node
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.layout.byte_offset(node.lineno, node.col_offset), self.layout.byte_offset(
            end_line, end_column
        )

    def _around(self, at: Span, kind: type[ast.AST]) -> ast.AST:
        """The smallest node of this kind around a place; of several of one size, the outermost."""
        start, end = self.layout.stretch(at)
        found = [
            (last - first, node)
            for first, last, node in self._stretches
            if first <= start and end <= last and isinstance(node, kind)
        ]
        if not found:
            raise NoFixError(f"nothing stands at {at}")
        return min(found, key=lambda each: each[0])[1]

    def expression(self, at: Span) -> ast.expr:
        node = self._around(at, ast.expr)
        assert isinstance(node, ast.expr)
        return node

    def statement(self, place: Span | ast.AST) -> ast.stmt:
        if isinstance(place, ast.stmt):
            return place
        node = (
            self._around(place, ast.stmt)
            if isinstance(place, Span)
            else self._enclosing(place, ast.stmt)
        )
        assert isinstance(node, ast.stmt)
        return node

    def statement_on(self, line: int) -> ast.stmt:
        found = [
            node
            for _, _, node in self._stretches
            if isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node)
        ]
        if not found:
            raise NoFixError(f"no statement stands on line {line}")
        return min(found, key=lambda node: last_line(node) - node.lineno)

    def _enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST:
        for outer in self.around(node):
            if isinstance(outer, kinds):
                return outer
        raise NoFixError("nothing stands around it")

    def scope(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        found = self._enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
        return found

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self._parents.get(statement, self.tree)
        for block in itertools.chain(
            blocks(parent), *(blocks(case) for case in getattr(parent, "cases", ()))
        ):
            if statement in block:
                return block
        raise NoFixError("the statement stands in no block")

    def text(self, node: ast.AST) -> str:
        start, end = (
            self._parenthesised(node) if isinstance(node, ast.expr) else self._stretch(node)
        )
        return self.layout.text[start:end]

    def operand(self, node: ast.expr) -> str:
        return enclosed(self.text(node))

    def called(self, node: ast.AST) -> str:
        return dotted(node, self._imported)

    def fresh(self, wish: str, near: ast.AST) -> str:
        taken = {*names.bound(self.scope(near)), *self._bound}
        candidates = itertools.chain([wish], (f"{wish}_{number}" for number in itertools.count(1)))
        return next(name for name in candidates if name not in taken)

    def reference(self, name: str) -> tuple[str, tuple[Edit, ...]]:
        content, line = names.written(name, self.tree, self._bound)
        return content, (self._import(line),) if line else ()

    def _import(self, line: str) -> Edit:
        anchor, is_behind = names.import_anchor(self.tree)
        if anchor is None:
            raise NoFixError("the file is empty")
        if is_behind:
            return self.after(anchor, line)[0]
        start = self.layout.starts[first_line(anchor) - 1]  # below a license or a coding comment
        return self._edit(start, start, self._joined([line], ""))

    def allows_torch(self, *version: int) -> bool:
        from gradlint.fix import pins  # few fixes ask

        return pins.allows_torch(pathlib.Path(document.file_of(self.path)), version)

    # edits

    def replace(self, node: ast.expr, content: str) -> Edit:
        start, end = self._stretch(node)
        if not self._stands_alone(node, content) and not self._is_parenthesised(node):
            content = enclosed(content)
        elif (
            self._is_parenthesised(node)
            and "\n" not in content
            and isinstance(expression(content), ATOMS)
        ):
            start, end = self._parenthesised(node)
        return self._edit(start, end, content)

    def rewrite(self, statement: ast.stmt, content: str) -> Edit:
        return self._edit(*self._stretch(statement), content)

    def before_text(self, node: ast.expr | ast.stmt | ast.keyword, content: str) -> Edit:
        start = (
            self._parenthesised(node)[0] if isinstance(node, ast.expr) else self._stretch(node)[0]
        )
        return self._edit(start, start, content)

    def behind_text(self, node: ast.expr, content: str) -> Edit:
        end = self._parenthesised(node)[1]
        return self._edit(end, end, content)

    def replace_name(self, named: ast.Attribute | ast.arg, name: str) -> Edit:
        start, end = self._stretch(named)
        if isinstance(named, ast.arg):
            return self._edit(start, start + len(named.arg), name)
        return self._edit(end - len(named.attr), end, name)

    def remove(self, statement: ast.stmt) -> Edits:
        draft = self._draft(statement)
        draft.remove(statement)
        return self._changed(draft)

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        arguments = _arguments(call)
        index = arguments.index(argument)
        start, end = self._whole(argument)
        if index + 1 < len(arguments):
            return self._edit(start, self._whole(arguments[index + 1])[0], "")
        if index:
            return self._edit(self._whole(arguments[index - 1])[1], end, "")
        return self._edit(start, end, "")

    def _whole(self, argument: ast.expr | ast.keyword) -> tuple[int, int]:
        return (
            self._parenthesised(argument)
            if isinstance(argument, ast.expr)
            else self._stretch(argument)
        )

    def add_argument(self, call: ast.Call, content: str) -> Edit:
        arguments = _arguments(call)
        if arguments:
            end = self._whole(arguments[-1])[1]
            return self._edit(end, end, f", {content}")
        end = self._stretch(call)[1] - 1
        return self._edit(end, end, content)

    def remove_decorator(self, decorator: ast.expr) -> Edits:
        function = self._parents[decorator]
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            raise NoFixError("no function is decorated")
        draft = self._draft(function)
        draft.undecorate(function, decorator)
        return self._changed(draft)

    def instead(self, statement: ast.stmt, *lines: str) -> Edits:
        draft = self._draft(statement)
        draft.replace(statement, lines)
        return self._changed(draft)

    def decorate(self, function: ast.FunctionDef | ast.AsyncFunctionDef, line: str) -> Edits:
        draft = self._draft(function)
        draft.decorate(function, line)
        return self._changed(draft)

    def before(self, statement: ast.stmt, *lines: str) -> Edits:
        draft = self._draft(statement)
        draft.put_before(statement, draft.new(lines))
        return self._changed(draft)

    def after(self, statement: ast.stmt, *lines: str) -> Edits:
        draft = self._draft(statement)
        draft.put_behind(statement, draft.new(lines))
        return self._changed(draft)

    def first(self, block: Sequence[ast.stmt], *lines: str) -> Edits:
        if len(block) > 1 and names.is_docstring(block[0]):
            return self.before(block[1], *lines)
        return self.before(block[0], *lines)

    def move_before(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> Edits:
        draft = self._draft(*statements, anchor)
        draft.move(statements, anchor, is_before=True)
        return self._changed(draft)

    def move_after(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> Edits:
        draft = self._draft(*statements, anchor)
        draft.move(statements, anchor, is_before=False)
        return self._changed(draft)

    def wrap(self, statements: Sequence[ast.stmt], header: str) -> Edits:
        draft = self._draft(*statements)
        draft.wrap(statements, f"{header} pass")
        return self._changed(draft)

    def unwrap(
        self,
        compound: ast.With,
        item: ast.expr | None = None,
        inside: Sequence[ast.stmt] = (),
        kept: Sequence[ast.stmt] = (),
    ) -> Edits:
        draft = self._draft(compound)
        given = [each.context_expr for each in compound.items]
        draft.unwrap(
            compound, None if item is None else given.index(item), inside or compound.body, kept
        )
        return self._changed(draft)

    def _draft(self, *statements: ast.stmt) -> Draft:
        """The statements as libcst reads them, which takes a while to import: not before something
        is mended so.
        """
        from gradlint.fix.blocks import Draft

        return Draft(self.layout, statements)

    def _changed(self, draft: Draft) -> Edits:
        return tuple(self._edit(*change) for change in draft.changes())

    # how it is done

    def _edit(self, start: int, end: int, content: str) -> Edit:
        (line, column), (end_line, end_column) = self.layout.place(start), self.layout.place(end)
        return Edit(Span(self.path, line, column, end_line, end_column), content)

    def _joined(self, lines: Sequence[str], indent: str) -> str:
        return "".join(f"{indent}{line}{self.layout.newline}" for line in lines)

    def _parenthesised(self, node: ast.expr) -> tuple[int, int]:
        """Where an expression stands with the parentheses around it; those of a call are not its
        own.
        """
        start, end = self._stretch(node)
        text, limit = self.layout.text, self._limit(node)
        while True:
            before, behind = back(text, start), forth(text, end)
            if (
                before <= limit[0]
                or behind >= limit[1]
                or text[before - 1] != "("
                or text[behind] != ")"
            ):
                return start, end
            start, end = before - 1, behind + 1

    def _limit(self, node: ast.expr) -> tuple[int, int]:
        """How far parentheses around `node` can reach: to the edges of what it is part of."""
        parent = self._parents[node]
        if not isinstance(parent, ast.expr | ast.stmt | ast.keyword):
            return self._stretch(self.statement(node))
        start, end = self._stretch(parent)
        if isinstance(parent, ast.Call) and node is not parent.func:
            return forth(self.layout.text, self._parenthesised(parent.func)[1]) + 1, end - 1
        if isinstance(parent, ast.GeneratorExp):
            return start + 1, end - 1
        return start, end

    def _is_parenthesised(self, node: ast.expr) -> bool:
        return self._parenthesised(node) != self._stretch(node)

    def _stands_alone(self, node: ast.expr, content: str) -> bool:
        """Whether `content` needs no parentheses in the place of `node`, for brackets or a
        statement delimit it.
        """
        parent = self._parents[node]
        if isinstance(parent, ast.IfExp):
            return isinstance(expression(f"({content})"), ast.BinOp | ast.BoolOp | ast.Compare)
        if isinstance(parent, ast.Call) and node is parent.func:
            return False
        if isinstance(parent, ast.Subscript) and node is parent.slice:
            return True
        return isinstance(parent, (*_ENCLOSED, *_WHOLE))


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """The arguments of a call in the order of the source."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(arguments, key=lambda each: (each.lineno, each.col_offset))
