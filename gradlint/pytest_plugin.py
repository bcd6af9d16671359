"""The pytest plugin: `assert_gradients_flow` for the tests of a model, and `pytest --gradlint` to check files.

pytest imports this file in every project of the environment, so whatever costs time is imported where it is used.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradlint.checker import Checked
    from gradlint.source.files import SettingsFor
    from gradlint.trace.flow import AssertGradientsFlow

MARK = "gradlint"


@pytest.fixture
def assert_gradients_flow() -> Iterator[AssertGradientsFlow]:
    """Asserts that gradients flow from a loss to a model's parameters, and names the lines that keep them from it."""
    from gradlint.trace.flow import recording

    with recording() as assertion:
        yield assertion


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offers `--gradlint`."""
    group = parser.getgroup("gradlint")
    group.addoption("--gradlint", action="store_true", help="check the Python files that are collected with gradlint")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known, by which checks are chosen: `-m gradlint`."""
    config.addinivalue_line("markers", f"{MARK}: a file is checked by gradlint (added by --gradlint)")


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every Python file that pytest comes by, with `--gradlint`."""
    if parent.config.getoption("--gradlint") and file_path.suffix == ".py":
        made: CheckedFile = CheckedFile.from_parent(parent, path=file_path)
        return made
    return None


class CheckedFile(pytest.File):
    """A file that is checked, unless the settings exclude it."""

    def collect(self) -> Iterator[pytest.Item]:
        from gradlint.source.files import discover

        if discover([self.path], _settings_finder()).files:
            item: Check = Check.from_parent(self, name=MARK)
            item.add_marker(MARK)
            yield item


class Check(pytest.Item):
    """The check of one file. All files are checked together, when the first one is asked for."""

    def runtest(self) -> None:
        settings_for = _settings_finder()
        settings = settings_for(self.path.parent)
        checked = _checked(self.session, settings_for)
        outcome = checked.outcome(settings)
        here = tuple(finding for finding in outcome.findings if pathlib.Path(finding.at.path).absolute() == self.path)
        if settings.fails(here):
            from dataclasses import replace

            from gradlint.report import render

            raise FoundError(render("text", replace(outcome, findings=here, files=1)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, FoundError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[pathlib.Path, None, str]:
        return self.path, None, f"{self.path.name}: {MARK}"


class FoundError(Exception):
    """Something was found; the text is the report."""


_CHECKED = pytest.StashKey["Checked"]()


def _checked(session: pytest.Session, settings_for: SettingsFor) -> Checked:
    """The check of all files that are to be checked in this session; made once."""
    if _CHECKED not in session.stash:
        from gradlint import checker
        from gradlint.cache import FOLDER

        files = sorted({item.path for item in session.items if isinstance(item, Check)})
        here = pathlib.Path.cwd()
        shown = [file.relative_to(here) if file.is_relative_to(here) else file for file in files]
        folder = settings_for(here).root / FOLDER
        session.stash[_CHECKED] = checker.check(shown, settings_for, given={}, cache=folder)
    return session.stash[_CHECKED]


def _settings_finder() -> SettingsFor:
    from gradlint import config
    from gradlint.errors import UserError

    finder = config.settings_finder(
        lambda settings: settings.overridden(config.Selection(), (), {"force_exclude": True})
    )

    def settings_for(folder: pathlib.Path) -> config.Settings:
        try:
            return finder(folder)
        except UserError as error:
            raise pytest.UsageError(str(error)) from None

    return settings_for
