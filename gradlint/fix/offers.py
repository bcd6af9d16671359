"""Which fixes are offered: those that were tried, alone or with others of their kind, and held.

A fix holds if its finding is gone and no error or warning has come. It is tried on the files that
its own hangs on. Fixes of one rule are tried together first; where that fails, those whose findings
are left go by themselves, and the others in halves. What a trial has shown is kept as long as
nothing that it rests on changes.
"""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from gradlint.cache import Grounds
from gradlint.checker import Checked, check
from gradlint.dataclass import dataclass
from gradlint.digests import digest
from gradlint.finding import Finding
from gradlint.fix.attach import Files, with_fixes
from gradlint.fix.trial import Change, Verdict, changed, judged
from gradlint.settings import Settings


def offered(checked: Checked, settings: Settings, jobs: int = 1) -> tuple[Finding, ...]:
    """The findings that are wanted, each with its fix if there is one that holds."""
    wanted = checked.wanted(settings)
    files = Files(checked.texts.text)
    found = with_fixes(wanted, files)
    held = _remembered(checked, Trials(checked, files, jobs), [each for each in found if each.fix])
    return tuple(each if each in held else replace(each, fix=None) for each in found)


def _remembered(checked: Checked, trials: Trials, found: Sequence[Finding]) -> frozenset[Finding]:
    """Those whose fixes hold, by an earlier run where nothing has changed since."""
    if not found or checked.kept.file is None:
        return trials.holding(found)
    grounds = Grounds(checked.kept.records)
    names = {each: _name(each, grounds) for each in found}
    known = checked.kept.verdicts()
    held = trials.holding([each for each in found if names[each] not in known])
    verdicts = {name: known.get(name, each in held) for each, name in names.items()}
    if verdicts.keys() - known.keys():
        checked.kept.keep_verdicts(verdicts)
    return frozenset(each for each, name in names.items() if verdicts[name])


def _name(finding: Finding, grounds: Grounds) -> str:
    """What stands for a fix and all that a trial of it rests on."""
    ground = grounds.of(pathlib.Path(os.path.realpath(finding.at.path)))
    told = repr((ground, finding.code, finding.message, finding.at, finding.fix))
    return digest(told.encode(errors="surrogatepass"))


@dataclass(slots=True)
class Trials:
    """Tries the fixes of what a check has found."""

    checked: Checked
    files: Files
    jobs: int = 1
    _before: dict[tuple[pathlib.Path, ...], Checked] = field(default_factory=dict)

    def holding(self, found: Iterable[Finding]) -> frozenset[Finding]:
        """Those of these findings whose fixes hold."""
        ordered = sorted(found, key=lambda each: (each.code, each.sort_key))
        groups = [
            list(group) for _, group in itertools.groupby(ordered, key=lambda each: each.code)
        ]
        return frozenset(each for group in groups for each in self._holding(group))

    def together(self, found: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those of these findings whose fixes hold when all are made at once; rule by rule, where
        not all do.
        """
        ordered = sorted(found, key=lambda each: (each.code, each.sort_key))
        groups = [
            list(group) for _, group in itertools.groupby(ordered, key=lambda each: each.code)
        ]
        kept: list[Finding] = []
        for group in [ordered] if len(groups) < 2 else [ordered, *groups]:
            more = [each for each in group if each not in kept]
            trial = self._try([*kept, *more]) if more else None
            if trial is not None and trial.verdict.holds:
                kept = list(trial.change.mended)
        return tuple(kept)

    def _holding(self, found: Sequence[Finding]) -> Iterator[Finding]:
        if not found:
            return
        trial = self._try(found)
        mended, left = trial.change.mended, trial.verdict.left
        if trial.verdict.holds:
            yield from mended
            if mended:  # those that stand in each other's way are tried after one another
                yield from self._holding([each for each in found if each not in mended])
        elif len(found) > 1:
            half = len(found) // 2
            suspects = [each for each in found if each in left]
            suspects = suspects if 0 < len(suspects) < len(found) else list(found[half:])
            yield from self._holding([each for each in found if each not in suspects])
            yield from self._holding(suspects)

    def _try(self, found: Sequence[Finding]) -> _Trial:
        before = self._checked_before(self.checked.reaching(each.at.path for each in found))
        given = {pathlib.Path(path): content for path, content in before.texts.given.items()}
        change = changed(before, given, found, self.files)
        after = check(
            before.files, before.settings_for, given=change.contents, jobs=self.jobs,
            before=before, judging=True,
            keeps=False,
        )  # fmt: skip
        return _Trial(change, judged(before, change, after))

    def _checked_before(self, files: tuple[pathlib.Path, ...]) -> Checked:
        """The check of these files alone, and by the rules that judge fixes."""
        if files not in self._before:
            given = {
                pathlib.Path(path): content for path, content in self.checked.texts.given.items()
            }
            self._before[files] = check(
                files,
                self.checked.settings_for,
                given=given,
                jobs=self.jobs,
                before=self.checked,
                judging=True,
            )
        return self._before[files]


@dataclass(frozen=True, slots=True)
class _Trial:
    """What some fixes have made, and how that was judged."""

    change: Change
    verdict: Verdict
