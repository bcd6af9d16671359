"""Where the lines of a program stand in the file that holds it: a module, a notebook, a page of
Markdown.
"""

from __future__ import annotations

import bisect

from gradlint.dataclass import dataclass
from gradlint.finding import Span


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a program that stand together in its file: a cell of a notebook, a block of
    Markdown.
    """

    first: int  # the line of the program with which it begins
    row: int  # the row that this line has in the file, or in its cell
    cell: int = 0  # the number of the cell, from 1; 0 where there are no cells
    indent: str = ""  # what stands before each of its lines


@dataclass(frozen=True, slots=True)
class Program:
    """What Python reads of a file, and where its parts stand there; without parts, it is the
    file.
    """

    text: str
    parts: tuple[Part, ...] = ()
    mark: str = ""  # what stands before the text of a hidden line

    def located(self, at: Span) -> Span:
        """Where `at` stands in the file. What begins between two parts is the end of the first."""
        if not self.parts:
            return at
        part = self.parts[
            max(0, bisect.bisect_right(self.parts, at.line, key=lambda part: part.first) - 1)
        ]
        line, column = _moved(part, at.line, at.column)
        end_line, end_column = _moved(part, at.end_line, at.end_column)
        return Span(at.path, line, column, end_line, end_column, part.cell)

    def revealed(self, text: str) -> str:
        """What a piece of the program is in the file."""
        if not self.mark:
            return text
        from gradlint.source.magics import revealed

        return revealed(text, self.mark)


def _moved(part: Part, line: int, column: int) -> tuple[int, int]:
    if line < part.first:
        return part.row, len(part.indent) + 1
    return line - part.first + part.row, column + len(part.indent)
