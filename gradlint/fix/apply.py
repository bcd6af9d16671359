"""Mending a program: check, apply what fixes there are, and again until nothing more is found."""

from __future__ import annotations

import collections
import difflib
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from gradlint.checker import Checked, check
from gradlint.config import Settings
from gradlint.dataclass import dataclass
from gradlint.finding import Applicability, Finding, Fix
from gradlint.fix.attach import Files, with_fixes
from gradlint.fix.edits import joined, line_after
from gradlint.fix.layout import Layout
from gradlint.report._place import printable
from gradlint.rule import rules
from gradlint.source import document
from gradlint.source.files import SettingsFor
from gradlint.source.parse import decode

ROUNDS = 8

_Contents = dict[pathlib.Path, bytes]
Key = tuple[str, str, str, str]
_Place = tuple[str, str, int]


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
    only: Collection[str] | None = None  # the codes of what is mended

    def check(self, contents: Mapping[pathlib.Path, bytes], before: Checked | None = None) -> Checked:
        """What is wrong in the files, of which some have these contents."""
        return check(
            self.files, self.settings_for, jobs=self.jobs, given=contents, cache=self.cache, before=before, judging=True
        )

    def mends(self, finding: Finding) -> bool:
        return self.only is None or finding.code in self.only

    def applies(self, fix: Fix | None) -> bool:
        return fix is not None and (self.unsafe or fix.applicability is Applicability.SAFE)


@dataclass(frozen=True, slots=True)
class Repaired:
    """What mending came to: the last check, the new contents, the old ones, and which fixes were applied, how often."""

    checked: Checked
    contents: Mapping[pathlib.Path, bytes]
    originals: Mapping[pathlib.Path, bytes]
    fixed: int
    codes: frozenset[str] = frozenset()
    taken_back: frozenset[Key] = frozenset()  # what was tried to be mended, and left as it is

    def diff(self) -> Iterator[str]:
        """The changes, as a patch."""
        for path in sorted(self.contents):
            old, new = (_text(path, content) for content in (self.originals[path], self.contents[path]))
            name = printable(str(path))
            for line in difflib.unified_diff(_lines(old), _lines(new), name, name):
                yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class _Round:
    """The contents after a round, and the fixes that it applied, by what they mend."""

    contents: _Contents
    originals: _Contents  # of the files that it has mended, as they were read
    applied: collections.Counter[Key]
    now: frozenset[tuple[Key, _Place]]  # where what they mend stands after the round

    def left(self, after: Checked) -> set[Key]:
        """What was to be mended and is still found: with the same words, or at the same place in others."""
        found = {(finding.at.path, finding.code, finding.at.line) for finding in after.findings}
        return (self.applied.keys() & _keys(after.findings, after).keys()) | {k for k, at in self.now if at in found}


def repair(task: Task, before: Checked | None = None) -> Repaired:
    """The files mended, in memory; a fix after which its finding is still there is taken back.

    So is one that has spoilt the program in a way that its rule warns of, and that no other fix has mended: whether or
    not a setting leaves it out, or a comment suppresses it. `before` is a check of these files and others.
    """
    originals: _Contents = {}
    checked, contents, useless = task.check(dict(task.given), before), dict(task.given), set[Key]()
    suspects = set[Key]()  # those that have spoilt the program together: each is tried by itself when the rest is done
    done: list[tuple[Checked, _Contents, _Round]] = []  # what a round found, and what it made of it
    rounds = settled = 0
    while True:
        made = _apply(task, checked, contents, useless | suspects) if rounds < ROUNDS else None
        if made is not None and made.applied:
            rounds += 1
            originals = {**made.originals, **originals}
            if (begun := _begun(done, made.contents, originals)) is not None:
                checked, contents, circle = done[begun]
                useless |= circle.applied.keys()
                del done[begun:]
                settled = min(settled, begun)
                continue
            after = task.check(made.contents, checked)
            if left := made.left(after):
                useless |= left
            else:
                done.append((checked, contents, made))
                checked, contents = after, made.contents
        elif spoilt := _spoilt(done[settled:], checked):
            at, wrong = spoilt
            (useless if len(wrong) == 1 else suspects).update(wrong)
            checked, contents, _ = done[settled + at]
            del done[settled + at :]
        elif suspects and made is not None:
            suspects.remove(min(suspects))
            settled = len(done)
        else:
            break
    applied = sum((each.applied for *_, each in done), collections.Counter[Key]())
    changed = _changed(contents, task.given)
    codes = frozenset(code for _, code, *_ in applied)
    return Repaired(checked, changed, originals, applied.total(), codes, frozenset(useless | suspects))


