"""Runs the fix of one rule over files, and says what it came to."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import field

from gradlint import config
from gradlint.checker import SYNTAX_ERROR
from gradlint.dataclass import dataclass
from gradlint.errors import UserError
from gradlint.finding import Finding, Severity
from gradlint.fix.apply import Repaired, Task, repair
from gradlint.guess import did_you_mean
from gradlint.report._place import count
from gradlint.rule import Rule, rules
from gradlint.settings import Selection
from gradlint.source.files import SettingsFor


@dataclass(frozen=True, slots=True)
class Run:
    """One rule, the files that it is run over, and how."""

    rule: Rule
    files: Sequence[pathlib.Path]
    unsafe: bool
    jobs: int = 1
    given: Mapping[pathlib.Path, bytes] = field(default_factory=dict)

    def repaired(self) -> Repaired:
        """The files mended, in memory."""
        settings_for = settings_of(self.rule)
        settings = settings_for(pathlib.Path.cwd())
        return repair(Task(self.files, settings_for, settings, self.unsafe, self.jobs, self.given))

    def summary(self, repaired: Repaired, verb: str) -> str:
        """What was mended (or would be), what was left and why, and what could not be read; a line
        each.
        """
        from gradlint.fix.offers import offered

        left = offered(repaired.checked, settings_of(self.rule)(pathlib.Path.cwd()), self.jobs)
        unread = {each.at.path for each in left if each.code == SYNTAX_ERROR}
        found = [each for each in left if each.code == self.rule.code]
        lines = [
            f"{self.rule.code} on {count(len(self.files), 'file')}:",
            f" - {verb} {count(repaired.fixed, 'finding')} in "
            f"{count(len(repaired.contents), 'file')}",
            *_left(found),
            *([f" - could not read {count(len(unread), 'file')}"] if unread else []),
        ]
        return "\n".join(lines)


def _left(found: Sequence[Finding]) -> list[str]:
    unsafe = sum(each.fix is not None for each in found)
    lines = [
        (unsafe, "that --unsafe-fixes mends"),
        (len(found) - unsafe, "without a fix that holds"),
    ]
    return [f" - left {count(number, 'finding')} {words}" for number, words in lines if number]


def rule_of(name: str) -> Rule:
    """The rule of this code or name; the user's fault where there is none, or none with a fix."""
    known = {each: rule for rule in rules().values() for each in (rule.code, rule.name)}
    rule = known.get(name.upper()) or known.get(name.lower())
    if rule is None:
        raise UserError(f"no rule has the code or name {name!r}{did_you_mean(name, known)}")
    if rule.fix is None:
        raise UserError(
            f"{rule.code} ({rule.name}) has no fix: `gradlint rule {rule.code}` says what to do"
        )
    return rule


def settings_of(rule: Rule) -> SettingsFor:
    """The settings of a project with this rule alone, and every finding of it."""
    selection = Selection((rule.code, SYNTAX_ERROR))
    values = {"min_severity": Severity.NOTE}
    return config.settings_finder(lambda settings: settings.overridden(selection, (), values))
