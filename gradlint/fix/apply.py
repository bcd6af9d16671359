"""Mending a program: check, apply what fixes there are, and again until nothing more is found."""

from __future__ import annotations

import collections
import difflib
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
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
_Key = tuple[str, str, str, str]
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

    def check(self, contents: Mapping[pathlib.Path, bytes]) -> Checked:
        """What is wrong in the files, of which some have these contents."""
        return check(self.files, self.settings_for, jobs=self.jobs, given=contents, cache=self.cache)

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
    applied: collections.Counter[_Key]
    now: frozenset[tuple[_Key, _Place]]  # where what they mend stands after the round

    def left(self, after: Checked) -> set[_Key]:
        """What was to be mended and is still found: with the same words, or at the same place in others."""
        found = {(finding.at.path, finding.code, finding.at.line) for finding in after.findings}
        return (self.applied.keys() & _keys(after.findings, after).keys()) | {k for k, at in self.now if at in found}


def repair(task: Task) -> Repaired:
    """The files mended, in memory; a fix after which its finding is still there is taken back.

    So is one that has spoilt the program in a way that its rule warns of, and that no other fix has mended.
    """
    originals: _Contents = {}
    checked, contents, useless = task.check(dict(task.given)), dict(task.given), set[_Key]()
    done: list[tuple[Checked, _Contents, _Round]] = []  # what a round found, and what it made of it
    for _ in range(ROUNDS):
        made = _apply(task, checked, contents, useless)
        originals = {**made.originals, **originals}
        if not made.applied:
            spoilt = _spoilt([(found, each.applied) for found, _, each in done], checked)
            if spoilt is None:
                break
            at, wrong = spoilt
            useless |= wrong
            checked, contents, _ = done[at]
            del done[at:]
            continue
        after = task.check(made.contents)
        if left := made.left(after):
            useless |= left
            continue
        done.append((checked, contents, made))
        checked, contents = after, made.contents
    applied = sum((each.applied for *_, each in done), collections.Counter[_Key]())
    changed = {path: content for path, content in contents.items() if content != task.given.get(path)}
    return Repaired(checked, changed, originals, applied.total(), frozenset(code for _, code, *_ in applied))


def _spoilt(done: Sequence[tuple[Checked, collections.Counter[_Key]]], now: Checked) -> tuple[int, set[_Key]] | None:
    """The first round with fixes whose rules warn of what is found now and was not before; and which fixes."""
    for at, (found, applied) in enumerate(done):
        new = {code for _, code, *_ in _keys(now.findings, now).keys() - _keys(found.findings, found).keys()}
        wrong = {key for key in applied if rules()[key[1]].spoilt_by & new}
        if wrong:
            return at, wrong
    return None


def _apply(task: Task, checked: Checked, contents: _Contents, useless: set[_Key]) -> _Round:
    files = Files(checked.texts.text)
    found = with_fixes(checked.wanted(task.settings), files)
    by_path: dict[str, list[Finding]] = {}
    for finding in found:
        if task.applies(finding.fix) and _key(finding, checked) not in useless:
            by_path.setdefault(finding.at.path, []).append(finding)
    applied: collections.Counter[_Key] = collections.Counter()
    now: set[tuple[_Key, _Place]] = set()
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
            applied.update(_key(finding, checked) for finding in mended)
            now |= {
                (_key(each, checked), (path, each.code, line_after(each.at.line, each.at.column, edits)))
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
    except UnicodeEncodeError:
        return b""


def _keys(findings: Sequence[Finding], checked: Checked) -> collections.Counter[_Key]:
    return collections.Counter(_key(finding, checked) for finding in findings)


def _key(finding: Finding, checked: Checked) -> _Key:
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
