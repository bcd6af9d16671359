"""Code as it is pasted: functions, methods and classes, most with no trainer beside them, each
checked by itself.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity

SEEDS = pathlib.Path(__file__).parents[1] / "fixtures" / "seeds"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (SEEDS / "expected.json").read_text(encoding="utf-8")
)


def test_every_seed_is_expected_to_say_something_or_nothing() -> None:
    assert sorted(EXPECTED) == sorted(path.name for path in SEEDS.glob("*.py"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_seed_is_told_what_is_wrong_with_it_and_nothing_else(name: str) -> None:
    found = analyze([SEEDS / name], select=lambda code: True).findings
    told = {(each.code, each.at.line): each.severity for each in found}
    must = {(code, line): severity for code, line, severity in EXPECTED[name]["must"]}
    assert must.keys() <= told.keys()
    assert [
        place for place, severity in must.items() if severity not in (None, told[place].label)
    ] == []
    assert {
        place for place, severity in told.items() if severity is not Severity.NOTE
    } <= must.keys()
    assert not {code for code, _ in told} & set(EXPECTED[name]["must_not"])
