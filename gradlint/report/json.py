"""A JSON list with one object a finding."""

from __future__ import annotations

import json

from gradlint.report import Outcome
from gradlint.report._object import as_object, not_reached

SHOWS_FIXES = True


def render(outcome: Outcome) -> str:
    """The findings as a JSON list; behind them the training steps that were not reached, as
    notes.
    """
    return (
        json.dumps(
            [as_object(finding) for finding in (*outcome.findings, *not_reached(outcome))], indent=2
        )
        + "\n"
    )
