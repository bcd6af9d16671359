"""Workflow commands that GitHub Actions shows as annotations on the changed lines."""

from __future__ import annotations

from gradlint.finding import Finding, Severity
from gradlint.fingerprint import relative
from gradlint.report import Outcome

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(outcome: Outcome) -> str:
    """One command a finding."""
    return "".join(_command(finding, outcome) + "\n" for finding in outcome.findings)


def _command(finding: Finding, outcome: Outcome) -> str:
    properties = {
        "title": f"gradlint ({finding.code} {finding.name})",
        "file": relative(finding.at.path, outcome.root),
        "line": finding.at.line,
        "endLine": finding.at.last_line,
    }
    if finding.at.line == finding.at.end_line:  # columns of a stretch over several lines are refused
        properties |= {"col": finding.at.column, "endColumn": finding.at.end_column}
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
    return f"::{_COMMANDS[finding.severity]} {listed}::{_text(message)}"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
