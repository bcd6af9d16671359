"""Which fixes are offered: those that `--fix` keeps.

A fix that can spoil the program (`SPOILT_BY`) is tried before it is offered, together with the others of its kind and
what mends what it brings about, on the files that its own hangs on; `repair` decides. The others cost no check.
"""

from __future__ import annotations

import pathlib
from dataclasses import replace

from gradlint.checker import Checked
from gradlint.config import Settings
from gradlint.finding import Finding
from gradlint.fix.apply import Task, key_of, repair
from gradlint.fix.attach import Files, with_fixes
from gradlint.rule import rules


def offered(checked: Checked, settings: Settings, jobs: int = 1) -> tuple[Finding, ...]:
    """The findings that are wanted, each with its fix if there is one that is kept."""
    refused = taken_back(checked, settings, jobs)
    found = with_fixes(checked.wanted(settings), Files(checked.texts.text))
    return tuple(replace(each, fix=None) if replace(each, fix=None) in refused else each for each in found)


def is_doubtful(finding: Finding) -> bool:
    """Whether a fix of this finding has to be tried."""
    return bool(rules()[finding.code].spoilt_by)


def taken_back(checked: Checked, settings: Settings, jobs: int = 1) -> frozenset[Finding]:
    """The findings whose fixes were tried and are not kept."""
    wanted = checked.wanted(settings)
    found = with_fixes(filter(is_doubtful, wanted), Files(checked.texts.text))
    codes = frozenset(finding.code for finding in found if finding.fix)
    if not codes:
        return frozenset()
    task = Task(
        checked.reaching(finding.at.path for finding in found if finding.fix),
        checked.settings_for,
        settings,
        unsafe=True,
        jobs=jobs,
        given={pathlib.Path(path): content for path, content in checked.texts.given.items()},
        only=codes.union(*(rules()[code].spoilt_by for code in codes)),
    )
    useless = repair(task, checked).taken_back
    return frozenset(replace(finding, fix=None) for finding in wanted if key_of(finding, checked) in useless)
