"""Our findings, places and edits in the words of the Language Server Protocol.

We count lines and characters from 1, the protocol counts lines from 0 and columns in UTF-16 units,
unless client and server have agreed on another encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import Match

from lsprotocol import types
from pygls.workspace import PositionCodec

from gradlint.finding import Edit, Finding, Severity, Span
from gradlint.rule import rules

SOURCE = "gradlint"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Client:
    """How to speak to a client: what it calls a path, the lines that a path has, how it counts,
    what it takes.
    """

    uri: Callable[[str], str]
    lines: Callable[[str], Sequence[str]]
    codec: PositionCodec
    takes_related: bool
    takes_versions: bool

    def range(self, at: Span) -> types.Range:
        """The stretch that a span is."""
        return types.Range(
            self._position(at.path, at.line, at.column),
            self._position(at.path, at.end_line, at.end_column),
        )

    def location(self, at: Span) -> types.Location:
        """The file and the stretch that a span is."""
        return types.Location(self.uri(at.path), self.range(at))

    def rest_of_line(self, path: str, number: int, column: int) -> types.Range:
        """A line from a column on, without its end."""
        return self.range(Span(path, number, column, number, len(self.lines(path)[number - 1]) + 1))

    def text_edits(self, edits: Iterable[Edit]) -> list[types.TextEdit]:
        """The edits of a fix; one that several fixes share is made once."""
        return [types.TextEdit(self.range(edit.at), edit.content) for edit in dict.fromkeys(edits)]

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        """What an editor shows of a finding."""
        related = [
            types.DiagnosticRelatedInformation(self.location(each.at), each.message)
            for each in finding.related
        ]
        return types.Diagnostic(
            range=self.range(finding.at),
            message="\n".join(filter(None, (finding.message, finding.help))),
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            code_description=types.CodeDescription(rules()[finding.code].url),
            source=SOURCE,
            related_information=related if self.takes_related else None,
        )

    def _position(self, path: str, line: int, column: int) -> types.Position:
        lines = self.lines(path)
        before = lines[line - 1][: column - 1] if line <= len(lines) else ""
        return types.Position(line - 1, self.codec.client_num_units(before))


def overlap(one: types.Range, other: types.Range) -> bool:
    """Whether two stretches have a place in common; their ends count, so that a cursor behind a
    word is on it.
    """
    return _key(one.start) <= _key(other.end) and _key(other.start) <= _key(one.end)


def moved(place: types.Range, same: Iterable[Match]) -> types.Range | None:
    """Where a stretch lies in a text now, by the lines that it shares with one before; None where
    it has changed.
    """
    start, end = place.start, place.end
    for match in same:
        if match.a <= start.line and end.line < match.a + match.size:
            down = match.b - match.a
            return types.Range(
                types.Position(start.line + down, start.character),
                types.Position(end.line + down, end.character),
            )
    return None


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character
