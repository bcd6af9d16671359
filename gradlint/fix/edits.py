"""Edits on a text: which of several fixes go together, and what they make of it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Sequence

from gradlint.finding import Edit, Fix
from gradlint.fix.layout import Layout

_ENDS = re.compile(r"\r\n|\r|\n")


def edited(layout: Layout, edits: Iterable[Edit]) -> str:
    """The text after these edits, none of which may overlap another."""
    text, end = layout.text, len(layout.text)
    parts: list[str] = []
    for edit in sorted(edits, key=_place, reverse=True):
        first, last = layout.stretch(edit.at)
        parts += [text[last:end], edit.content]
        end = first
    return "".join(reversed([*parts, text[:end]]))


def line_after(line: int, column: int, edits: Iterable[Edit]) -> int:
    """The line on which something stands once these edits are made before it."""
    earlier = [edit for edit in dict.fromkeys(edits) if (edit.at.end_line, edit.at.end_column) <= (line, column)]
    return line + sum(len(_ENDS.findall(edit.content)) - (edit.at.end_line - edit.at.line) for edit in earlier)


def without_conflicts(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes, in order, that touch nothing that an earlier one touches; an edit that two share is no conflict."""
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
    return not any(_overlap(one, other) for index, one in enumerate(fix.edits) for other in fix.edits[:index])


def parses(text: str) -> bool:
    """Whether a text is a program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


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
