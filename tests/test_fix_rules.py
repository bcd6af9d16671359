"""The fixes of the rules on their own examples: the finding goes away, and a second round changes
nothing.
"""

from __future__ import annotations

import pathlib

import pytest
from test_rules_examples import BAD, Example

from gradlint.config import settings_finder
from gradlint.fix.apply import Repaired, Task, repair
from gradlint.rule import rules
from gradlint.settings import Selection
from gradlint.source.parse import Source, parse

# what their pages show has no fix that is kept; other shapes have
NO_EXAMPLE = {"GL104", "GL105", "GL107"}
FIXED = [example for example in BAD if rules()[example.code].fix is not None]


def mended(path: pathlib.Path, code: str) -> Repaired:
    settings_for = settings_finder(
        lambda settings: settings.overridden(Selection((code,), (), ()), (), {})
    )
    repaired = repair(Task([path], settings_for, settings_for(path.parent), unsafe=True))
    for changed, content in repaired.contents.items():
        changed.write_bytes(content)
    return repaired


@pytest.mark.parametrize("example", FIXED, ids=str)
def test_a_fix_leaves_a_program_that_needs_no_other_fix(
    example: Example, tmp_path: pathlib.Path
) -> None:
    path = example.write(tmp_path)
    repaired = mended(path, example.code)
    assert isinstance(parse(str(path), path.read_text(encoding="utf-8")), Source)
    assert mended(path, example.code).contents == {}
    if repaired.fixed:
        assert len(repaired.checked.findings) < len(example.marked)


@pytest.mark.parametrize("code", sorted({example.code for example in FIXED} - NO_EXAMPLE))
def test_a_rule_with_a_fix_mends_an_example_of_its_page(code: str, tmp_path: pathlib.Path) -> None:
    fixed = [
        mended(example.write(tmp_path), code).fixed for example in FIXED if example.code == code
    ]
    assert any(fixed)
