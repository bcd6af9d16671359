"""The whole check: find the files, read them, analyse them, and hold what is found against settings and comments."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gradlint import baseline, suppress
from gradlint.analysis import Progress, analyze
from gradlint.config import Settings
from gradlint.finding import Finding, Span
from gradlint.fingerprint import fingerprints
from gradlint.interpret.gaps import Gap
from gradlint.report import Outcome
from gradlint.rule import Report, rules
from gradlint.source.files import SettingsFor
from gradlint.source.parse import SyntaxFault, decode, parse, split_lines
from gradlint.source.screen import screen

SYNTAX_ERROR = "GL001"
UNUSED_SUPPRESSION = "GL002"


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of files, each read once; standard input is given, the rest is on disk."""

    given: Mapping[str, bytes]
    _read: dict[str, str | SyntaxFault] = field(default_factory=dict)
    _lines: dict[str, Sequence[str]] = field(default_factory=dict)

    def text(self, path: str) -> str | SyntaxFault:
        """The text of the file at `path`, or why there is none."""
        if path not in self._read:
            content = self.content(path)
            self._read[path] = decode(path, content) if isinstance(content, bytes) else content
        return self._read[path]

    def content(self, path: str) -> bytes | SyntaxFault:
        """The bytes of the file at `path`, or why there are none."""
        try:
            return self.given[path] if path in self.given else pathlib.Path(path).read_bytes()
        except OSError as error:
            return SyntaxFault(Span(path, 1, 1, 1, 1), f"the file cannot be read: {error.strerror}")

    def lines(self, path: str) -> Sequence[str]:
        """The lines of the file at `path`, for quoting."""
        if path not in self._lines:
            text = self.text(path)
            self._lines[path] = split_lines(text) if isinstance(text, str) else ()
        return self._lines[path]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found, where the analysis gave up, and the texts that both speak of."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    files: tuple[pathlib.Path, ...]
    texts: Texts

    def outcome(self, settings: Settings, *, color: bool = False) -> Outcome:
        """What a report tells of this check: the findings that are bad enough and not in the baseline."""
        found = tuple(finding for finding in self.findings if finding.severity >= settings.min_severity)
        if settings.baseline:
            names = fingerprints(found, self.texts.lines, settings.root)
            found = baseline.without(found, names, baseline.read(settings.baseline))
        return Outcome(found, len(self.files), self.texts.lines, settings.root, color)


def check(
    files: Sequence[pathlib.Path],
    settings_for: SettingsFor,
    *,
    given: Mapping[pathlib.Path, bytes],
    jobs: int = 1,
    cache: pathlib.Path | None = None,
    progress: Progress | None = None,
) -> Checked:
    """What is wrong in `files`; `given` holds the content of those that are not to be read from disk."""
    texts = Texts({str(path): content for path, content in given.items()})
    faults = [fault for path in files if (fault := _fault(texts, str(path)))]
    settings = _Settings(settings_for)
    broken = {fault.at.path for fault in faults}
    contents = {path: texts.content(path) for path in map(str, files) if path not in broken}
    analysis = analyze(
        [pathlib.Path(path) for path in screen({p: c for p, c in contents.items() if isinstance(c, bytes)})],
        select=lambda code: any(each.selects(code) for each in settings.of(files)),
        jobs=jobs,
        cache=cache,
        progress=progress,
        sources={path: text for path in given if isinstance(text := texts.text(str(path)), str)},
    )
    found = [*map(_syntax_error, faults), *analysis.findings]
    left = _unsuppressed(found, map(str, files), texts, settings)
    return Checked(tuple(sorted(left, key=lambda finding: finding.sort_key)), analysis.gaps, tuple(files), texts)


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings by file."""

    by_folder: SettingsFor

    def of(self, files: Iterable[pathlib.Path]) -> list[Settings]:
        folders = dict.fromkeys(file.absolute().parent for file in files)
        return list({id(each): each for each in (self.by_folder(folder) for folder in folders)}.values())

    def reports(self, code: str, path: str) -> bool:
        file = pathlib.Path(path).absolute()
        return self.by_folder(file.parent).reports(code, file)


def _fault(texts: Texts, path: str) -> SyntaxFault | None:
    text = texts.text(path)
    parsed = parse(path, text) if isinstance(text, str) else text
    return parsed if isinstance(parsed, SyntaxFault) else None


def _syntax_error(fault: SyntaxFault) -> Finding:
    return rules()[SYNTAX_ERROR].finding(Report(fault.at, fault.message))


def _unsuppressed(
    findings: Iterable[Finding], files: Iterable[str], texts: Texts, settings: _Settings
) -> list[Finding]:
    checked = set(files)
    by_file: dict[str, list[Finding]] = {path: [] for path in checked}
    for finding in findings:
        if settings.reports(finding.code, finding.at.path):
            by_file.setdefault(finding.at.path, []).append(finding)
    left = list(
        itertools.chain.from_iterable(_of_file(path, found, texts, settings) for path, found in by_file.items())
    )
    # A file that is only imported is not wholly entered: that a comment in it suppresses nothing is not known.
    return [finding for finding in left if finding.code != UNUSED_SUPPRESSION or finding.at.path in checked]


def _of_file(path: str, findings: list[Finding], texts: Texts, settings: _Settings) -> list[Finding]:
    text = texts.text(path)
    if not isinstance(text, str):
        return findings
    return suppress.apply(path, text, findings, lambda code: settings.reports(code, path))
