"""Fixes of the training step and of custom functions, by the ways that programs spell them: the
text that they write.
"""

from __future__ import annotations

import pathlib

import pytest
from mended import HEAD, side
from spellings import PROGRAMS

from gradlint.config import settings_finder
from gradlint.fix.apply import Task, repair
from gradlint.settings import Selection


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fix_writes_what_stands_beside_the_program(name: str, tmp_path: pathlib.Path) -> None:
    lines = (HEAD + PROGRAMS[name]).splitlines()
    path = tmp_path / "train.py"
    path.write_text(side(lines, "-"), encoding="utf-8")
    settings_for = settings_finder(
        lambda settings: settings.overridden(Selection((name[:5],), (), ()), (), {})
    )
    repaired = repair(Task([path], settings_for, settings_for(tmp_path), unsafe=True))
    assert repaired.contents.get(path, path.read_bytes()).decode() == side(lines, "+")
    assert repaired.contents or repaired.checked.findings
