"""The trial of fixes: they are made in a copy of the files, and what a check of the copy finds
judges them.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gradlint.checker import Checked
from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Finding, Severity
from gradlint.fix.attach import Files
from gradlint.fix.edits import joined, line_after
from gradlint.rule import rules
from gradlint.source import document

Contents = dict[pathlib.Path, bytes]
Key = tuple[str, str, str, str]
Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Change:
    """What fixes have made of files: `contents` are all that differ from the disk, `originals` what
    was mended.
    """

    contents: Contents
    originals: Contents
    mended: tuple[Finding, ...]
    edits: Mapping[str, Sequence[Edit]]  # by the path of the program


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check after a change found: which of the mended findings are still there, and which
    have come.
    """

    left: frozenset[Finding]
    fresh: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether all that was mended is gone, and nothing has come."""
        return not self.left and not self.fresh


def changed(
    checked: Checked, contents: Mapping[pathlib.Path, bytes], found: Iterable[Finding], files: Files
) -> Change:
    """The files after as many fixes of these findings as go together; `contents` are those that are
    not on disk.
    """
    by_path: dict[str, list[Finding]] = {}
    for finding in found:
        if finding.fix is not None:
            by_path.setdefault(finding.fix.edits[0].at.path, []).append(finding)
    here = {os.path.realpath(file) for file in checked.files}
    after, originals = dict(contents), Contents()
    mended: list[Finding] = []
    edits: dict[str, Sequence[Edit]] = {}
    for path, findings in sorted(by_path.items(), key=_from_below):
        file = files.file(path)
        assert file is not None, "only what parses is mended"
        text, kept = joined(file.layout, [finding.fix for finding in findings if finding.fix])
        place = pathlib.Path(document.file_of(path))
        content = after.get(place) or checked.texts.content(path)
        if os.path.realpath(place) not in here and any(each.at.path != path for each in findings):
            continue  # a caller that is not to be changed
        if isinstance(content, bytes) and (encoded := _encoded(path, text, content)):
            after[place] = encoded
            originals.setdefault(place, contents.get(place, content))
            mended += [finding for finding in findings if finding.fix in kept]
            edits[path] = [edit for fix in kept for edit in fix.edits]
    return Change(after, originals, tuple(mended), edits)


def _from_below(item: tuple[str, object]) -> tuple[str, int]:
    """Of the programs of one file, the lowest first: those above stay where they are."""
    file, row = document.parted(item[0])
    return file, -row


def _encoded(path: str, text: str, original: bytes) -> bytes:
    """The file with this program, encoded (with byte order mark) as the original; nothing where
    that cannot be.
    """
    try:
        return document.encode(path, text, original)
    except UnicodeError:
        return b""


def key_of(finding: Finding, checked: Checked) -> Key:
    """What stays of a finding when lines move: its code, its message without numbers, and the
    line's text.
    """
    lines = checked.texts.lines(finding.at.path)
    line = lines[finding.at.line - 1].strip() if finding.at.line <= len(lines) else ""
    return (
        document.file_of(finding.at.path),
        finding.code,
        re.sub(r"\d+", "", finding.message),
        line,
    )


@dataclass(frozen=True, slots=True)
class _Mark:
    """A finding by what stays of it through a change: its place, or its words and the text of its
    line.
    """

    finding: Finding
    place: Place
    key: Key

    @property
    def is_bad(self) -> bool:
        return self.finding.severity >= Severity.WARNING


def judged(before: Checked, change: Change, after: Checked) -> Verdict:
    """What the check `after` a change says of it, by all that was found: a setting or a comment
    changes no program.
    """
    mended = {replace(each, fix=None): each for each in change.mended}
    was = [_mark(each, before, change.edits) for each in before.everywhere]
    others = [each for each in was if replace(each.finding, fix=None) not in mended]
    come = _unknown([_mark(each, after, {}) for each in after.everywhere], others)
    gone = {
        mended[found]: each for each in was if (found := replace(each.finding, fix=None)) in mended
    }
    places, keys = {each.place for each in come}, {each.key for each in come}
    still = {
        finding: each for finding, each in gone.items() if each.place in places or each.key in keys
    }
    # what was not found before cannot be seen to go
    left = still.keys() | (set(change.mended) - gone.keys())
    told = {name for each in still.values() for name in (each.place, each.key)}
    warned = frozenset[str]().union(*(rules()[each.code].spoilt_by for each in change.mended))
    fresh = [each for each in come if each.is_bad or each.finding.code in warned]
    return Verdict(
        frozenset(left),
        tuple(each.finding for each in fresh if told.isdisjoint((each.place, each.key))),
    )


def _mark(finding: Finding, checked: Checked, edits: Mapping[str, Sequence[Edit]]) -> _Mark:
    """A finding, with its place after these edits."""
    at = finding.at
    line = line_after(at.line, at.column, edits.get(at.path, ()))
    return _Mark(finding, (at.path, finding.code, line), key_of(finding, checked))


def _unknown(found: Sequence[_Mark], known: Sequence[_Mark]) -> list[_Mark]:
    """Those that are none of the known ones, be it by place or by words, or have become worse."""
    found, known, at_place = _matched(found, known, _place)
    found, _, by_words = _matched(found, known, _key)
    return [*found, *at_place, *by_words]


def _matched(
    found: Sequence[_Mark], known: Sequence[_Mark], name: Callable[[_Mark], object]
) -> tuple[list[_Mark], list[_Mark], list[_Mark]]:
    """What is left on both sides when each has met one of its name, and what was not as bad
    before.
    """
    waiting: dict[object, list[_Mark]] = collections.defaultdict(list)
    for each in known:
        waiting[name(each)].append(each)
    unmatched: list[_Mark] = []
    worse: list[_Mark] = []
    for each in found:
        if not waiting[name(each)]:
            unmatched.append(each)
        elif not waiting[name(each)].pop().is_bad and each.is_bad:
            worse.append(each)
    return unmatched, [each for left in waiting.values() for each in left], worse


def _place(mark: _Mark) -> Place:
    return mark.place


def _key(mark: _Mark) -> Key:
    return mark.key
