"""The report of a traced run: as text for people, as one JSON object for programs, in the formats
of `check`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from gradlint import output
from gradlint.finding import Finding, Severity
from gradlint.report import Outcome, render
from gradlint.report._object import absolute, as_object, finding_of
from gradlint.rule import at_run_time
from gradlint.tape import Tape
from gradlint.texts import Texts
from gradlint.trace import frames, opaque, ranks, recurrent, replicas, routes, source, trainers
from gradlint.trace.confirm import Confirmation
from gradlint.trace.findings import Place, Told
from gradlint.trace.html import page
from gradlint.trace.launch import Ending
from gradlint.trace.places import at
from gradlint.trace.session import Session
from gradlint.trace.text import as_text

# formats that are read in a log, beside what the program prints
LINES = ("text", "concise", "github")


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to tell about a run."""

    tape: Tape
    told: tuple[Told, ...]
    session: Session
    ending: Ending
    steps: dict[int, int]
    root: pathlib.Path
    confirmations: tuple[Confirmation, ...] = ()


def as_json(report: Report) -> dict[str, Any]:
    """The report as one object: `findings`, `confirmations`, `steps`, `routes`."""
    return {
        "findings": [_finding(told) for told in report.told],
        "confirmations": [
            {**as_object(each.finding), "verdict": each.verdict, "reason": each.reason}
            for each in report.confirmations
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
            *opaque.explained(report.session, _unreached(report), is_clean=not report.told),
        ],
        "collectives": replicas.collectives(report.session),
        "unseen": unseen(report.session),
        "not_finite": not_finite(report.session),
        "moved": None
        if not report.session.movement.moved
        else not report.session.movement.is_still,
        **(
            _values(report)
            if report.session.timeline.wanted and report.session.timeline.kept
            else {}
        ),
    }


def _unreached(report: Report) -> set[str]:
    """The parameters that some finding says no gradient comes back to."""
    return {name for told in report.told for name in told.unreached}


def _values(report: Report) -> dict[str, Any]:
    """What the run computed: its losses, which parameters ever got a gradient, and the first step
    that a bug struck.
    """
    timeline = report.session.timeline
    struck = [
        step
        for told in report.told
        if told.finding.severity > Severity.NOTE
        and (step := _first_step(told.finding, report)) is not None
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


def not_finite(session: Session) -> dict[str, Any] | None:
    """The first loss, or gradient at a step, that is not finite, where they are looked at: what,
    where and when.
    """
    found = session.timeline.not_finite
    if found is None:
        return None
    what, step, batch, place = found
    return {"what": what, "step": step, "batch": batch, "at": str(at(place))}


def unseen(session: Session) -> list[str]:
    """What the run could not look at, one line each."""
    lines = list(session.blind)
    if session.faults:
        lines.append(
            f"gradlint failed {len(session.faults)} times while watching (first: "
            f"{session.faults[0]})"
        )
    return lines


def write(report: Report, options: dict[str, Any], stream: TextIO) -> None:
    """Write the report in the format that was asked for, and the files beside it; of several ranks,
    rank 0 writes.
    """
    rank = ranks.rank()
    if rank:
        ranks.hand_in(as_json(report))
        return
    others, silent = ranks.collect(as_json(report)) if rank == 0 else ({0: as_json(report)}, [])
    report.session.blind.update({f"rank {each} ended without a report": None for each in silent})
    stream.write(_rendered(report, merged({**others, 0: as_json(report)}), options))
    stream.flush()
    if options["html"] is not None:
        output.write(
            options["html"],
            page(
                report.tape,
                report.told,
                report.steps,
                report.session.timeline.norms,
                report.session.step,
            ),
            pathlib.Path.cwd(),
        )
    if options["dot"] is not None:
        output.write(options["dot"], routes.as_dot(report.tape), pathlib.Path.cwd())


def _rendered(report: Report, together: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """What is written in the format that was asked for; `together` is the JSON report of all
    ranks.
    """
    if options["output_format"] == "json":
        return json.dumps(together, indent=2) + "\n"
    if options["output_format"] != "text":
        return render(options["output_format"], _outcome(report, together))
    text = as_text(report, together, verbose=options["verbose"])
    if options["show_graph"]:
        text += "\n" + routes.as_text(report.tape) + "\n" + trainers.as_text(report.tape)
    return text


def _outcome(report: Report, together: Mapping[str, Any]) -> Outcome:
    """What the formats of `check` are told: rank 0's findings, and those that only others had."""
    others = [finding_of(each) for each in together["findings"] if 0 not in each.get("ranks", (0,))]
    found = (*(told.finding for told in report.told), *others)
    return Outcome(found, len(frames.users_files()), source.lines, report.root, raw=Texts({}).raw)


def merged(reports: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One object of several ranks' reports: rank 0's, with the findings of all and the ranks that
    had them.
    """
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
