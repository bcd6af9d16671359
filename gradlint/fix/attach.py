"""The fixes of findings, as their rules make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace

from gradlint.dataclass import dataclass
from gradlint.finding import Applicability, Finding, Fix
from gradlint.fix.edits import drops_a_comment, edited, is_consistent, leaves_a_program
from gradlint.fix.layout import Layout
from gradlint.fix.source import File
from gradlint.rule import NoFixError, rules
from gradlint.source import document
from gradlint.source.parse import Source, parse


@dataclass(frozen=True)
class Files:
    """The files of findings, each parsed once, and their fixes; `text` gives the text of a path, if
    it has one.
    """

    text: Callable[[str], object]
    _files: dict[str, File | None] = field(default_factory=dict)
    _fixes: dict[Finding, Fix | None] = field(default_factory=dict)

    def file(self, path: str) -> File | None:
        """The file at `path`; None for one that does not parse."""
        if path not in self._files:
            text = self.text(path)
            parsed = parse(path, text) if isinstance(text, str) else None
            self._files[path] = (
                File(path, Layout(parsed.text, parsed.tree), self.file)
                if isinstance(parsed, Source)
                else None
            )
        return self._files[path]

    def fix(self, finding: Finding) -> Fix | None:
        """How a finding is mended, by its rule or as it says itself; made once. A safe fix keeps
        each comment.
        """
        if finding not in self._fixes:
            self._fixes[finding] = _fix(finding, self)
        return self._fixes[finding]


def with_fixes(findings: Iterable[Finding], files: Files) -> tuple[Finding, ...]:
    """The findings, each with its fix if there is one."""
    return tuple(replace(finding, fix=files.fix(finding)) for finding in findings)


def _fix(finding: Finding, files: Files) -> Fix | None:
    mend = rules()[finding.code].fix
    file = files.file(finding.at.path) if mend or finding.fix else None
    if file is None:
        return None
    try:
        fix = finding.fix if mend is None else mend(finding, file)
    except NoFixError:
        return None
    mended = files.file(fix.edits[0].at.path) if fix is not None and fix.edits else None
    if fix is None or mended is None or not _is_sound(fix, mended):
        return None
    is_safe = fix.applicability is Applicability.SAFE
    is_unsafe = is_safe and drops_a_comment(mended.layout, fix.edits)
    return replace(fix, applicability=Applicability.UNSAFE) if is_unsafe else fix


def _is_sound(fix: Fix, file: File) -> bool:
    """Whether the edits of a fix go together, change something, and leave a program."""
    if not is_consistent(fix) or any(edit.at.path != file.path for edit in fix.edits):
        return False
    if not leaves_a_program(file.layout, fix.edits):
        return False
    text = edited(file.layout, fix.edits)
    return text != file.layout.text and document.can_take(file.path, file.layout.text, text)
