"""Where the nodes of a libcst tree stand, as Python's parser counts: lines from 1, columns in bytes
of UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, MetadataWrapper, PositionProvider

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_BLANK = re.compile(r"(?:[ \t\f\r\n\\]|#[^\r\n]*)*")


class Place(TypedDict):
    """The attributes of a node that Python's parser makes."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


class Places:
    """The places of the nodes of one module."""

    def __init__(self, text: str, module: cst.Module) -> None:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._ranges = wrapper.resolve(PositionProvider)
        self._lines: Sequence[str] = _LINE.findall(text)

    def of(self, node: cst.CSTNode) -> CodeRange:
        """Where a node stands, without parentheses around it; libcst counts in characters."""
        found = self._ranges[node]
        assert isinstance(found, CodeRange), "the provider computes ranges at once"
        return found

    def start(self, node: cst.CSTNode) -> CodePosition:
        """Where a node begins, with the parentheses around it."""
        around: Sequence[cst.LeftParen] = getattr(node, "lpar", ())
        return self.of(around[0] if around else node).start

    def end(self, node: cst.CSTNode) -> CodePosition:
        """Where a node ends, with the parentheses around it."""
        around: Sequence[cst.RightParen] = getattr(node, "rpar", ())
        return self.of(around[-1] if around else node).end

    def at(self, node: cst.CSTNode) -> Place:
        """The place of a node without the parentheses around it."""
        found = self.of(node)
        return self.between(found.start, found.end)

    def across(self, first: cst.CSTNode, last: cst.CSTNode) -> Place:
        """The place of what reaches from one node to another, with the parentheses around each."""
        return self.between(self.start(first), self.end(last))

    def between(self, start: CodePosition, end: CodePosition) -> Place:
        """A place by its ends."""
        return {
            "lineno": start.line,
            "col_offset": self._bytes(start),
            "end_lineno": end.line,
            "end_col_offset": self._bytes(end),
        }

    def _bytes(self, position: CodePosition) -> int:
        if position.line > len(self._lines):
            return position.column
        line = self._lines[position.line - 1]
        return (
            position.column
            if line.isascii()
            else len(line[: position.column].encode(errors="surrogatepass"))
        )

    def text(self, start: CodePosition, end: CodePosition) -> str:
        """What stands between two positions."""
        lines = list(self._lines[start.line - 1 : end.line])
        lines[-1] = lines[-1][: end.column]  # before the first is cut, which can be the same
        lines[0] = lines[0][start.column :]
        return "".join(lines)

    def behind_blanks(self, position: CodePosition) -> CodePosition:
        """The first position from here on at which anything but white space and comments stands."""
        line, column = position.line, position.column
        while (found := _BLANK.match(self._lines[line - 1], column)) and found.end() == len(
            self._lines[line - 1]
        ):
            line, column = line + 1, 0
        assert found
        return CodePosition(line, found.end())


def moved(position: CodePosition, columns: int) -> CodePosition:
    """A position so many columns further on, in its line."""
    return CodePosition(position.line, position.column + columns)


def method(converter: object, node: cst.CSTNode) -> Callable[..., Any]:
    """What converts a node: the method that is named after its kind."""
    found: Callable[..., Any] | None = getattr(converter, f"_{type(node).__name__}", None)
    if found is None:
        raise SyntaxError(f"libcst's {type(node).__name__} is not known")
    return found
