"""How reports name a place and count what they tell."""

from __future__ import annotations

import collections
import itertools
import os
import pathlib
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from gradlint.finding import Severity, Span

if TYPE_CHECKING:
    from gradlint.coverage import Coverage
    from gradlint.report import Outcome

_MOST_MISSED = 3

# What moves the cursor, ends a line or turns the direction of text, and what XML cannot hold.
_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def shown_path(path: str) -> str:
    """`path` as one types it here: relative where it lies below the working folder."""
    file, here = pathlib.Path(os.path.normpath(path)), pathlib.Path.cwd()
    if file.is_relative_to(here):
        return str(file.relative_to(here))
    return path if file.is_absolute() else str(file)


def printable(text: str) -> str:
    """`text` with control characters shown, so that no program can write to the terminal through
    its report.
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def in_cell(at: Span) -> str:
    """`cell 3, line 5: ` where a place is in a cell: for formats that know no cells."""
    return f"cell {at.cell}, line {at.line}: " if at.cell else ""


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Collection[str], most: int) -> str:
    """`a, b and 3 more`: `most` of the names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(itertools.islice(names, most)) + more


def ending(outcome: Outcome) -> Sequence[str]:
    """The lines behind the findings: the summary, but for those who want nothing but findings."""
    return () if outcome.quiet else (summary(outcome),)


def summary(outcome: Outcome) -> str:
    """One line: how much was found, in how many files, what of them was run and which training
    steps were not.
    """
    by_severity = collections.Counter(finding.severity for finding in outcome.findings)
    files, missed = (
        f"{count(outcome.files, 'file')}{_run(outcome.coverage)}",
        _missed(outcome.unreached),
    )
    if not by_severity:
        return f"Nothing found in {files}{missed}."
    kinds = [
        count(by_severity[kind], kind.label)
        for kind in sorted(Severity, reverse=True)
        if by_severity[kind]
    ]
    text = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return f"Found {text} in {files}{missed}."


def _run(coverage: Coverage) -> str:
    """` (3 training steps, 1 part)`: what was run of the files, if anything was."""
    counts = ((coverage.reached, "training step"), (coverage.entered, "part"))
    told = ", ".join(count(number, noun) for number, noun in counts if number)
    return f" ({told})" if told else ""


def _missed(unreached: Sequence[Span]) -> str:
    """`; 1 training step was not reached (train.py:210)`: the calls of `backward` to which no path
    came.
    """
    if not unreached:
        return ""
    were = "was" if len(unreached) == 1 else "were"
    places = [f"{printable(shown_path(at.path))}:{at.place.rpartition(':')[0]}" for at in unreached]
    return (
        f"; {count(len(unreached), 'training step')} {were} not reached "
        f"({listed(places, _MOST_MISSED)})"
    )
