"""GitLab's code quality report."""

from __future__ import annotations

import json
from typing import Any

from gradlint.finding import Finding, Severity
from gradlint.fingerprint import fingerprints, relative
from gradlint.report import Outcome
from gradlint.report._place import in_cell

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(outcome: Outcome) -> str:
    """A JSON list with one object a finding."""
    names = fingerprints(outcome.findings, outcome.lines, outcome.root)
    return (
        json.dumps(
            [_object(finding, names[finding], outcome) for finding in outcome.findings], indent=2
        )
        + "\n"
    )


def _object(finding: Finding, fingerprint: str, outcome: Outcome) -> dict[str, Any]:
    at = outcome.raw(finding.at)
    return {
        "description": in_cell(finding.at) + finding.message,
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": relative(at.path, outcome.root),
            "positions": {
                "begin": {"line": at.line, "column": at.column},
                "end": {"line": at.end_line, "column": at.end_column},
            },
        },
    }
