"""A fix goes by places, roles and hints: whatever the messages of its finding say, it stays."""

from __future__ import annotations

import os
import pathlib
from dataclasses import replace

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Finding
from gradlint.fix.attach import Files

OWN = pathlib.Path(__file__).parents[1] / "fixtures" / "own"
SIDES = [
    side for name in sorted(os.listdir(OWN)) for side in (OWN / name / "before",) if side.is_dir()
]


def reworded(finding: Finding) -> Finding:
    """The finding with other words everywhere."""
    related = tuple(replace(each, message="elsewhere") for each in finding.related)
    return replace(finding, message="something is wrong", help="mend it", related=related)


@pytest.mark.parametrize("tenth", range(10))
def test_rewording_a_finding_changes_no_fix(tenth: int) -> None:
    compared = 0
    for side in SIDES[tenth::10]:
        paths = sorted(side.rglob("*.py"))
        files = Files(lambda path: pathlib.Path(path).read_text())
        for finding in analyze(paths, select=lambda code: True).findings:
            if (fix := files.fix(finding)) is not None:
                assert files.fix(reworded(finding)) == fix, f"{side}: {finding.code}"
                compared += 1
    assert compared > 10
