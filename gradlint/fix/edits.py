"""Edits on a text: which of several fixes go together, and what they make of it."""

from __future__ import annotations

import bisect
import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Edit, Fix
from gradlint.fix.layout import Layout, first_line, last_line
from gradlint.source.comments import comments
from gradlint.source.parse import is_of_this_python, parses

_ENDS = re.compile(r"\r\n|\r|\n")


def edited(layout: Layout, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> str:
    """The text, or the part between two offsets, after these edits, none of which may overlap
    another.
    """
    text, end = layout.text, len(layout.text) if end is None else end
    parts: list[str] = []
    for edit in sorted(edits, key=_place, reverse=True):
        first, last = layout.stretch(edit.at)
        parts += [text[last:end], edit.content]
        end = first
    return "".join(reversed([*parts, text[start:end]]))


def line_after(line: int, column: int, edits: Iterable[Edit]) -> int:
    """The line on which something stands once these edits are made before it."""
    earlier = [
        edit
        for edit in dict.fromkeys(edits)
        if (edit.at.end_line, edit.at.end_column) <= (line, column)
    ]
    return line + sum(
        len(_ENDS.findall(edit.content)) - (edit.at.end_line - edit.at.line) for edit in earlier
    )


def without_conflicts(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes, in order, that touch nothing that an earlier one touches; an edit that two share
    is no conflict.
    """
    kept: list[Fix] = []
    taken: list[Edit] = []
    for fix in fixes:
        fresh = [edit for edit in fix.edits if edit not in taken]
        if not any(_meet(edit, other) for edit in fresh for other in taken) and fresh:
            kept.append(fix)
            taken += fresh
    return kept


def is_consistent(fix: Fix) -> bool:
    """Whether no edit of a fix overlaps another of it."""
    return not any(
        _overlap(one, other) for index, one in enumerate(fix.edits) for other in fix.edits[:index]
    )


def leaves_a_program(layout: Layout, edits: Sequence[Edit]) -> bool:
    """Whether the text is a program after these edits. Only the statements of the module that they
    touch are parsed again, where that is enough.
    """
    return all(map(_is_whole, _touched(layout, edits))) or parses(edited(layout, edits))


def drops_a_comment(layout: Layout, edits: Sequence[Edit]) -> bool:
    """Whether a comment of the text is gone after these edits; one that stands elsewhere then is
    not.
    """
    stretches = [layout.stretch(edit.at) for edit in edits]
    if not any("#" in layout.text[start:end] for start, end in stretches):
        return False
    return not _comments(layout.text) <= _comments(edited(layout, edits))


def _comments(text: str) -> collections.Counter[str]:
    """The comments of a program, each as often as it stands there."""
    return collections.Counter(comment.text.rstrip() for comment in comments(text))


def _touched(layout: Layout, edits: Sequence[Edit]) -> Iterator[str]:
    """The stretches of whole statements of the module that are touched, as they are after the
    edits.
    """
    body = layout.tree.body
    begun = [
        first_line(each)
        for before, each in itertools.pairwise(body)
        if last_line(before) < first_line(each)
    ]
    bounds = [1, *begun, len(layout.lines) + 1]
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=_place):
        first = bounds[bisect.bisect_right(bounds, edit.at.line) - 1]
        last = bounds[min(bisect.bisect_right(bounds, edit.at.end_line), len(bounds) - 1)]
        if groups and first < groups[-1][1]:
            before, end, known = groups.pop()
            groups.append((before, max(end, last), [*known, edit]))
        else:
            groups.append((first, last, [edit]))
    for first, last, inside in groups:
        yield edited(layout, inside, layout.starts[first - 1], layout.starts[last - 1])


def _is_whole(text: str) -> bool:
    """Whether a stretch is made of statements, whatever stands behind it."""
    return not text or (text[-1] in "\r\n" and is_of_this_python(text))


def joined(layout: Layout, fixes: Sequence[Fix]) -> tuple[str, list[Fix]]:
    """What as many of these fixes as go together make of a text, and which they are; it parses."""
    kept = without_conflicts(fixes)
    text = edited(layout, _all(kept))
    if parses(text):
        return text, kept
    held: list[Fix] = []
    for fix in kept:
        if parses(edited(layout, _all([*held, fix]))):
            held.append(fix)
    return edited(layout, _all(held)), held


def _all(fixes: Sequence[Fix]) -> list[Edit]:
    return list(dict.fromkeys(edit for fix in fixes for edit in fix.edits))


def _place(edit: Edit) -> tuple[int, int, int, int]:
    return edit.at.line, edit.at.column, edit.at.end_line, edit.at.end_column


def _meet(one: Edit, other: Edit) -> bool:
    """Whether two edits overlap or insert at one place, where their order would matter."""
    return _overlap(one, other) or _place(one)[:2] == _place(other)[:2]


def _overlap(one: Edit, other: Edit) -> bool:
    first, second = sorted((_place(one), _place(other)))
    return first[2:] > second[:2]
