"""One check of one open document, with the unsaved text of all of them."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pygls import uris

from gradlint import checker, config
from gradlint.checker import Checked
from gradlint.finding import Applicability, Finding
from gradlint.fix.attach import Files, with_fixes
from gradlint.fix.offers import Trials
from gradlint.report._place import shown_path
from gradlint.settings import Settings
from gradlint.source.files import discover
from gradlint.source.parse import encoding_of

Override = Callable[[Settings], Settings]
_UNTITLED = "untitled:"
_SELECTION = ("select", "extend-select", "ignore", "extend-exclude")


@dataclass(frozen=True, slots=True)
class Held:
    """What trials of fixes have shown: of those that were tried, which hold, and which safe ones do
    all at once.
    """

    tried: frozenset[Finding] = frozenset()
    alone: frozenset[Finding] = frozenset()
    together: frozenset[Finding] = frozenset()

    def __or__(self, other: Held) -> Held:
        """What two trials have shown: a fix that fails in one of them does not hold."""
        failed = (self.tried - self.alone) | (other.tried - other.alone)
        apart = (self.tried - self.together) | (other.tried - other.together)
        alone, together = (
            (self.alone | other.alone) - failed,
            (self.together | other.together) - apart,
        )
        return Held(self.tried | other.tried, alone, together)


@dataclass(frozen=True, slots=True)
class View:
    """What was found in a document when it had this version, and in the files that it imports."""

    version: int | None
    findings: tuple[Finding, ...]
    checked: Checked
    settings: Settings
    files: Files
    held: Held | None = None  # None where no fix was tried yet

    def speaks_of(self, path: str) -> bool:
        """Whether something was found in the file at `path`."""
        return any(finding.at.path == path for finding in self.findings)


def name(uri: str) -> str | None:
    """The path by which a check calls a document: from the working folder where it lies below; None
    for no file.
    """
    if uri.startswith(_UNTITLED):
        return f"{uri.removeprefix(_UNTITLED).replace('/', '-')}.py"
    path = uris.to_fs_path(uri)
    return None if path is None else shown_path(str(pathlib.Path(path).resolve()))


def override(options: Mapping[str, Any]) -> Override:
    """What the editor's settings, which have the keys of `[tool.gradlint]`, change in those of a
    project.
    """
    given = config.read(options, pathlib.Path("initializationOptions"))
    values = {
        key.replace("-", "_"): getattr(given, key.replace("-", "_"))
        for key in options
        if key not in _SELECTION
    }
    values["force_exclude"] = True  # an editor names each file that it opens
    return lambda settings: settings.overridden(given.selections[0], given.extend_exclude, values)


def examine(path: str, version: int | None, texts: Mapping[str, str], outweigh: Override) -> View:
    """Check the document at `path`; `texts` holds what stands in the editor, by path."""
    settings_for = config.settings_finder(outweigh)
    files = discover([pathlib.Path(path)], settings_for).files
    given = {pathlib.Path(each): encoded(text) for each, text in texts.items()}
    checked = checker.check(files, settings_for, given=given)
    settings = settings_for(pathlib.Path(path).absolute().parent)
    # What a comment suppresses may be found from a file that is not open: whether it is unused,
    # `gradlint check` knows.
    shown = checked.outcome(settings, findings=checked.shown(settings)).findings
    found = [each for each in shown if each.code != checker.UNUSED_SUPPRESSION]
    parsed = Files(checked.texts.text)
    if found:
        parsed.file(path)  # here, so that who looks at a place need not wait for it
    return View(version, tuple(found), checked, settings, parsed)


def tried(view: View) -> View:
    """The view once its fixes were tried."""
    trials = Trials(view.checked, view.files)
    found = frozenset(
        each for each in with_fixes(view.findings, view.files) if each.fix is not None
    )
    alone = trials.holding(found)
    together = trials.together(each for each in alone if is_safe(each))
    return replace(view, held=Held(found, alone, frozenset(together)))


def is_safe(finding: Finding) -> bool:
    """Whether a finding has a safe fix."""
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def encoded(text: str) -> bytes:
    """The text as a file would hold it: in the encoding that its first lines declare."""
    content = text.encode("utf-8", "replace")
    try:
        return text.encode(encoding_of(content), "replace")
    except (SyntaxError, UnicodeError):
        return content
