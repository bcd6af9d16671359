"""One JSON object a line, one line a finding."""

from __future__ import annotations

import json

from gradlint.report import Outcome
from gradlint.report._object import as_object, not_reached

SHOWS_FIXES = True


def render(outcome: Outcome) -> str:
    """The findings as JSON lines; behind them the training steps that were not reached, as
    notes.
    """
    return "".join(
        json.dumps(as_object(finding)) + "\n"
        for finding in (*outcome.findings, *not_reached(outcome))
    )
