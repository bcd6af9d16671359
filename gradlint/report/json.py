"""A JSON list with one object a finding."""

from __future__ import annotations

import json

from gradlint.report import Outcome
from gradlint.report._object import as_object

SHOWS_FIXES = True


def render(outcome: Outcome) -> str:
    """The findings as a JSON list."""
    return json.dumps([as_object(finding) for finding in outcome.findings], indent=2) + "\n"
