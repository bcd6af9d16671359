"""The texts of files that are checked, each read once; standard input is given."""

from __future__ import annotations

import os
import pathlib
import stat
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from gradlint.dataclass import dataclass
from gradlint.digests import digest
from gradlint.finding import Edit, Finding, Fix, Span
from gradlint.source import document
from gradlint.source.lines import split_lines
from gradlint.source.parse import SyntaxFault, decode
from gradlint.source.places import Program


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of files, each read once; standard input is given, the rest is on disk."""

    given: Mapping[str, bytes]
    _contents: dict[str, bytes | SyntaxFault] = field(default_factory=dict)
    _read: dict[str, Program | SyntaxFault] = field(default_factory=dict)
    _lines: dict[str, Sequence[str]] = field(default_factory=dict)
    _rows: dict[str, Mapping[int, Sequence[int]]] = field(default_factory=dict)

    def program(self, path: str) -> Program | SyntaxFault:
        """The program at `path`, or why there is none."""
        if path not in self._read:
            content = self.content(path)
            self._read[path] = (
                document.program(path, content) if isinstance(content, bytes) else content
            )
        return self._read[path]

    def text(self, path: str) -> str | SyntaxFault:
        """The text of the program at `path`, or why there is none."""
        program = self.program(path)
        return program.text if isinstance(program, Program) else program

    def content(self, path: str) -> bytes | SyntaxFault:
        """The bytes of the file that holds the program at `path`, or why there are none."""
        file = document.file_of(path)
        if file not in self._contents:
            self._contents[file] = self.given[file] if file in self.given else content_in(file)
        return self._contents[file]

    def encoded(self, path: str) -> bytes | SyntaxFault:
        """The program at `path` in bytes, or why there is none: the whole file, if it is nothing
        else.
        """
        program, content = self.program(path), self.content(path)
        if isinstance(program, SyntaxFault):
            return program
        return program.text.encode(errors="surrogatepass") if program.parts else content

    def digest(self, path: str) -> str:
        """What stands for the content of the file that holds the program at `path`; "" where it
        cannot be read.
        """
        content = self.content(path)
        return digest(content) if isinstance(content, bytes) else ""

    def let_go(self, path: str) -> None:
        """Forgets the file that holds the program at `path`: of most files nothing more is asked
        than what they say.
        """
        self._read.pop(path, None)
        self._contents.pop(document.file_of(path), None)

    def programs(self, file: str) -> tuple[str, ...]:
        """The paths of the programs that a file holds."""
        content = self.content(file) if document.is_page(file) else None
        return document.programs(file, content) if isinstance(content, bytes) else (file,)

    def lines(self, path: str) -> Sequence[str]:
        """The lines of the program at `path`."""
        if path not in self._lines:
            text = self.text(path)
            self._lines[path] = split_lines(text) if isinstance(text, str) else ()
        return self._lines[path]

    def quoted(self, at: Span) -> Sequence[str]:
        """The lines that the rows of a located place count: those of the file, or of the cell."""
        program = self.program(at.path)
        if isinstance(program, Program):
            return (
                split_lines(document.cell(program.text, at.cell))
                if at.cell
                else self.lines(at.path)
            )
        content = self.content(at.path)
        text = decode(at.path, content) if isinstance(content, bytes) else content
        return split_lines(text) if isinstance(text, str) else ()

    def located(self, at: Span) -> Span:
        """Where a place in a program stands in the file that holds it."""
        program = self.program(at.path)
        found = program.located(at) if isinstance(program, Program) else at
        return replace(found, path=document.file_of(at.path))

    def raw(self, at: Span) -> Span:
        """Where a located place is in the bytes of its file: of a cell, the lines of JSON that hold
        it.
        """
        content = self.content(at.path)
        if not at.cell or not isinstance(content, bytes):
            return at
        if at.path not in self._rows:
            self._rows[at.path] = document.rows(content)
        rows = self._rows[at.path][at.cell]
        first, last = (rows[min(row, len(rows)) - 1] for row in (at.line, at.last_line))
        return Span(at.path, first, 1, last + 1, 1)

    def raw_edits(self, fix: Fix) -> tuple[Edit, ...]:
        """The edits of a located fix in the bytes of the file: of a cell, of the JSON that holds
        it.
        """
        content = self.content(fix.edits[0].at.path)
        if not fix.edits[0].at.cell or not isinstance(content, bytes):
            return fix.edits
        return document.file_edits(content, fix.edits)

    def in_files(self, finding: Finding) -> Finding:
        """The finding with places in files instead of programs, for those who read it."""
        related = tuple(replace(each, at=self.located(each.at)) for each in finding.related)
        fix = finding.fix and replace(
            finding.fix, edits=tuple(map(self._edit_in_files, finding.fix.edits))
        )
        return replace(finding, at=self.located(finding.at), related=related, fix=fix)

    def _edit_in_files(self, edit: Edit) -> Edit:
        program = self.program(edit.at.path)
        content = program.revealed(edit.content) if isinstance(program, Program) else edit.content
        return Edit(self.located(edit.at), content)


def content_in(file: str) -> bytes | SyntaxFault:
    """The bytes of a file; why they cannot be read, where that is so."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # a pipe can be read once, a device without end
            return SyntaxFault(
                Span(file, 1, 1, 1, 1), "the file cannot be read: it is not a regular one"
            )
        return pathlib.Path(file).read_bytes()
    except OSError as error:
        return SyntaxFault(Span(file, 1, 1, 1, 1), f"the file cannot be read: {error.strerror}")
