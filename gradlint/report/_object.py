"""A finding as a JSON object, with ruff's field names where ruff has the field."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradlint.finding import Edit, Finding, Fix, Related, Severity, Span
from gradlint.report import Outcome
from gradlint.report._place import shown_path
from gradlint.rule import Report, Rule, rules

UNREACHED = "GL004"


def as_object(finding: Finding) -> dict[str, Any]:
    """What `--output-format json` says of `finding`."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.label,
        "message": finding.message,
        "help": finding.help,
        **_place(finding.at),
        "fix": _fix(finding.fix) if finding.fix and _is_here(finding) else None,
        "related": [_related(related) for related in finding.related],
        "url": rules()[finding.code].url,
    }


def rules_as_json(told: Rule | Sequence[Rule]) -> str:
    """What `gradlint rule --output-format json` says: an object for one rule, a list of such for
    several.
    """
    import json

    found = _rule(told) if isinstance(told, Rule) else [_rule(each) for each in told]
    return json.dumps(found, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.label,
        "summary": rule.summary,
        "fixable": rule.fix is not None,
        "at_run_time": rule.at_run_time,
        "explanation": rule.page,
        "url": rule.url,
    }


def not_reached(outcome: Outcome) -> Iterator[Finding]:
    """A note for each call of `backward` to which no path came."""
    rule = rules()[UNREACHED]
    message = "this training step was not reached: nothing is known of it"
    for at in outcome.unreached:
        yield rule.finding(
            Report(at, message, "`gradlint check --gaps` says where the analysis gave up.")
        )


def finding_of(found: Mapping[str, Any]) -> Finding:
    """The finding that an object tells of, but for its fix, with its path from the working
    folder.
    """
    related = tuple(Related(_span_of(each), each["message"]) for each in found["related"])
    return Finding(
        found["code"], found["name"], Severity.parse(found["severity"]), found["message"],
        _span_of(found),
        found["help"], related, step=found.get("step"),
    )  # fmt: skip


def _span_of(found: Mapping[str, Any]) -> Span:
    start, end = found["location"], found["end_location"]
    path = shown_path(found["filename"])
    return Span(path, start["row"], start["column"], end["row"], end["column"], found["cell"] or 0)


def _place(at: Span) -> dict[str, Any]:
    return {"filename": absolute(at.path), "cell": at.cell or None, **_stretch(at)}


def _stretch(at: Span) -> dict[str, Any]:
    return {
        "location": {"row": at.line, "column": at.column},
        "end_location": {"row": at.end_line, "column": at.end_column},
    }


def _is_here(finding: Finding) -> bool:
    """Whether a fix edits the file of its finding, as those take it to do who read the edits."""
    return finding.fix is not None and all(
        edit.at.path == finding.at.path for edit in finding.fix.edits
    )


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [_edit(edit) for edit in fix.edits]
    return {"applicability": fix.applicability.value, "message": fix.message, "edits": edits}


def _edit(edit: Edit) -> dict[str, Any]:
    return {"content": edit.content, "cell": edit.at.cell or None, **_stretch(edit.at)}


def _related(related: Related) -> dict[str, Any]:
    return {**_place(related.at), "message": related.message}


def absolute(path: str) -> str:
    """`path` from the root; `-`, which stands for standard input, stays."""
    return path if path == "-" else os.path.abspath(path)
