"""The whole check: find the files, read them, analyse them, and hold what is found against settings
and comments.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from gradlint import baseline, suppress
from gradlint.analysis import Progress, analyze
from gradlint.cache import Cache
from gradlint.coverage import Coverage
from gradlint.dataclass import dataclass
from gradlint.digests import digest_of_text
from gradlint.finding import Finding, Severity
from gradlint.fingerprint import fingerprints
from gradlint.holding import reaching
from gradlint.interpret.gaps import Gap
from gradlint.parallel import Shard
from gradlint.report import Outcome
from gradlint.rule import Report, rules
from gradlint.settings import Settings
from gradlint.source import document
from gradlint.source.files import SettingsFor, discover, real_paths
from gradlint.source.parse import SyntaxFault
from gradlint.source.screen import Gist, gist, module_name, screen
from gradlint.texts import Texts, content_in

SYNTAX_ERROR = "GL001"
UNUSED_SUPPRESSION = "GL002"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found, where the analysis gave up, and the texts that both speak of."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    files: tuple[pathlib.Path, ...]
    texts: Texts
    everywhere: tuple[Finding, ...]  # what was found before settings and comments left some out
    settings_for: SettingsFor
    codes: frozenset[str]  # of the rules that were asked
    kept: Cache
    unreached: tuple[Gap, ...] = ()  # the calls of `backward` to which no path came
    coverage: Coverage = Coverage()
    before: frozenset[str] = frozenset()  # the fingerprints of what is not new

    def reaching(self, files: Iterable[str]) -> tuple[pathlib.Path, ...]:
        """Those of the checked files that are one of these or import one, by any way; all, where
        that was not kept.
        """
        if not self.kept.records:
            return self.files
        found = reaching(
            {program for file in files for program in self._programs(document.file_of(file))},
            self.kept.records,
        )
        return tuple(file for file in self.files if not found.isdisjoint(self._programs(str(file))))

    def _programs(self, file: str) -> set[pathlib.Path]:
        # links may go round
        return {pathlib.Path(os.path.realpath(program)) for program in self.texts.programs(file)}

    def wanted(self, settings: Settings) -> tuple[Finding, ...]:
        """The findings that are bad enough, not in the baseline and new."""
        found = {
            self.texts.in_files(each): each
            for each in self.findings
            if each.severity >= settings.min_severity
        }
        if not settings.baseline and not self.before:
            return tuple(found.values())
        names = fingerprints(found, self.texts.quoted, settings.root)
        known = {*self.before, *(baseline.read(settings.baseline) if settings.baseline else ())}
        return tuple(found[told] for told in baseline.without(tuple(found), names, known))

    def shown(self, settings: Settings) -> tuple[Finding, ...]:
        """Those that are wanted, but for what people are told only where they select it."""
        known, noted = (
            rules(),
            {each.code for each in self.findings if each.severity is Severity.NOTE},
        )
        hidden = {
            code
            for code in noted & known.keys()
            if known[code].is_quiet and not settings.asks_for(code)
        }
        return tuple(finding for finding in self.wanted(settings) if finding.code not in hidden)

    def outcome(
        self,
        settings: Settings,
        *,
        color: bool = False,
        quiet: bool = False,
        findings: Iterable[Finding] | None = None,
    ) -> Outcome:
        """What a report tells of this check: of these findings, or of all that are wanted."""
        wanted = self.wanted(settings) if findings is None else findings
        reported = map(self.texts.in_files, wanted)
        ordered = tuple(sorted(reported, key=lambda finding: finding.sort_key))
        texts = self.texts
        return Outcome(
            ordered,
            len(self.files),
            texts.quoted,
            settings.root,
            color,
            texts.raw,
            texts.raw_edits,
            tuple(texts.located(gap.at) for gap in self.unreached),
            self.coverage,
            quiet,
        )


def check(
    files: Sequence[pathlib.Path],
    settings_for: SettingsFor,
    *,
    given: Mapping[pathlib.Path, bytes],
    jobs: int = 1,
    cache: pathlib.Path | None = None,
    progress: Progress | None = None,
    before: Checked | None = None,
    judging: bool = False,
    keeps: bool = True,
    shard: Shard | None = None,
) -> Checked:
    """What is wrong in `files`; `given` holds the content of those that are not to be read from
    disk.

    Without a `cache`, what has not changed since the check `before` of these files is taken from
    there. Where it is for `judging` fixes, rules that are not selected are asked, too, if they tell
    what the fixes of others can spoil. `keeps`: another check will come after it, or another run.
    `shard`: the part of the work that is done here.
    """
    texts = Texts({str(path): content for path, content in given.items()})
    digests = _digests(files, texts)
    programs = list(digests)
    sources = _given_texts(programs, texts)
    settings = _Settings(settings_for)
    asked = settings.asked(files, judging=judging)
    real = dict(zip(programs, real_paths(map(pathlib.Path, programs)), strict=True))
    contents = {real[path]: content for path, content in digests.items() if content}
    texts_given = {path.resolve(): text for path, text in sources.items()}
    contents |= {path: digest_of_text(text) for path, text in texts_given.items()}
    apart = [path for path in programs if not settings.enters_parts(path)]
    kept = Cache()
    if cache is not None:
        chosen = [code for code in rules() if code in asked]
        kept = Cache.read(cache, chosen, real.values(), contents, [real[path] for path in apart])
    elif before is not None and before.codes == asked and frozenset(before.files).issuperset(files):
        kept = Cache.of(before.kept, contents, texts_given)
    gists, unread = _gists(real, texts, kept, contents)
    analysis = analyze(
        [pathlib.Path(path) for path in gists],
        select=asked.__contains__,
        jobs=jobs,
        sources=sources,
        progress=progress,
        entered=[pathlib.Path(path) for path in screen(gists)],
        kept=kept,
        keeps=keeps,
        without_parts=[pathlib.Path(path) for path in apart if path in gists],
        shard=shard,
    )
    found = [*map(_syntax_error, [*unread, *analysis.faults]), *analysis.findings]
    heard = [path for path in programs if path not in gists or gists[path].speaks]
    left = _unsuppressed(found, programs, heard, texts, settings)
    return Checked(
        tuple(sorted(left, key=lambda finding: finding.sort_key)),
        analysis.gaps,
        tuple(files),
        texts,
        tuple(found),
        settings_for,
        asked,
        kept,
        analysis.unreached,
        analysis.coverage,
    )


def _digests(files: Iterable[pathlib.Path], texts: Texts) -> dict[str, str]:
    """A digest of each program in these files, by its path: a document can hold several."""
    digests: dict[str, str] = {}
    for file in map(str, files):
        digests |= {program: texts.digest(program) for program in texts.programs(file)}
        texts.let_go(file)
    return digests


def _given_texts(programs: Iterable[str], texts: Texts) -> dict[pathlib.Path, str]:
    """The texts of the programs that are not to be read from disk."""
    paths = dict.fromkeys([*programs, *texts.given])
    given = (path for path in paths if document.file_of(path) in texts.given)
    return {pathlib.Path(path): text for path in given if isinstance(text := texts.text(path), str)}


def _gists(
    real: Mapping[str, pathlib.Path],
    texts: Texts,
    kept: Cache,
    contents: Mapping[pathlib.Path, str],
) -> tuple[Mapping[str, Gist], list[SyntaxFault]]:
    """What the bytes of each program say, by its path, and why those that cannot be read say
    nothing.
    """
    gists: dict[str, Gist] = {}
    unread: list[SyntaxFault] = []
    modules = frozenset(map(module_name, real))
    for path, place in real.items():
        known = kept.gist(place, contents.get(place, ""))
        if known is None:
            content = texts.encoded(path)
            if isinstance(content, SyntaxFault):
                unread.append(content)
                continue
            known = gist(content, modules)
            kept.take_gist(place, contents[place], known)
            texts.let_go(path)
        gists[path] = known
    return gists, unread


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings by file."""

    by_folder: SettingsFor

    def asked(self, files: Iterable[pathlib.Path], *, judging: bool) -> frozenset[str]:
        """The codes of the rules that are selected, and of those by which their fixes are
        judged.
        """
        folders = [
            pathlib.Path(os.path.abspath(each))
            for each in dict.fromkeys(map(os.path.dirname, files))
        ]
        in_force = {
            id(each): each for each in (self.by_folder(folder) for folder in folders)
        }.values()
        selected = frozenset(
            code for code in rules() if any(each.selects(code) for each in in_force)
        )
        return (
            selected.union(*(rules()[code].spoilt_by for code in selected)) if judging else selected
        )

    def enters_parts(self, path: str) -> bool:
        file = pathlib.Path(document.file_of(path)).absolute()
        return self.by_folder(file.parent).enters_parts(file)

    def reports(self, code: str, path: str) -> bool:
        file = pathlib.Path(document.file_of(path)).absolute()
        return self.by_folder(file.parent).reports(code, file)


