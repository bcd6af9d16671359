"""What a fix makes of a program behaves like the program mended by hand: torch is the judge."""

from __future__ import annotations

import pathlib

import pytest
from mended import PROGRAMS, sides
from truth import Record, observe

from gradlint.config import settings_finder
from gradlint.finding import Severity
from gradlint.fix.apply import Task, repair
from gradlint.settings import Selection


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mended_program_does_what_it_should(name: str, tmp_path: pathlib.Path) -> None:
    before, after = sides(name)
    mended, wanted = (
        _run(tmp_path / "mended", _mended(tmp_path, before)),
        _run(tmp_path / "wanted", after),
    )
    assert (mended.exception, mended.steps, mended.untrained) == (
        "",
        wanted.steps,
        wanted.untrained,
    )
    assert mended.checksum == pytest.approx(wanted.checksum, rel=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_mended_by_hand_is_left_alone(name: str, tmp_path: pathlib.Path) -> None:
    after = sides(name)[1]
    assert _mended(tmp_path, after) == after


def _mended(folder: pathlib.Path, text: str) -> str:
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    settings_for = settings_finder(lambda settings: settings.overridden(Selection(), (), {}))
    repaired = repair(Task([path], settings_for, settings_for(folder), unsafe=True))
    left = [finding for finding in repaired.checked.findings if finding.severity > Severity.NOTE]
    assert left == []
    return repaired.contents.get(path, path.read_bytes()).decode()


def _run(folder: pathlib.Path, text: str) -> Record:
    folder.mkdir()
    (folder / "train.py").write_text(text, encoding="utf-8")
    return observe(folder)
