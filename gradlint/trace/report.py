"""The report of a traced run: as text for people, as one JSON object for programs."""

from __future__ import annotations

import json
import linecache
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from gradlint import output
from gradlint.finding import Finding, Severity
from gradlint.report import Outcome, render
from gradlint.report._object import absolute, as_object
from gradlint.report._place import listed, printable
from gradlint.rule import at_run_time
from gradlint.tape import Tape
from gradlint.trace import opaque, ranks, recurrent, replicas, routes, trainers
from gradlint.trace.confirm import Confirmation
from gradlint.trace.findings import Place, Told
from gradlint.trace.html import page
from gradlint.trace.launch import Ending
from gradlint.trace.session import Session

_SHOWN_ROUTE = 12
_SHOWN_NAMES = 8


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to tell about a run."""

    tape: Tape
    told: tuple[Told, ...]
    session: Session
    ending: Ending
    steps: dict[int, int]
    confirmations: tuple[Confirmation, ...] = ()


def as_json(report: Report) -> dict[str, Any]:
    """The report as one object: `findings`, `confirmations`, `steps`, `routes`."""
    return {
        "findings": [_finding(told) for told in report.told],
        "confirmations": [
            {**as_object(each.finding), "verdict": each.verdict, "reason": each.reason} for each in report.confirmations
        ],
        "steps": report.session.step,
        "routes": [
            {"code": told.finding.code, "values": [_place(each) for each in told.route]}
            for told in report.told
            if told.route
        ],
        "ended": report.ending.raised,
        "explained": [
            *replicas.left_out(report.session),
            *recurrent.explained(report.session),
            *opaque.explained(report.session),
        ],
        "collectives": replicas.collectives(report.session),
        "unseen": unseen(report.session),
        "moved": None if not report.session.movement.moved else not report.session.movement.is_still,
        **(_values(report) if report.session.timeline.wanted else {}),
    }


def _values(report: Report) -> dict[str, Any]:
    """What the run computed: its losses, which parameters ever got a gradient, and the first step that a bug struck."""
    timeline = report.session.timeline
    struck = [
        step
        for told in report.told
        if told.finding.severity > Severity.NOTE and (step := _first_step(told.finding, report)) is not None
    ]
    return {
        "losses": [{"step": step, "value": value} for step, value in timeline.losses],
        "gradients": {
            ".".join(held.path) or held.name or f"parameter {index}": trained
            for index, (held, trained) in enumerate(timeline.trained.items())
        },
        "struck": min(struck, default=None),
        "codes": sorted(at_run_time()),
    }


def _first_step(finding: Finding, report: Report) -> int | None:
    """The first step at which what a finding is about happened."""
    happened = [report.steps[event.order] for event in report.tape.events if event.at == finding.at]
    return min([*happened, *([] if finding.step is None else [finding.step])], default=None)


def _finding(told: Told) -> dict[str, Any]:
    return {**as_object(told.finding), "step": told.finding.step, "unreached": list(told.unreached)}


def _place(place: Place) -> dict[str, Any]:
    at = place.at
    return {
        "op": place.op,
        "text": place.text,
        "filename": absolute(at.path),
        "location": {"row": at.line, "column": at.column},
    }


def unseen(session: Session) -> list[str]:
    """What the run could not look at, one line each."""
    lines = list(session.blind)
    if session.faults:
        lines.append(f"gradlint failed {len(session.faults)} times while watching (first: {session.faults[0]})")
    return lines


def write(report: Report, options: dict[str, Any], stream: TextIO) -> None:
    """Write the report in the format that was asked for, and the files beside it; of several ranks, rank 0 writes."""
    rank = ranks.rank()
    if rank:
        ranks.hand_in(as_json(report))
        return
    others, silent = ranks.collect(as_json(report)) if rank == 0 else ({0: as_json(report)}, [])
    report.session.blind.update({f"rank {each} ended without a report": None for each in silent})
    if options["output_format"] == "json":
        json.dump(merged({**others, 0: as_json(report)}), stream, indent=2)
        stream.write("\n")
    else:
        stream.write(as_text(report, others))
        if options["show_graph"]:
            stream.write("\n" + routes.as_text(report.tape))
            stream.write("\n" + trainers.as_text(report.tape))
    stream.flush()
    if options["html"] is not None:
        output.write(
            options["html"],
            page(report.tape, report.told, report.steps, report.session.timeline.norms),
            pathlib.Path.cwd(),
        )
    if options["dot"] is not None:
        output.write(options["dot"], routes.as_dot(report.tape), pathlib.Path.cwd())


def merged(reports: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One object of several ranks' reports: rank 0's, with the findings of all and the ranks that had them."""
    found: dict[str, dict[str, Any]] = {}
    for rank, each in sorted(reports.items()):
        for finding in each["findings"]:
            known = found.setdefault(_key(finding), {**finding, "ranks": []})
            known["ranks"].append(rank)
    together = {**reports[0], "explained": replicas.told(reports)}
    del together["collectives"]
    return together if len(reports) == 1 else {**together, "findings": list(found.values())}


