"""Rules of other distributions: found by their entry point, wherever on the path they are
installed.
"""

import os
import pathlib
import subprocess
import sys

import pytest

RULE = '''"""# shouting

Says that a program ends.
"""

from gradlint.finding import Severity

SEVERITY = Severity.NOTE


def check(paths):
    return iter(())
'''


@pytest.fixture
def site(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder in which a distribution is installed that brings the rule XY101."""
    package, distribution = tmp_path / "shouting", tmp_path / "shouting-1.0.dist-info"
    package.mkdir()
    distribution.mkdir()
    (package / "__init__.py").touch()
    (package / "XY101_shouting.py").write_text(RULE)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text("[gradlint.rules]\nshouting = shouting\n")
    return tmp_path


def rules(*folders: pathlib.Path) -> list[str]:
    """The lines of `gradlint rule` with these folders on the path."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "gradlint", "rule"]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_a_plugin_brings_its_rules(site: pathlib.Path) -> None:
    assert rules(site)[-1].split() == ["XY101", "note", "shouting"]


def test_without_a_plugin_there_are_our_rules_alone(tmp_path: pathlib.Path) -> None:
    assert {line[:2] for line in rules(tmp_path, tmp_path / "is not there")} == {"GL"}
