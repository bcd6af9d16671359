"""The report of a traced run for people: a few lines for each finding, the worst first."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradlint.finding import Span
from gradlint.owners import grouped
from gradlint.report._frame import frame
from gradlint.report._paint import Paint
from gradlint.report._place import count, listed, printable
from gradlint.trace import source
from gradlint.trace.findings import Place, Told

if TYPE_CHECKING:
    from gradlint.trace.report import Report

_MOST_RELATED = 3
_MOST_STOPS = 6
_MOST_NAMES = 4
_CONTEXT = 2
_ALL = 10_000


def as_text(report: Report, together: Mapping[str, Any], *, verbose: bool) -> str:
    """The whole report; `together` is the JSON report of all ranks."""
    parts = [
        _head(report),
        *("\n".join(_finding(told, verbose=verbose)) + "\n" for told in report.told),
    ]
    parts += [
        _of_other_ranks(finding)
        for finding in together["findings"]
        if 0 not in finding.get("ranks", (0,))
    ]
    parts += [f"gradlint trace: {line}\n" for line in (*together["explained"], *together["unseen"])]
    parts += [_first_not_finite(together["not_finite"])] if together["not_finite"] else []
    parts += [
        printable(f"{each.finding.at}: {each.finding.code} {each.verdict}: {each.reason}") + "\n"
        for each in report.confirmations
    ]
    parts.append(_summary(report))
    return "\n".join(part for part in parts if part)


def _head(report: Report) -> str:
    how = f", ended by {report.ending.raised.partition(':')[0]}" if report.ending.raised else ""
    return (
        f"gradlint trace: {report.tape.entry}: "
        f"{count(report.session.step, 'optimizer step')}{how}\n"
    )


def _finding(told: Told, *, verbose: bool) -> Iterator[str]:
    """A finding in at most ten lines; `verbose` leaves nothing out. A line of the source is quoted
    once.
    """
    finding = told.finding
    step = "" if finding.step is None else f", step {finding.step}"
    yield printable(f"{finding.severity.label}[{finding.code}]: {finding.message}")
    yield printable(f"  --> {finding.at}{step}")
    yield from _quoted(finding.at, verbose=verbose)
    at = finding.at
    quoted = {
        (at.path, at.cell, line) for line in range(at.line - _CONTEXT * verbose, at.end_line + 1)
    }
    for related in finding.related[: _ALL if verbose else _MOST_RELATED]:
        yield printable(f"note: {related.at}: {related.message}{_line_of(related.at, quoted)}")
    if len(told.stops) > 1:
        yield from _whole_route(told.stops, quoted) if verbose else [_route(told.stops)]
    if told.unreached and told.cuts:
        yield printable(f"parameters not reached: {_names(told, _ALL if verbose else _MOST_NAMES)}")
    if finding.help:
        yield printable(f"help: {finding.help}")


def _quoted(at: Span, *, verbose: bool) -> Iterator[str]:
    lines = source.lines(at)
    margin = len(str(at.end_line))
    context = _CONTEXT if verbose else 0
    rows = list(
        frame(
            lines, at, margin=margin, context=context, mark="^", paint=Paint(on=False), color="red"
        )
    )
    yield from rows if verbose else rows[1:3]


def _line_of(at: Span, quoted: set[tuple[str, int, int]]) -> str:
    """The line of the source, unless it was quoted before."""
    key = (at.path, at.cell, at.line)
    if key in quoted:
        return ""
    quoted.add(key)
    line = source.line(at)
    return f": {line}" if line else ""


def _route(stops: Sequence[Place]) -> str:
    """The route in one line: its file is named where it changes."""
    shown: list[str] = []
    last = ""
    for (path, place), _ in itertools.groupby(stops, lambda stop: (stop.at.path, stop.at.place)):
        shown.append(place if path == last else f"{path}:{place}")
        last = path
    if len(shown) > _MOST_STOPS:
        half = _MOST_STOPS // 2
        shown = [*shown[:half], f"... {len(shown) - 2 * half} more", *shown[-half:]]
    return printable(f"route from the loss: {' <- '.join(shown)}")


def _whole_route(stops: Sequence[Place], quoted: set[tuple[str, int, int]]) -> Iterator[str]:
    yield "route from the loss:"
    known = (
        f"  {stop.at}"
        + ("" if (stop.at.path, stop.at.cell, stop.at.line) in quoted else f"  {stop.text}")
        for stop in stops
    )
    yield from (printable(line) for line, _ in itertools.groupby(known))


def _names(told: Told, most: int) -> str:
    """The modules whose parameters are not reached, and how many these are."""
    names = grouped(told.unreached, told.held)
    number = (
        f" ({len(told.unreached)} of {count(len(told.held), 'parameter')})" if told.held else ""
    )
    return listed(names, most) + number


def _first_not_finite(found: Mapping[str, Any]) -> str:
    """The first loss or gradient that is not finite."""
    batch = "" if found["batch"] is None else f", batch {found['batch']}"
    return (
        printable(
            f"gradlint trace: {found['what']} is not finite from step {found['step']}{batch} "
            f"on: {found['at']}"
        )
        + "\n"
    )


def _of_other_ranks(finding: Mapping[str, Any]) -> str:
    """What rank 0 did not find."""
    where = f"{os.path.relpath(finding['filename'])}:{finding['location']['row']}"
    named = ", ".join(str(each) for each in finding["ranks"])
    return (
        printable(
            f"rank {named}: {finding['severity']}[{finding['code']}] {where}: {finding['message']}"
        )
        + "\n"
    )


def _summary(report: Report) -> str:
    if report.told:
        return f"{count(len(report.told), 'finding')}.\n"
    if report.session.movement.is_still:
        return f"No finding, but no parameter has moved in {count(report.session.step, 'step')}.\n"
    if report.session.movement.has_only_zeros:
        steps = count(report.session.step, "step")
        return f"No finding, but every gradient was zero in {steps}: nothing is learned.\n"
    return "No finding.\n"
