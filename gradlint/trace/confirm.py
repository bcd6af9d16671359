"""Static findings of the files that a run went through: confirmed, refuted, or never reached by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gradlint.finding import NOT_SHOWN, Finding, Span
from gradlint.rule import at_run_time
from gradlint.tape import Tape, Value, ancestors

Verdict = Literal["confirmed", "refuted", "not reached"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A static finding and what the run says of it."""

    finding: Finding
    verdict: Verdict
    reason: str


def confirm(static: Iterable[Finding], traced: Sequence[Finding], tape: Tape) -> list[Confirmation]:
    """The verdict of a run on each static finding; those that no run can show are left out."""
    ran = set(_lines(tape))
    return [_verdict(finding, traced, ran) for finding in static if _is_shown(finding)]


def _is_shown(finding: Finding) -> bool:
    return finding.code in at_run_time() and NOT_SHOWN not in finding.hints


def _verdict(finding: Finding, traced: Sequence[Finding], ran: set[tuple[str, int]]) -> Confirmation:
    same = [other for other in traced if other.code == finding.code and _meet(finding, other)]
    if same:
        step = f" at step {same[0].step}" if same[0].step is not None else ""
        return Confirmation(finding, "confirmed", f"the run shows it{step}")
    if not any((finding.at.path, line) in ran for line in range(finding.at.line, finding.at.end_line + 1)):
        return Confirmation(finding, "not reached", "this line did not run, as far as the run was recorded")
    return Confirmation(finding, "refuted", "this line ran, and nothing was wrong in this run")


def _meet(one: Finding, other: Finding) -> bool:
    """Whether two findings of one code speak of the same lines."""
    places = [one.at, *(related.at for related in one.related)]
    return any(_overlap(place, other.at) for place in places)


def _overlap(one: Span, other: Span) -> bool:
    return one.path == other.path and one.line <= other.end_line and other.line <= one.end_line


def _lines(tape: Tape) -> Iterator[tuple[str, int]]:
    """The lines that the tape saw running."""
    seen: set[int] = set()
    for event in tape.events:
        for at in (event.at, *event.stack):
            yield at.path, at.line
        value = getattr(event, "value", None) or getattr(event, "after", None)
        if isinstance(value, Value):
            yield from _behind(value, seen)


def _behind(value: Value, seen: set[int]) -> Iterator[tuple[str, int]]:
    for current in ancestors(value):
        if id(current) not in seen:
            seen.add(id(current))
            for at in (current.at, *current.stack, *filter(None, [current.cut_at]), *current.cut_stack):
                yield at.path, at.line
