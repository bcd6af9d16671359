"""The report for people: each finding with its code framed, the places that belong to it, and what
to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.finding import Finding, Severity, Span
from gradlint.report import Outcome
from gradlint.report._frame import frame
from gradlint.report._paint import Paint
from gradlint.report._place import ending, printable, shown_path
from gradlint.rule import rules

_MOST_RELATED = 3  # with the finding's own place: four
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def render(outcome: Outcome) -> str:
    """Every finding as a paragraph, then how many there are."""
    paint = Paint(outcome.color)
    paragraphs = [_paragraph(finding, outcome, paint) for finding in outcome.findings]
    return "\n".join([*paragraphs, *(f"{line}\n" for line in ending(outcome))])


def _paragraph(finding: Finding, outcome: Outcome, paint: Paint) -> str:
    places = [finding.at, *(related.at for related in finding.related[:_MOST_RELATED])]
    margin = len(str(max(place.end_line for place in places)))
    color = _COLORS[finding.severity]
    code = paint.link(finding.code, rules()[finding.code].url)
    title = paint(f"{finding.severity.label}[{code}]", color) + paint(
        f": {printable(finding.message)}", "bold"
    )
    lines = [title, *_framed(finding.at, outcome, margin, "^", paint, color)]
    for related in finding.related[:_MOST_RELATED]:
        lines.append(paint("note", "bold") + f": {printable(related.message)}")
        lines += _framed(related.at, outcome, margin, "-", paint, "blue")
    if finding.help:
        lines.append(paint("help", "bold") + f": {printable(finding.help)}")
    return "\n".join(lines) + "\n"


def _framed(
    at: Span, outcome: Outcome, margin: int, mark: str, paint: Paint, color: str
) -> Sequence[str]:
    arrow = f"{' ' * margin}{paint('-->', 'blue')} {printable(shown_path(at.path))}:{at.place}"
    context = 2 if mark == "^" else 0
    lines = outcome.lines(at)
    return [
        arrow,
        *frame(lines, at, margin=margin, context=context, mark=mark, paint=paint, color=color),
    ]
