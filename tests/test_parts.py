"""Every part under `fixtures/parts`: what torch does with it, and what gradlint reports of it
alone.

A part is a folder: `part.py`, perhaps with `part2.py` beside it, with markers as in `programs.py`
(notes do not count), and `truth.py`, which shows by torch what the markers claim. The name of one
with nothing wrong begins with `clean-`.
"""

from __future__ import annotations

import pathlib

import pytest
from programs import ROOT, Place, Program, disagreements
from truth import observe

PARTS = [Program(path.parent) for path in sorted(ROOT.glob("parts/*/part.py"))]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder.name)
def test_torch_does_with_a_part_what_its_truth_asserts(part: Program) -> None:
    assert observe(part.folder, "truth.py").exception == ""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder.name)
def test_check_reports_of_a_part_what_its_markers_claim(part: Program) -> None:
    from gradlint.analysis import analyze
    from gradlint.rule import rules

    files = sorted(part.folder.glob("part*.py"))
    reported = {
        (Place(pathlib.Path(each.at.path).name, each.at.line, each.code), each.severity.label)
        for each in analyze(files, select=lambda code: True).findings
        if each.severity.label != "note"
    }
    assert disagreements(part.markers(), reported, rules().keys()) == []


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder.name)
def test_a_part_is_named_after_what_is_wrong_with_it(part: Program) -> None:
    claimed = {marker.place.code for marker in part.markers() if marker.kind in ("expect", "miss")}
    assert part.folder.name[:5] in claimed or (
        part.folder.name.startswith("clean-") and not claimed
    )
