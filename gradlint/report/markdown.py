"""A table in Markdown, the worst first: for the summary of a job and for a comment on a change.

A comment has 65,536 characters: as many findings are told as go in, and how many more there are.
What is the program's stands in `<code>` with each mark of Markdown as an entity: no name can end
the table, link or mention anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Finding
from gradlint.report import Outcome
from gradlint.report._place import count, printable, shown_path, summary
from gradlint.rule import rules

MOST = 60_000  # characters of rows
_WIDEST = 400  # characters of one text
_MARK = re.compile(r"[^\w\s.,;/='()-]|_|(?<=www)\.", re.ASCII | re.IGNORECASE)


def render(outcome: Outcome) -> str:
    """The summary as a heading, and a table with a row a finding."""
    ordered = sorted(outcome.findings, key=lambda finding: (-finding.severity, finding.sort_key))
    lines = [f"### gradlint: {_plain(summary(outcome).rstrip('.'))}"]
    rows = list(_fitting(map(_row, ordered)))
    if rows:
        lines += ["", "| | where | rule | what happens |", "| --- | --- | --- | --- |", *rows]
    if len(ordered) > len(rows):
        lines += ["", f"And {count(len(ordered) - len(rows), 'finding')} more."]
    return "\n".join(lines) + "\n"


def _fitting(rows: Iterable[str]) -> Iterator[str]:
    """The first rows, as many as go in."""
    room = MOST
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return
        yield row


def _row(finding: Finding) -> str:
    place = _code(f"{shown_path(finding.at.path)}:{finding.at.place}")
    rule = f"[{finding.code} {finding.name}]({rules()[finding.code].url})"
    said = "<br>".join(map(_message, filter(None, (finding.message, finding.help))))
    return f"| {finding.severity.label} | {place} | {rule} | {said} |"


def _message(text: str) -> str:
    """A text of ours, with the program's names in it between backticks."""
    parts: Sequence[str] = _short(text).split("`")
    return "".join(_code(part) if index % 2 else _plain(part) for index, part in enumerate(parts))


def _code(text: str) -> str:
    return f"<code>{_plain(_short(text))}</code>"


def _plain(text: str) -> str:
    return _MARK.sub(lambda mark: f"&#{ord(mark[0])};", printable(text))


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