def _key(finding: Mapping[str, Any]) -> str:
    return json.dumps([finding["code"], finding["filename"], finding["location"]])


def as_text(report: Report, reports: Mapping[int, Mapping[str, Any]]) -> str:
    """The report for people: each finding framed, then its route, the parameters not reached, and what was not seen."""
    parts = [_head(report)]
    for told in report.told:
        alone = Outcome(
            (told.finding,), 1, lambda at: [line.rstrip("\n") for line in linecache.getlines(os.path.abspath(at.path))]
        )
        parts.append(render("text", alone).rsplit("\n", 2)[0] + "\n" + "".join(_extras(told)))
    parts += _of_other_ranks(reports)
    parts += [f"gradlint trace: {line}\n" for line in replicas.told(reports)]
    parts += [f"gradlint trace: {line}\n" for line in unseen(report.session)]
    parts += [
        printable(f"{each.finding.at}: {each.finding.code} {each.verdict}: {each.reason}") + "\n"
        for each in report.confirmations
    ]
    parts.append(_summary(report))
    return "\n".join(part for part in parts if part)


def _of_other_ranks(reports: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """What only other ranks found."""
    for finding in merged(reports)["findings"] if len(reports) > 1 else ():
        if 0 not in finding["ranks"]:
            where = f"{os.path.relpath(finding['filename'])}:{finding['location']['row']}"
            ranks_named = ", ".join(str(each) for each in finding["ranks"])
            text = f"rank {ranks_named}: {finding['severity']}[{finding['code']}] {where}: {finding['message']}"
            yield printable(text) + "\n"


def _head(report: Report) -> str:
    how = f", ended by {report.ending.raised.partition(':')[0]}" if report.ending.raised else ""
    steps = report.session.step
    return f"gradlint trace: {report.tape.entry}: {steps} optimizer step{'' if steps == 1 else 's'}{how}\n"


def _extras(told: Told) -> Iterator[str]:
    if told.finding.step is not None:
        yield f"step: {told.finding.step}\n"
    if len(told.stops) > 1:
        yield "route from the loss:\n"
        yield from _shortened([f"  {place.at}  {place.text}\n" for place in told.stops])
    if told.unreached:
        yield f"parameters not reached: {listed(told.unreached, _SHOWN_NAMES)}\n"


def _shortened(route: Sequence[str]) -> Sequence[str]:
    if len(route) <= _SHOWN_ROUTE:
        return route
    half = _SHOWN_ROUTE // 2
    return (*route[:half], f"  ... {len(route) - 2 * half} more\n", *route[-half:])


def _summary(report: Report) -> str:
    count, session = len(report.told), report.session
    if count:
        return f"{count} finding{'' if count == 1 else 's'}.\n"
    if session.movement.is_still:
        return f"No finding, but no parameter has moved in {session.step} step{'' if session.step == 1 else 's'}.\n"
    return "No finding.\n"
