"""Reports: one file of this folder is one format, and being here is being offered."""

from __future__ import annotations

import functools
import importlib
import pathlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import field
from types import ModuleType

from gradlint.coverage import Coverage
from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Finding, Fix, Span


def _as_it_is(at: Span) -> Span:
    return at


def _its_edits(fix: Fix) -> tuple[Edit, ...]:
    return fix.edits


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a report tells: the findings, how many files were checked, the lines to quote, the
    project's root.
    """

    findings: tuple[Finding, ...]
    files: int
    lines: Callable[[Span], Sequence[str]]
    root: pathlib.Path = field(default_factory=pathlib.Path.cwd)
    color: bool = False
    # where a place is in the bytes of its file, for what knows no cells
    raw: Callable[[Span], Span] = _as_it_is
    raw_edits: Callable[[Fix], tuple[Edit, ...]] = _its_edits  # the edits of a fix there
    # the calls of `backward` to which no path came: nothing is known of them
    unreached: tuple[Span, ...] = ()
    coverage: Coverage = Coverage()
    quiet: bool = False  # nothing but the findings


@functools.cache
def formats() -> tuple[str, ...]:
    """The formats that there are, by name."""
    return tuple(
        sorted(
            module.name
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        )
    )


def render(name: str, outcome: Outcome) -> str:
    """The report in the format `name`, with an end of line."""
    text: str = _format(name).render(outcome)
    return text


def shows_fixes(name: str) -> bool:
    """Whether the format `name` tells how to mend what it reports: a format without `SHOWS_FIXES`
    does not.
    """
    return getattr(_format(name), "SHOWS_FIXES", False)


def _format(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
