"""Lines of a program with a stretch of them underlined."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from gradlint.finding import Span
from gradlint.report._paint import Paint
from gradlint.report._place import printable

_TAB = "    "
_MOST_LINES = 6  # of a stretch over many lines
_WIDTH = 160  # of what is quoted of a line


def frame(
    lines: Sequence[str],
    at: Span,
    *,
    margin: int,
    context: int,
    mark: str,
    paint: Paint,
    color: str,
) -> Iterator[str]:
    """The lines around `at` behind their numbers, with `mark` under the stretch; nothing if the
    text is not at hand.
    """
    if not 1 <= at.line <= len(lines):
        return
    yield _row("", "", margin, paint)
    for number in range(_first(lines, at.line, context), at.line):
        yield _row(str(number), _crop(_plain(lines[number - 1]), 0), margin, paint)
    last = min(at.last_line, len(lines))
    for number in range(at.line, min(last, at.line + _MOST_LINES - 1) + 1):
        yield from _underlined(lines[number - 1], number, at, margin, mark, paint, color)
    if last - at.line >= _MOST_LINES:
        yield _row("...", "", margin, paint)


def _first(lines: Sequence[str], line: int, context: int) -> int:
    """The first line to quote: up to `context` lines earlier, but no blank line at the top."""
    first = max(1, line - context)
    while first < line and not lines[first - 1].strip():
        first += 1
    return first


def _underlined(
    line: str, number: int, at: Span, margin: int, mark: str, paint: Paint, color: str
) -> Iterator[str]:
    indent = len(line) - len(line.lstrip())
    start = at.column - 1 if number == at.line else indent
    end = at.end_column - 1 if number == at.end_line else len(line)
    before, under = _plain(line[:start]), _plain(line[start:end])
    left = max(0, _width(before) + min(_width(under), 40) - _WIDTH)
    yield _row(str(number), _crop(_plain(line), left), margin, paint)
    marks = mark * max(1, min(_width(under), _WIDTH - _width(before) + left))
    yield _row(
        "", " " * (_width(before) - left + (3 if left else 0)) + paint(marks, color), margin, paint
    )


def _row(number: str, text: str, margin: int, paint: Paint) -> str:
    return (paint(f"{number:>{margin}} |", "blue") + (f" {text}" if text else "")).rstrip()


def _plain(text: str) -> str:
    return printable(text.replace("\t", _TAB))


def _crop(text: str, left: int) -> str:
    shown = text[left : left + _WIDTH]
    return ("..." if left else "") + shown + ("..." if left + _WIDTH < len(text) else "")


def _width(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
