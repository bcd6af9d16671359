"""How often each rule was broken, the most frequent first, and how much was looked at."""

from __future__ import annotations

import collections

from gradlint.report import Outcome
from gradlint.report._place import summary


def render(outcome: Outcome) -> str:
    """One line a rule; behind them the sums of what the analysis has come to."""
    counts = collections.Counter(
        (finding.code, finding.severity, finding.name) for finding in outcome.findings
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        f"{number:6}  {code}  {severity.label:7}  {name}"
        for (code, severity, name), number in ordered
    ]
    return "\n".join([*lines, *outcome.coverage.lines(), summary(outcome)]) + "\n"