def _begun(done: Sequence[tuple[Checked, _Contents, _Round]], contents: _Contents, originals: _Contents) -> int | None:
    """The round that began with these contents: what it and those after it have mended undoes itself."""
    changed = _changed(contents, originals)
    return next((at for at, (_, before, _) in enumerate(done) if _changed(before, originals) == changed), None)


def _changed(contents: Mapping[pathlib.Path, bytes], originals: Mapping[pathlib.Path, bytes]) -> _Contents:
    return {path: content for path, content in contents.items() if content != originals.get(path)}


def _spoilt(done: Sequence[tuple[Checked, _Contents, _Round]], now: Checked) -> tuple[int, set[Key]] | None:
    """The first round with fixes whose rules warn of what is found now and was not before; and which fixes."""
    for at, (found, _, made) in enumerate(done):
        new = {code for _, code, *_ in _keys(now.everywhere, now).keys() - _keys(found.everywhere, found).keys()}
        wrong = {key for key in made.applied if rules()[key[1]].spoilt_by & new}
        if wrong:
            return at, wrong
    return None


def _apply(task: Task, checked: Checked, contents: _Contents, barred: Collection[Key]) -> _Round:
    files = Files(checked.texts.text)
    found = with_fixes(filter(task.mends, checked.wanted(task.settings)), files)
    by_path: dict[str, list[Finding]] = {}
    for finding in found:
        if task.applies(finding.fix) and key_of(finding, checked) not in barred:
            by_path.setdefault(finding.at.path, []).append(finding)
    applied: collections.Counter[Key] = collections.Counter()
    now: set[tuple[Key, _Place]] = set()
    after: _Contents = dict(contents)
    originals: _Contents = {}
    for path, findings in sorted(by_path.items(), key=_from_below):
        file = files.file(path)
        assert file is not None, "only what parses is mended"
        text, kept = joined(file.layout, [finding.fix for finding in findings if finding.fix])
        place = pathlib.Path(document.file_of(path))
        content = after.get(place) or checked.texts.content(path)
        if isinstance(content, bytes) and (encoded := _encoded(path, text, content)):
            after[place] = encoded
            originals.setdefault(place, contents.get(place, content))
            mended = [finding for finding in findings if finding.fix in kept]
            edits = [edit for fix in kept for edit in fix.edits]
            applied.update(key_of(finding, checked) for finding in mended)
            now |= {
                (key_of(each, checked), (path, each.code, line_after(each.at.line, each.at.column, edits)))
                for each in mended
            }
    return _Round(after, originals, applied, frozenset(now))


def _from_below(item: tuple[str, object]) -> tuple[str, int]:
    """Of the programs of one file, the lowest first: those above stay where they are."""
    file, row = document.parted(item[0])
    return file, -row


def _encoded(path: str, text: str, original: bytes) -> bytes:
    """The file with this program, encoded (with byte order mark) as the original; nothing where that cannot be."""
    try:
        return document.encode(path, text, original)
    except UnicodeError:
        return b""


def _keys(findings: Sequence[Finding], checked: Checked) -> collections.Counter[Key]:
    return collections.Counter(key_of(finding, checked) for finding in findings)


def key_of(finding: Finding, checked: Checked) -> Key:
    """What stays of a finding when lines move: its code, its message without numbers, and the line's text."""
    lines = checked.texts.lines(finding.at.path)
    line = lines[finding.at.line - 1].strip() if finding.at.line <= len(lines) else ""
    return document.file_of(finding.at.path), finding.code, re.sub(r"\d+", "", finding.message), line


def _text(path: pathlib.Path, content: bytes) -> str:
    text = decode(str(path), content)
    assert isinstance(text, str), "only what can be decoded is mended"
    return text


def _lines(text: str) -> list[str]:
    return list(Layout.lines_of(text))
