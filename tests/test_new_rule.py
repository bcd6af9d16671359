"""`tools/new_rule.py`: the files that it writes are a rule and a fixture, but for what says
TODO.
"""

import pathlib
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from programs import OUTCOMES, Case, read_markers
from test_rules_examples import HEADINGS

from gradlint.analysis import analyze
from gradlint.paths import Paths
from gradlint.rule import Rule
from gradlint.tape import Tape

ROOT = pathlib.Path(__file__).parents[1]
TOOL = ROOT / "tools" / "new_rule.py"
NEW: dict[str, Any] = runpy.run_path(str(TOOL))
CODE, NAME = "XY101", "lost-gradient"


@pytest.fixture
def rules(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A package for rules, which can be imported."""
    folder = tmp_path / "new_rules"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "new_rules"]:
        del sys.modules[name]


def test_the_file_is_a_rule_with_a_whole_page(rules: pathlib.Path) -> None:
    (path,) = NEW["write"](CODE, NAME, rules, None)
    rule = Rule(CODE, NAME, f"new_rules.{path.stem}")
    assert rule.page.startswith(f"# {NAME} ({CODE})\n")
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == HEADINGS
    assert rule.page.count("```python") == 2
    assert list(rule.check(Paths([Tape("train.py")]))) == []


def test_the_fixture_is_a_case_whose_programs_are_clean_so_far(
    rules: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    NEW["write"]("GL199", NAME, rules, tmp_path / "own")
    folder = tmp_path / "own" / f"GL199-{NAME}"
    case = Case(folder, tomllib.loads((folder / "case.toml").read_text(encoding="utf-8")))
    assert case.before["outcome"] in OUTCOMES
    assert case.before["why"]
    before, after = (folder / side / "train.py" for side in ("before", "after"))
    (marker,) = read_markers("train.py", before.read_text(encoding="utf-8"))
    assert (marker.kind, marker.place.code) == ("miss", "GL199")
    assert list(read_markers("train.py", after.read_text(encoding="utf-8"))) == []
    assert list(analyze([before, after], select=lambda code: True).findings) == []


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("gl101", NAME, "gl101 is no code: capital letters and three digits"),
        (CODE, "Lost_Gradient", "Lost_Gradient is no name: words in lower case"),
    ],
)
def test_a_code_or_name_that_no_rule_can_have_is_refused(
    rules: pathlib.Path, code: str, name: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        NEW["write"](code, name, rules, None)


def test_a_code_that_is_taken_is_refused_by_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, str(TOOL), "GL101", "another-loss"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith("GL101 is taken by GL101_constant_loss.py\n")
