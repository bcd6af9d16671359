"""The programs that files hold: a module is one, so is a notebook; a page of Markdown has one a
block.

A program has a path: that of its file or, of a block, `page.md:12` with the row where it begins.
All that is said inside gradlint of places is said of the program; `Program.located` says where that
is in the file, for those who read.
"""

from __future__ import annotations

import ast
import math
import pathlib
import re
from collections.abc import Mapping, Sequence

from gradlint.finding import Edit, Span
from gradlint.source import parse
from gradlint.source.lines import split_lines
from gradlint.source.parse import SyntaxFault
from gradlint.source.places import Program

NOTEBOOK = ".ipynb"
_CELL = re.compile(
    r"#\s*(?:%%|<codecell>|In\[[\d ]*\])"
)  # what editors and nbconvert begin a cell of a script with
_PAGE = re.compile(r"(?P<file>.+\.(?:md|markdown))(?::(?P<row>\d+))?", re.IGNORECASE | re.DOTALL)


def parted(path: str) -> tuple[str, int]:
    """The file that holds the program at `path`, and the row in it where a block begins."""
    page = _PAGE.fullmatch(path)
    return (page["file"], int(page["row"] or 0)) if page else (path, 0)


def file_of(path: str) -> str:
    """The file that holds the program at `path`."""
    return parted(path)[0]


def is_page(path: str) -> bool:
    """Whether the path is that of a page of Markdown, or of a block of one."""
    return _PAGE.fullmatch(path) is not None


def read(path: pathlib.Path) -> bytes:
    """The bytes of the file that holds the program at `path`."""
    return pathlib.Path(file_of(str(path))).read_bytes()


def programs(path: str, content: bytes) -> tuple[str, ...]:
    """The paths of the programs that a file holds."""
    if not _PAGE.fullmatch(path):
        return (path,)
    from gradlint.source import markdown

    page = parse.decode(path, content)
    return (
        tuple(f"{path}:{block.row}" for block in markdown.blocks(page))
        if isinstance(page, str)
        else (path,)
    )


def program(path: str, content: bytes) -> Program | SyntaxFault:
    """The program at `path` in the file with this content, or why there is none."""
    if path.endswith(NOTEBOOK):
        from gradlint.source import notebook

        return notebook.program(path, content)
    text = parse.decode(path, content)
    if not isinstance(text, str):
        return text
    page = _PAGE.fullmatch(path)
    return _in_page(path, text, int(page["row"] or 0)) if page else Program(text)


def _in_page(path: str, text: str, row: int) -> Program | SyntaxFault:
    from gradlint.source import markdown

    block = next((block for block in markdown.blocks(text) if block.row == row), None)
    return (
        block.program
        if block
        else SyntaxFault(Span(path, 1, 1, 1, 1), "no block of Python begins here")
    )


def decode(path: str, content: bytes) -> str | SyntaxFault:
    """The text of the program at `path`, or why there is none."""
    found = program(path, content)
    return found.text if isinstance(found, Program) else found


def encode(path: str, text: str, original: bytes) -> bytes:
    """The file with `text` as its program at `path`, encoded as it was; UnicodeError where that
    cannot be.
    """
    if path.endswith(NOTEBOOK):
        from gradlint.source import notebook

        return notebook.updated(original, text)
    page = _PAGE.fullmatch(path)
    if page:
        from gradlint.source import markdown

        before = parse.decode(path, original)
        assert isinstance(before, str), "only what can be decoded is changed"
        text = markdown.updated(before, int(page["row"]), text)
    return text.encode(parse.encoding_of(original))


def displayed(path: str, text: str, tree: ast.Module) -> frozenset[ast.stmt]:
    """The expressions of a program that are there to be seen: the last of each cell (of a notebook,
    or of a script that is written in cells), or of a block of Markdown.
    """
    if path.endswith(NOTEBOOK):
        from gradlint.source import notebook

        ends = [*notebook.heads(text)[1:], math.inf]
    elif parted(path)[1]:
        ends = [math.inf]
    else:
        ends = [number for number, line in enumerate(split_lines(text), 1) if _CELL.match(line)]
        ends += [math.inf] if ends else []
    last = (next((each for each in reversed(tree.body) if each.lineno < end), None) for end in ends)
    return frozenset(each for each in last if isinstance(each, ast.Expr))


def cell(text: str, number: int) -> str:
    """The text of a cell as it stands in the notebook whose program is `text`."""
    from gradlint.source import notebook

    return notebook.cell(text, number)


def rows(content: bytes) -> Mapping[int, Sequence[int]]:
    """The line of a notebook's file in which each line of each cell stands, by the number of the
    cell.
    """
    from gradlint.source import notebook

    return notebook.rows(content)


def file_edits(content: bytes, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """What edits of a notebook's cells are in the bytes of its file."""
    from gradlint.source import notebook

    return notebook.file_edits(content, edits)


def can_take(path: str, before: str, after: str) -> bool:
    """Whether a file can hold the program `after` where it held `before`."""
    if not path.endswith(NOTEBOOK):
        return True
    from gradlint.source import notebook

    return notebook.is_whole(before, after)
