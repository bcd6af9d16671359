"""One check of one open document, with the unsaved text of all of them."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pygls import uris

from gradlint import checker, config
from gradlint.checker import Checked
from gradlint.config import Settings
from gradlint.finding import Finding
from gradlint.fix.attach import Files
from gradlint.fix.offers import taken_back
from gradlint.report._place import shown_path
from gradlint.source.files import discover
from gradlint.source.parse import encoding_of

Override = Callable[[Settings], Settings]
_UNTITLED = "untitled:"
_SELECTION = ("select", "extend-select", "ignore", "extend-exclude")


@dataclass(frozen=True, slots=True)
class View:
    """What was found in a document when it had this version, and in the files that it imports."""

    version: int | None
    findings: tuple[Finding, ...]
    checked: Checked
    settings: Settings
    files: Files
    refused: frozenset[Finding] | None = None  # whose fixes are not kept; None where that was not tried

    def speaks_of(self, path: str) -> bool:
        """Whether something was found in the file at `path`."""
        return any(finding.at.path == path for finding in self.findings)


def name(uri: str) -> str | None:
    """The path by which a check calls a document: from the working folder where it lies below; None for no file."""
    if uri.startswith(_UNTITLED):
        return f"{uri.removeprefix(_UNTITLED).replace('/', '-')}.py"
    path = uris.to_fs_path(uri)
    return None if path is None else shown_path(str(pathlib.Path(path).resolve()))


def override(options: Mapping[str, Any]) -> Override:
    """What the editor's settings, which have the keys of `[tool.gradlint]`, change in those of a project."""
    given = config.read(options, pathlib.Path("initializationOptions"))
    values = {key.replace("-", "_"): getattr(given, key.replace("-", "_")) for key in options if key not in _SELECTION}
    values["force_exclude"] = True  # an editor names each file that it opens
    return lambda settings: settings.overridden(given.selections[0], given.extend_exclude, values)


def examine(path: str, version: int | None, texts: Mapping[str, str], outweigh: Override) -> View:
    """Check the document at `path`; `texts` holds what stands in the editor, by path."""
    settings_for = config.settings_finder(outweigh)
    files = discover([pathlib.Path(path)], settings_for).files
    given = {pathlib.Path(each): encoded(text) for each, text in texts.items()}
    checked = checker.check(files, settings_for, given=given)
    settings = settings_for(pathlib.Path(path).absolute().parent)
    # What a comment suppresses may be found from a file that is not open: whether it is unused, `gradlint check` knows.
    found = [each for each in checked.outcome(settings).findings if each.code != checker.UNUSED_SUPPRESSION]
    parsed = Files(checked.texts.text)
    if found:
        parsed.file(path)  # here, so that who looks at a place need not wait for it
    return View(version, tuple(found), checked, settings, parsed)


def tried(view: View) -> View:
    """The view once those of its fixes were tried that can spoil the program."""
    return replace(view, refused=taken_back(view.checked, view.settings))


def encoded(text: str) -> bytes:
    """The text as a file would hold it: in the encoding that its first lines declare."""
    content = text.encode("utf-8", "replace")
    try:
        return text.encode(encoding_of(content), "replace")
    except (SyntaxError, UnicodeError):
        return content
