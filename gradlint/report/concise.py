"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from gradlint.report import Outcome
from gradlint.report._place import ending, printable, shown_path


def render(outcome: Outcome) -> str:
    """The findings, one a line, and how many there are."""
    lines = [
        f"{shown_path(finding.at.path)}:{finding.at.place}: "
        f"{finding.severity.label}[{finding.code}] {finding.message}"
        for finding in outcome.findings
    ]
    return "".join(f"{line}\n" for line in [*map(printable, lines), *ending(outcome)])
