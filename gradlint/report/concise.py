"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from gradlint.report import Outcome
from gradlint.report._place import printable, shown_path, summary


def render(outcome: Outcome) -> str:
    """The findings, one a line, and how many there are."""
    lines = [
        f"{shown_path(finding.at.path)}:{finding.at.place}: {finding.severity.label}[{finding.code}] {finding.message}"
        for finding in outcome.findings
    ]
    return "\n".join([*map(printable, lines), summary(outcome)]) + "\n"