def _syntax_error(fault: SyntaxFault) -> Finding:
    return rules()[SYNTAX_ERROR].finding(Report(fault.at, fault.message, fault.help))


def _unsuppressed(
    findings: Iterable[Finding],
    files: Iterable[str],
    heard: Iterable[str],
    texts: Texts,
    settings: _Settings,
) -> list[Finding]:
    """The findings that no comment suppresses, and what is wrong with those in the files that are
    `heard`.
    """
    checked = set(files)
    by_file: dict[str, list[Finding]] = {path: [] for path in heard}
    for finding in findings:
        if settings.reports(finding.code, finding.at.path):
            by_file.setdefault(finding.at.path, []).append(finding)
    left = list(
        itertools.chain.from_iterable(
            _of_file(path, found, texts, settings) for path, found in by_file.items()
        )
    )
    # A file that is only imported is not wholly entered: that a comment in it suppresses nothing is
    # not known.
    unused = {finding.at.path for finding in left if finding.code == UNUSED_SUPPRESSION}
    known = {path for path in unused & checked if not _is_named_elsewhere(path, checked, settings)}
    return [
        finding
        for finding in left
        if finding.code != UNUSED_SUPPRESSION or finding.at.path in known
    ]


def _is_named_elsewhere(path: str, checked: AbstractSet[str], settings: _Settings) -> bool:
    """Whether a file that is not checked names this one's module: it can bring about what a comment
    suppresses.
    """
    file = pathlib.Path(os.path.abspath(document.file_of(path)))
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    module = re.compile(
        rb"\b%s\b"
        % re.escape((file.parent.name if file.stem == "__init__" else file.stem).encode())
    )
    seen = {os.path.abspath(document.file_of(each)) for each in checked}
    others = (
        each
        for each in discover([top], settings.by_folder).files
        if os.path.abspath(each) not in seen
    )
    contents = (content_in(str(each)) for each in others)
    return any(
        isinstance(content, bytes) and module.search(content) is not None for content in contents
    )


def _of_file(
    path: str, findings: list[Finding], texts: Texts, settings: _Settings
) -> list[Finding]:
    text = texts.text(path)
    if not isinstance(text, str):
        return findings
    return suppress.apply(path, text, findings, lambda code: settings.reports(code, path))
