"""The pytest plugin: `assert_gradients_flow` for the tests of a model, and `pytest --gradlint` to
check files.

pytest imports this file in every project of the environment, so whatever costs time is imported
where it is used.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradlint.finding import Finding
    from gradlint.report import Outcome
    from gradlint.settings import Settings
    from gradlint.source.files import SettingsFor
    from gradlint.trace.flow import AssertGradientsFlow

MARK = "gradlint"
_SETTINGS = pytest.StashKey["SettingsFor"]()
_FOUND = pytest.StashKey["_Found"]()


@pytest.fixture
def assert_gradients_flow() -> Iterator[AssertGradientsFlow]:
    """Asserts that gradients flow from a loss to a model's parameters, and names the lines that
    keep them from it.
    """
    from gradlint.trace.flow import recording

    with recording() as assertion:
        yield assertion


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offers `--gradlint`."""
    group = parser.getgroup("gradlint")
    group.addoption(
        "--gradlint",
        action="store_true",
        help="check the Python files that are collected with gradlint",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known, by which checks are chosen: `-m gradlint`."""
    config.addinivalue_line(
        "markers", f"{MARK}: a file is checked by gradlint (added by --gradlint)"
    )
    if config.getoption("--gradlint"):
        config.stash[_SETTINGS] = _settings_finder()


def pytest_collect_file(
    file_path: pathlib.Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Every Python file that pytest comes by, with `--gradlint`."""
    if parent.config.getoption("--gradlint") and file_path.suffix == ".py":
        made: CheckedFile = CheckedFile.from_parent(parent, path=file_path)
        return made
    return None


class CheckedFile(pytest.File):
    """A file that is checked, unless the settings exclude it."""

    def collect(self) -> Iterator[pytest.Item]:
        from gradlint.source.files import discover

        if discover([self.path], self.config.stash[_SETTINGS]).files:
            item: Check = Check.from_parent(self, name=MARK)
            item.add_marker(MARK)
            yield item


class Check(pytest.Item):
    """The check of one file. All files are checked together, when the first one is asked for."""

    def runtest(self) -> None:
        settings = self.config.stash[_SETTINGS](self.path.parent)
        outcome = _found(self.session).outcome(self.path, settings)
        if settings.fails(outcome.findings):
            from gradlint.report import render

            raise FoundError(render("text", outcome))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, FoundError)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[pathlib.Path, None, str]:
        return self.path, None, f"{self.path.name}: {MARK}"


class FoundError(Exception):
    """Something was found; the text is the report."""


class _Found:
    """What was found in all files that are to be checked in a session."""

    def __init__(self, session: pytest.Session) -> None:
        from gradlint import checker
        from gradlint.cache import FOLDER
        from gradlint.report._place import shown_path

        self.here = pathlib.Path.cwd()
        settings_for = session.config.stash[_SETTINGS]
        files = sorted({item.path for item in session.items if isinstance(item, Check)})
        shown = [pathlib.Path(shown_path(str(file))) for file in files]
        folder = settings_for(self.here).root / FOLDER
        self.checked = checker.check(shown, settings_for, given={}, cache=folder)
        self.outcomes: dict[int, tuple[Outcome, dict[pathlib.Path, list[Finding]]]] = {}

    def outcome(self, path: pathlib.Path, settings: Settings) -> Outcome:
        """What a report tells of one file, whose settings these are."""
        from dataclasses import replace

        whole, by_path = self._outcome(settings)
        return replace(whole, findings=tuple(by_path.get(path, ())), files=1)

    def _outcome(self, settings: Settings) -> tuple[Outcome, dict[pathlib.Path, list[Finding]]]:
        """What is reported under these settings, which many files share, in all and by file."""
        if id(settings) not in self.outcomes:
            outcome = self.checked.outcome(settings)
            by_path: dict[pathlib.Path, list[Finding]] = {}
            for finding in outcome.findings:
                by_path.setdefault(self.here / finding.at.path, []).append(finding)
            self.outcomes[id(settings)] = outcome, by_path
        return self.outcomes[id(settings)]


def _found(session: pytest.Session) -> _Found:
    """The check of all files of the session; made once."""
    if _FOUND not in session.stash:
        session.stash[_FOUND] = _Found(session)
    return session.stash[_FOUND]


def _settings_finder() -> SettingsFor:
    from gradlint import config
    from gradlint.errors import UserError
    from gradlint.settings import Selection

    finder = config.settings_finder(
        lambda settings: settings.overridden(Selection(), (), {"force_exclude": True})
    )

    def settings_for(folder: pathlib.Path) -> Settings:
        try:
            return finder(folder)
        except UserError as error:
            raise pytest.UsageError(str(error)) from None

    return settings_for
