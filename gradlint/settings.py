"""The settings of a check, and which rules they select for which files."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from gradlint.dataclass import dataclass
from gradlint.errors import UserError
from gradlint.finding import Finding, Severity
from gradlint.ignore import Patterns

EVERY = "ALL"
Threshold = Severity | Literal["never"]
_INCLUDE = (".py", ".ipynb")
DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pytest_cache", ".pytype",
    ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pypackages__", "_build", "buck-out",
    "dist", "node_modules",
    "site-packages", "venv",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """What one place (a settings file, the command line) says of the codes; a code or its beginning
    each.
    """

    select: tuple[str, ...] | None = None
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def verdict(self, code: str) -> bool | None:
        """Whether this place wants `code`: the longest selector decides, ignoring wins; None where
        it says nothing.
        """
        wanted = _longest((*(self.select or ()), *self.extend), code)
        unwanted = _longest(self.ignore, code)
        if wanted == unwanted == -1:
            return None if self.select is None else False
        return wanted > unwanted


def _longest(selectors: Iterable[str], code: str) -> int:
    fitting = [
        0 if selector == EVERY else len(selector) for selector in selectors if _fits(selector, code)
    ]
    return max(fitting, default=-1)


def _fits(selector: str, code: str) -> bool:
    return selector == EVERY or code.startswith(selector)


@dataclass(frozen=True)
class Settings:
    """How to check the files below `root`."""

    root: pathlib.Path
    selections: tuple[Selection, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    extend_include: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    respect_gitignore: bool = True
    force_exclude: bool = False
    parts: bool = True
    exclude_parts: tuple[str, ...] = ()
    output_format: str = "text"
    min_severity: Severity = Severity.NOTE
    fail_on: Threshold = Severity.WARNING
    baseline: pathlib.Path | None = None
    required_version: str | None = None

    @functools.cached_property
    def exclusion(self) -> Patterns:
        return patterns((*self.exclude, *self.extend_exclude))

    def enters_parts(self, path: pathlib.Path) -> bool:
        """Whether what has no trainer in view is judged in the file at the absolute `path`."""
        return self.parts and not (
            bool(self.exclude_parts) and self._without_parts.leaves_out(self._relative(path))
        )

    @functools.cached_property
    def _without_parts(self) -> Patterns:
        return patterns(self.exclude_parts)

    def includes(self, folder: pathlib.Path, name: str) -> bool:
        """Whether the file of this name in the absolute `folder` is one to check where a folder
        is.
        """
        return name.endswith(_INCLUDE) or (
            bool(self.extend_include) and self._inclusion.leaves_out(self._relative(folder / name))
        )

    @functools.cached_property
    def _inclusion(self) -> Patterns:
        return patterns(self.extend_include)

    def names(self, code: str) -> bool:
        """Whether a selection speaks of the rule `code`, or of some rules that it is one of."""
        return any(each != EVERY and _fits(each, code) for each in self._selectors)

    def asks_for(self, code: str) -> bool:
        """Whether a selection has the rule `code`, by its code, its beginning or `ALL`; none is
        made by default.
        """
        return any(_fits(each, code) for each in self._selectors)

    @property
    def _selectors(self) -> Iterator[str]:
        return (
            each for place in self.selections for each in (*(place.select or ()), *place.extend)
        )

    def selects(self, code: str) -> bool:
        """Whether the rule `code` is on; the command line, which comes last, outweighs the file."""
        verdicts = (selection.verdict(code) for selection in reversed(self.selections))
        return next((verdict for verdict in verdicts if verdict is not None), True)

    def reports(self, code: str, path: pathlib.Path) -> bool:
        """Whether the rule `code` is on for the file at the absolute `path`."""
        if not self.selects(code):
            return False
        return not any(
            spec.leaves_out(self._relative(path))
            and any(_fits(selector, code) for selector in codes)
            for spec, codes in self._ignored_by_file
        )

    def fails(self, findings: Iterable[Finding]) -> bool:
        """Whether these findings are bad enough to fail."""
        return any(
            self.fail_on != "never" and finding.severity >= self.fail_on for finding in findings
        )

    def overridden(
        self,
        selection: Selection,
        exclude: Sequence[str],
        values: Mapping[str, Any],
        include: Sequence[str] = (),
    ) -> Settings:
        """These settings with what the command line says on top."""
        kept = () if selection.select is not None else self.selections
        return replace(
            self, selections=(*kept, selection), extend_exclude=(*self.extend_exclude, *exclude),
            extend_include=(*self.extend_include, *include), **values,
        )  # fmt: skip

    def _relative(self, path: pathlib.Path) -> str:
        return (
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name
        )

    @functools.cached_property
    def _ignored_by_file(self) -> tuple[tuple[Patterns, tuple[str, ...]], ...]:
        return tuple((patterns((glob,)), codes) for glob, codes in self.per_file_ignores.items())


def patterns(lines: Iterable[str]) -> Patterns:
    """What lines of a .gitignore match; a UserError where one is none."""
    try:
        return Patterns.of(lines)
    except ValueError as error:
        raise UserError(f"must hold patterns as in a .gitignore: {error}") from None
