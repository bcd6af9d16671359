"""Markdown: each block of Python is a program by itself, for a page is not run from top to bottom.

A block that is no whole program (an excerpt, a session with `>>>`) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.source.parse import Source, parse
from gradlint.source.places import Part, Program

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`\r\n]*)")
_PYTHON = frozenset(["python", "python3", "py", "py3", "ipython", "ipython3"])
_DIRECTIVES = frozenset(["code-cell", "code-block", "code"])


@dataclass(frozen=True, slots=True)
class Block:
    """A block of Python: the row of its first line, what stands before its lines, and its text
    without that.
    """

    row: int
    indent: str
    text: str

    @property
    def program(self) -> Program:
        return Program(self.text, (Part(1, self.row, indent=self.indent),))


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page that are programs of Python."""
    lines = _LINE.findall(page)
    row = 0
    while row < len(lines):
        opening = _FENCE.match(lines[row])
        row += 1
        if opening is None:
            continue
        end = next(
            (index for index in range(row, len(lines)) if _closes(lines[index], opening["fence"])),
            len(lines),
        )
        block = _block(row, opening["indent"], lines[row:end])
        if block is not None and _is_python(opening["info"]):
            yield block
        row = end + 1


def updated(page: str, row: int, text: str) -> str:
    """The page with `text` in place of the block whose first line is `row`."""
    block = next(block for block in blocks(page) if block.row == row)
    lines = _LINE.findall(page)
    size = len(_LINE.findall(block.text))
    new = [block.indent + line if line.strip() else line for line in _LINE.findall(text)]
    return "".join([*lines[: row - 1], *new, *lines[row - 1 + size :]])


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and stripped == fence[0] * len(stripped)


def _block(row: int, indent: str, lines: list[str]) -> Block | None:
    if not all(line.startswith(indent) or not line.strip() for line in lines):
        return None
    text = "".join(line.removeprefix(indent) for line in lines)
    return Block(row + 1, indent, text) if isinstance(parse("", text), Source) else None


def _is_python(info: str) -> bool:
    words = [word.lower() for word in re.findall(r"[\w-]+", info)]
    named = words[1:] if words and words[0] in _DIRECTIVES else words
    return bool(named) and named[0] in _PYTHON
