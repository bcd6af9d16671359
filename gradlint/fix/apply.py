"""Mending a program: check, apply what fixes there are, and again until nothing more is found."""

from __future__ import annotations

import collections
import difflib
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from gradlint.checker import Checked, check
from gradlint.dataclass import dataclass
from gradlint.finding import Applicability, Finding, Severity
from gradlint.fix.attach import Files, with_fixes
from gradlint.fix.layout import Layout
from gradlint.fix.trial import Change, Contents, Key, changed, judged, key_of
from gradlint.report._place import printable
from gradlint.rule import rules
from gradlint.settings import Settings
from gradlint.source import document
from gradlint.source.files import SettingsFor
from gradlint.source.parse import decode

ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What to mend: the files, their settings, and which fixes to apply."""

    files: Sequence[pathlib.Path]
    settings_for: SettingsFor
    settings: Settings
    unsafe: bool
    jobs: int = 1
    given: Mapping[pathlib.Path, bytes] = field(default_factory=dict)
    cache: pathlib.Path | None = None

    def check(
        self, contents: Mapping[pathlib.Path, bytes], before: Checked | None = None
    ) -> Checked:
        """What is wrong in the files, of which some have these contents."""
        return check(
            self.files,
            self.settings_for,
            jobs=self.jobs,
            given=contents,
            cache=self.cache,
            before=before,
            judging=True,
        )

    def applies(self, finding: Finding) -> bool:
        """Whether the fix of a finding is to be made: of a note, an unsafe one only where its rule
        is selected.
        """
        if finding.fix is None or finding.fix.applicability is Applicability.SAFE:
            return finding.fix is not None
        settings = self.settings_for(pathlib.Path(document.file_of(finding.at.path)))
        return self.unsafe and (finding.severity > Severity.NOTE or settings.names(finding.code))


@dataclass(frozen=True, slots=True)
class Repaired:
    """What mending came to: the last check, the new contents, the old ones, and which fixes were
    applied, how often.
    """

    checked: Checked
    contents: Mapping[pathlib.Path, bytes]
    originals: Mapping[pathlib.Path, bytes]
    fixed: int
    codes: frozenset[str] = frozenset()

    def diff(self) -> Iterator[str]:
        """The changes, as a patch."""
        for path in sorted(self.contents):
            old, new = (
                _text(path, content) for content in (self.originals[path], self.contents[path])
            )
            name = printable(str(path))
            for line in difflib.unified_diff(_lines(old), _lines(new), name, name):
                yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class _Round:
    """What was found before a round, in which contents, what the round has made of them, and what
    was found then.
    """

    found: Checked
    contents: Contents
    change: Change
    after: Checked

    @property
    def applied(self) -> collections.Counter[Key]:
        """The fixes that the round has made, by what they mend."""
        return _keys(self.change.mended, self.found)


def repair(task: Task, before: Checked | None = None) -> Repaired:
    """The files mended, in memory; a fix after which its finding is still there is taken back.

    So is one that has brought about an error or a warning, or what its rule warns of, that no other
    fix has mended: whether or not a setting leaves it out, or a comment suppresses it. `before` is
    a check of these files and others.
    """
    originals = Contents()
    checked, contents, useless = task.check(dict(task.given), before), dict(task.given), set[Key]()
    # those that have spoilt the program together: each is tried by itself when the rest is done
    suspects = set[Key]()
    done: list[_Round] = []
    rounds = settled = 0
    while True:
        change = _change(task, checked, contents, useless | suspects) if rounds < ROUNDS else None
        if change is not None and change.mended:
            rounds += 1
            originals = {**change.originals, **originals}
            if (begun := _begun(done, change.contents, originals)) is not None:
                circle = done[begun]
                checked, contents = circle.found, circle.contents
                useless |= circle.applied.keys()
                del done[begun:]
                settled = min(settled, begun)
                continue
            after = task.check(change.contents, checked)
            if left := judged(checked, change, after).left:
                useless |= _keys(left, checked).keys()
            else:
                done.append(_Round(checked, contents, change, after))
                checked, contents = after, change.contents
        elif spoilt := _spoilt(done[settled:], checked):
            at, wrong = spoilt
            (useless if len(wrong) == 1 else suspects).update(wrong)
            checked, contents = done[settled + at].found, done[settled + at].contents
            del done[settled + at :]
        elif suspects and change is not None:
            suspects.remove(min(suspects))
            settled = len(done)
        else:
            break
    applied = sum((each.applied for each in done), collections.Counter[Key]())
    changed_files = _differing(contents, task.given)
    codes = frozenset(code for _, code, *_ in applied)
    return Repaired(checked, changed_files, originals, applied.total(), codes)


def _change(task: Task, checked: Checked, contents: Contents, barred: Collection[Key]) -> Change:
    """What the fixes of a round make, but for those that are barred."""
    files = Files(checked.texts.text)
    found = with_fixes(checked.wanted(task.settings), files)
    chosen = [each for each in found if task.applies(each) and key_of(each, checked) not in barred]
    return changed(checked, contents, chosen, files)


def _begun(done: Sequence[_Round], contents: Contents, originals: Contents) -> int | None:
    """The round that began with these contents: what it and those after it have mended undoes
    itself.
    """
    now = _differing(contents, originals)
    return next(
        (at for at, each in enumerate(done) if _differing(each.contents, originals) == now), None
    )


def _differing(
    contents: Mapping[pathlib.Path, bytes], originals: Mapping[pathlib.Path, bytes]
) -> Contents:
    return {path: content for path, content in contents.items() if content != originals.get(path)}


def _spoilt(done: Sequence[_Round], now: Checked) -> tuple[int, set[Key]] | None:
    """The first round after which something was found that had not been, and still is; and which
    fixes are to blame: those whose rules warn of it, or else those in its files, or all of the
    round.
    """
    there = _keys(now.everywhere, now)
    for at, each in enumerate(done):
        verdict = judged(each.found, each.change, each.after)
        fresh = [found for found in verdict.fresh if key_of(found, each.after) in there]
        if fresh:
            return at, _blamed(each, fresh)
    return None


def _blamed(made: _Round, fresh: Sequence[Finding]) -> set[Key]:
    codes, files = {each.code for each in fresh}, {document.file_of(each.at.path) for each in fresh}
    warned = {key for key in made.applied if rules()[key[1]].spoilt_by & codes}
    return warned or {key for key in made.applied if key[0] in files} or set(made.applied)


def _keys(findings: Iterable[Finding], checked: Checked) -> collections.Counter[Key]:
    return collections.Counter(key_of(finding, checked) for finding in findings)


def _text(path: pathlib.Path, content: bytes) -> str:
    text = decode(str(path), content)
    assert isinstance(text, str), "only what can be decoded is mended"
    return text


def _lines(text: str) -> list[str]:
    return list(Layout.lines_of(text))
