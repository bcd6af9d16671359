"""What the README shows is what happens."""

import os
import pathlib
import re

import pytest
from commandline import Run

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"<!-- example: .*? -->\n```console\n\$ gradlint (.*?)\n(.*?)```\n<!-- end -->", re.DOTALL)


def test_the_example_shows_what_gradlint_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ((command, shown),) = EXAMPLE.findall(README)
    assert run(*command.split()).out == shown


@pytest.mark.parametrize("name", ["run", "test"])
def test_the_readme_has_the_commands_for_a_fresh_machine(name: str) -> None:
    assert len(re.findall(rf"<!-- {name} -->\n```sh\n.*?\n```", README, re.DOTALL)) == 1


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_settings_shown_are_the_settings_there_are(tmp_path: pathlib.Path) -> None:
    from gradlint import config

    (table,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    settings = config.settings_finder(lambda found: found)(tmp_path)
    assert not settings.selects("GL109")
    assert set(re.findall(r"^([a-z-]+) =", table, re.MULTILINE)) == config.keys()
