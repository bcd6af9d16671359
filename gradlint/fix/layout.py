"""The lines of a program: where they begin, how deep they stand, and which of them lie within a
string.
"""

from __future__ import annotations

import ast
import bisect
import functools
import re
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.rule import NoFixError
from gradlint.source import kinds
from gradlint.source.lines import characters

_STRINGS: tuple[type[ast.expr], ...] = (ast.Constant, ast.JoinedStr, kinds.TemplateStr)
# as Python counts lines: str.splitlines breaks at \f, too
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True)
class Layout:
    """A program's text by lines, and its tree; lines count from 1."""

    text: str
    tree: ast.Module

    @functools.cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines with their ends."""
        return tuple(self.lines_of(self.text))

    @staticmethod
    def lines_of(text: str) -> list[str]:
        """The lines of any text, with their ends."""
        return _LINE.findall(text)

    @functools.cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset at which each line begins, and that of the end of the text."""
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return tuple(starts)

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node but the tree itself is part of, the outer ones first."""
        found: dict[ast.AST, ast.AST] = {}
        pending: list[ast.AST] = [self.tree]
        for node in pending:
            children = list(ast.iter_child_nodes(node))
            found |= dict.fromkeys(children, node)
            pending += children
        return found

    @functools.cached_property
    def newline(self) -> str:
        """The line end of the program."""
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"

    @functools.cached_property
    def in_strings(self) -> frozenset[int]:
        """The lines that begin within a string, whose indentation is part of it."""
        strings = [node for node in self.parents if isinstance(node, _STRINGS)]
        return frozenset(
            line
            for node in strings
            if not isinstance(node, ast.Constant) or isinstance(node.value, str | bytes)
            for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
        )

    @functools.cached_property
    def unit(self) -> str:
        """One step of indentation, as the program does it first."""
        for node in (self.tree, *self.parents):
            for block in blocks(node):
                outer = self.indent(node.lineno) if isinstance(node, ast.stmt) else ""
                inner = self.indent(block[0].lineno)
                if inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
        return "    "

    def bare(self, line: int) -> str:
        """A line without its end."""
        return self.lines[line - 1].rstrip("\r\n")

    def indent(self, line: int) -> str:
        """The white space at the beginning of a line."""
        bare = self.bare(line)
        return bare[: len(bare) - len(bare.lstrip(" \t\f"))]

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; columns count from 1, in characters."""
        if not 1 <= line <= len(self.lines) + 1:
            raise NoFixError(f"no line {line}")
        return self.starts[line - 1] + column - 1

    def stretch(self, at: Span) -> tuple[int, int]:
        """A span as offsets."""
        return self.offset(at.line, at.column), self.offset(at.end_line, at.end_column)

    def place(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def byte_offset(self, line: int, column: int) -> int:
        """The offset of a place as Python's parser gives it: columns from 0, in bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return self.starts[line - 1] + characters(text, column)

    def owns_its_lines(self, statement: ast.stmt) -> bool:
        """Whether nothing but a comment shares the lines of a statement."""
        first, last = first_line(statement), last_line(statement)
        start = self.byte_offset(statement.lineno, statement.col_offset)
        end = self.byte_offset(last, statement.end_col_offset or 0)
        before = self.text[self.starts[statement.lineno - 1] : start]
        after = self.text[end : self.starts[last - 1] + len(self.bare(last))].strip()
        is_continued = first > 1 and self.bare(first - 1).endswith("\\")
        return not before.strip() and (not after or after.startswith("#")) and not is_continued

    def leading(self, statement: ast.stmt) -> int:
        """The first of the comment lines right above a statement that stand as deep as it; else its
        own first line.
        """
        line = first_line(statement)
        indent = self.indent(line)
        while line > 1 and self.bare(line - 1).startswith(f"{indent}#"):
            line -= 1
        return line

    def reindented(self, first: int, last: int, old: str, new: str) -> str:
        """Whole lines with the indentation `old` made `new`; what stands in a string stays as it
        is.
        """
        return "".join(self._reindented(first, last, old, new))

    def _reindented(self, first: int, last: int, old: str, new: str) -> Iterator[str]:
        for number in range(first, last + 1):
            line = self.lines[number - 1]
            if number in self.in_strings or not line.strip():
                yield line
            elif line.startswith(old):
                yield new + line[len(old) :]
            else:
                yield line if line.lstrip().startswith("#") else new + line.lstrip()
        if not self.lines[last - 1].endswith(("\r", "\n")):
            yield self.newline


def first_line(statement: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(statement: ast.stmt) -> int:
    """The last line of a statement."""
    return statement.end_lineno or statement.lineno


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements that stand directly in `node`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
