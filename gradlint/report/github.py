"""Workflow commands that GitHub Actions shows as annotations on the changed lines."""

from __future__ import annotations

from gradlint.finding import Finding, Severity
from gradlint.fingerprint import relative
from gradlint.report import Outcome
from gradlint.report._place import in_cell, printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(outcome: Outcome) -> str:
    """One command a finding."""
    return "".join(_command(finding, outcome) + "\n" for finding in outcome.findings)


def _command(finding: Finding, outcome: Outcome) -> str:
    at = outcome.raw(finding.at)
    properties = {
        "title": f"gradlint ({finding.code} {finding.name})",
        "file": relative(at.path, outcome.root),
        "line": at.line,
        "endLine": at.last_line,
    }
    if at.line == at.end_line:  # columns of a stretch over several lines are refused
        properties |= {"col": at.column, "endColumn": at.end_column}
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = (
        in_cell(finding.at) + finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
    )
    return f"::{_COMMANDS[finding.severity]} {listed}::{_text(message)}"


def _text(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
