"""From files to what the rules say of them."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from gradlint import memo, parallel
from gradlint.cache import Cache, Record, Result, content_of, digest, digest_of_text
from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Related, Span
from gradlint.interpret.gaps import Gap
from gradlint.interpret.session import Session, run_entry
from gradlint.program.entries import SAMPLE, Entry, entries, in_package
from gradlint.program.modules import Program
from gradlint.report._place import shown_path
from gradlint.rule import Rule, rules
from gradlint.source import document, parse
from gradlint.source.parse import SyntaxFault

RECURSION_LIMIT = 6_000  # Python frames: the interpreter nests some ten for each nested call of the program
STACK = 256 << 20  # bytes, as far as the system allows: what those frames take where C stands between them
GARBAGE = 50_000  # objects between two collections: most of what a path makes dies with it
MANY = 60  # files read for one batch, whose trees are not left to the next collection: some 100 MiB
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the rules found, sorted and without repetition, where the analysis gave up, and what does not parse."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    faults: tuple[SyntaxFault, ...]
    records: Mapping[Path, Record]  # of each file, and of what they import


def analyze(
    files: Sequence[Path],
    *,
    select: Callable[[str], bool],
    jobs: int = 1,
    sources: Mapping[Path, str] | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    entered: Collection[Path] | None = None,
    known: Mapping[Path, Record] | None = None,
) -> Analysis:
    """What the selected rules say of `files`; `sources` holds texts that differ from what is on disk.

    Of files that are not to be `entered` it is only said whether they parse; all are entered where that is not given.
    `cache` is the folder that keeps results from one run to the next; where there is none, `known` are the records of
    an earlier analysis by the same rules. `progress` is told how many files are done.
    """
    names = {path.resolve(): path for path in files}
    texts = {path.resolve(): text for path, text in (sources or {}).items()}
    chosen = tuple(rule.code for rule in rules().values() if select(rule.code))
    parts = parallel.batches({path: _size(path, texts) for path in names})
    contents = {path: digest_of_text(text) for path, text in texts.items()}
    inside = frozenset(names if entered is None else (path.resolve() for path in entered))
    kept = Cache.of(known or {}, contents) if cache is None else Cache.read(cache, chosen, names, contents)
    kept.forget([path for path in names if path in kept.records and kept.records[path].entered != (path in inside)])
    results: dict[parallel.Batch, dict[Path, Record] | None] = {}
    done = 0
    for part, records in _results(parts, _Given(texts, chosen, inside), kept, jobs):
        results[part] = records
        done += len(part)
        if progress is not None:
            progress(done, len(names))
    found = [result for part in sorted(results) for result in _of_part(part, results[part])]
    faults = [record.fault for records in results.values() for record in (records or {}).values() if record.fault]
    known = kept.keep(records for records in results.values() if records)
    return _collect(found, faults, names, known)


def _size(path: Path, texts: Mapping[Path, str]) -> int:
    if path in texts:
        return len(texts[path])
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _results(
    parts: Sequence[parallel.Batch], shared: _Given, kept: Cache, jobs: int
) -> Iterator[tuple[parallel.Batch, dict[Path, Record] | None]]:
    """What each batch comes to: from the cache where nothing has changed, else analysed."""
    known = {part: found for part in parts if (found := _replay(part, kept.records)) is not None}
    yield from known.items()
    left = [part for part in parts if part not in known]

    def given(part: parallel.Batch) -> _Given:
        records = {path: kept.records[path] for path in part if path in kept.records}
        return replace(shared, records=records)

    yield from parallel.spread(parallel.Work(_analyze_files, given), left, jobs)


def _replay(part: parallel.Batch, records: Mapping[Path, Record]) -> dict[Path, Record] | None:
    """The records of a batch if all of its files have one whose results go together."""
    if any(path not in records or records[path].results is None for path in part):
        return None
    executed: set[tuple[str, int]] = set()
    for path, entry in _in_order([(path, records[path].entries) for path in part]):
        result = records[path].result(entry)
        if result is None or result.was_run != _was_run(path, entry, executed):
            return None
        executed.update(result.executed)
    return {path: records[path] for path in part}


def _in_order(known: Sequence[tuple[Path, Sequence[Entry]]]) -> list[tuple[Path, Entry]]:
    """All entries in the order in which they are entered: scripts first, for what they call is then known."""
    work = [(path, entry) for path, found in known for entry in found]
    return [task for task in work if not task[1].function] + [task for task in work if task[1].function]


def _was_run(path: Path, entry: Entry, executed: set[tuple[str, int]]) -> bool:
    return bool(entry.function) and entry.function[-1] != SAMPLE and (str(path), entry.line) in executed


def _of_part(part: parallel.Batch, records: Mapping[Path, Record] | None) -> Iterator[Result]:
    if records is None:
        at = Span(str(part[0]), 1, 1, 1, 1)
        yield Result((), (Gap("internal", at, "the process that analysed this file has died"),))
        return
    for path in part:
        if path in records:
            yield from (records[path].results or {}).values()


@dataclass(frozen=True, slots=True)
class _Given:
    """What a batch is analysed with: texts that are not on disk, rules, files to enter, and what is known of it."""

    texts: dict[Path, str]
    chosen: Sequence[str]
    entered: Collection[Path]
    records: Mapping[Path, Record] = field(default_factory=dict)


def _analyze_files(paths: parallel.Batch, given: _Given) -> dict[Path, Record]:
    from gradlint import library

    library.load()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    _widen_stack()
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE, *before[1:])
    analyzer = _Analyzer(given)
    try:
        records = analyzer.analyze(paths)
        has_read = len(analyzer.parsed)
    finally:
        del analyzer
        memo.forget()
        gc.set_threshold(*before)
    if has_read > MANY:
        gc.collect()
    return records


def _widen_stack() -> None:
    """Raises the soft limit of the stack, which grows up to it, where there is such a limit (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))


class _Analyzer:
    """Enters files one after the other; what the entries of one file have run through is not entered again."""

    def __init__(self, given: _Given) -> None:
        self.given = given
        self.contents: dict[Path, str] = {}
        self.parsed: dict[Path, parse.Source | SyntaxFault | None] = {}
        self.program = Program(self._read)
        self.rules: list[Rule] = [rules()[code] for code in given.chosen]
        self.executed: set[tuple[str, int]] = set()

    def _read(self, path: Path) -> tuple[str, ast.Module] | None:
        parsed = self._parse(path)
        return (parsed.text, parsed.tree) if isinstance(parsed, parse.Source) else None

    def _parse(self, path: Path) -> parse.Source | SyntaxFault | None:
        """The file, parsed once; None where it cannot be read."""
        if path not in self.parsed:
            text = self._text(path)
            self.parsed[path] = parse.parse(str(path), text) if text is not None else None
        return self.parsed[path]

    def _text(self, path: Path) -> str | None:
        if path in self.given.texts:
            text = self.given.texts[path]
            self.contents[path] = digest_of_text(text)
            return text
        try:
            content = document.read(path)
        except OSError:
            return None
        self.contents[path] = digest(content)
        decoded = document.decode(str(path), content)
        return decoded if isinstance(decoded, str) else None

    def analyze(self, paths: Sequence[Path]) -> dict[Path, Record]:
        self.program.analysed = tuple(path for path in paths if path in self.given.entered)
        made = {path: record for path in paths if (record := self._record(path)) is not None}
        for path, entry in _in_order([(path, record.entries) for path, record in made.items()]):
            results = made[path].results
            assert results is not None
            results[entry] = self._result(path, entry)
            self.executed.update(results[entry].executed)
        targets = {path for found in self.program.edges.values() for path in found.values() if path is not None}
        for path in sorted((targets | self.program.edges.keys()) - made.keys()):
            made[path] = Record((), None)
        for path, record in made.items():
            known = self.given.records.get(path)
            record.in_package = in_package(path)
            record.take_imports(self.program.edges.get(path, {}), known)
            record.content = self.contents.get(path) or (known.content if known is not None else content_of(path))
        return made

    def _record(self, path: Path) -> Record | None:
        """What is known of a file before its entries are run; None where it cannot be read."""
        entered = path in self.given.entered
        known = self.given.records.get(path)
        if known is not None and known.results is not None:
            return Record(known.entries, {}, fault=known.fault, entered=entered)
        parsed = self._parse(path)
        if parsed is None:
            return None
        if isinstance(parsed, SyntaxFault):
            return Record((), {}, fault=parsed, entered=entered)
        if not entered:
            del self.parsed[path]
        return Record(tuple(entries(parsed)) if entered else (), {}, entered=entered)

    def _result(self, path: Path, entry: Entry) -> Result:
        was_run = _was_run(path, entry, self.executed)
        known = self.given.records[path].result(entry) if path in self.given.records else None
        if known is not None and known.was_run == was_run:
            return known
        return Result((), (), was_run=True) if was_run else self._entry(path, entry)

    def _entry(self, path: Path, entry: Entry) -> Result:
        session = Session(self.program)
        try:
            tapes = run_entry(self.program, path, entry, session)
            found = tuple(finding for rule in self.rules for finding in rule.findings(tapes))
        except Exception as error:  # one entry's mistake must not cost the others
            import logging

            logging.getLogger(__name__).debug("%s:%s", path, entry.name, exc_info=True)
            gap = Gap(
                "internal",
                Span(str(path), entry.line, 1, entry.line, 1),
                f"{entry.name}: {type(error).__name__}: {error}",
            )
            return Result((), (gap,), _places(session))
        return Result(found, tuple(sorted(session.gaps, key=_gap_key)), _places(session))


def _places(session: Session) -> tuple[tuple[str, int], ...]:
    """The functions that an entry ran through, by file and line."""
    return tuple(sorted({(node.code.path, node.source.lineno) for node in session.executed}))


def _gap_key(gap: Gap) -> tuple[Span, str, str]:
    return (gap.at, gap.kind, gap.detail)


def _collect(
    results: Sequence[Result], faults: Iterable[SyntaxFault], names: Mapping[Path, Path], records: Mapping[Path, Record]
) -> Analysis:
    shown = _Shown({str(resolved): str(path) for resolved, path in names.items()})
    findings: dict[tuple[str, Span], Finding] = {}
    for finding in (finding for result in results for finding in result.findings):
        known = findings.get((finding.code, finding.at))
        if known is None or known.severity < finding.severity:
            findings[finding.code, finding.at] = finding
    gaps = {gap for result in results for gap in result.gaps}
    renamed = (_renamed(finding, shown) for finding in findings.values())
    return Analysis(
        tuple(sorted(renamed, key=lambda finding: finding.sort_key)),
        tuple(sorted((replace(gap, at=_span(gap.at, shown)) for gap in gaps), key=_gap_key)),
        tuple(sorted((replace(fault, at=_span(fault.at, shown)) for fault in faults), key=lambda fault: fault.at)),
        records,
    )


class _Shown(dict[str, str]):
    """How reports write a path: as it was given; that of an imported file relative to the working folder."""

    def __missing__(self, path: str) -> str:
        self[path] = shown_path(path)
        return self[path]


def _span(at: Span, shown: Mapping[str, str]) -> Span:
    return replace(at, path=shown[at.path])


def _renamed(finding: Finding, shown: Mapping[str, str]) -> Finding:
    related = tuple(Related(_span(entry.at, shown), entry.message) for entry in finding.related)
    return replace(finding, at=_span(finding.at, shown), related=related)


def tapes_of(path: Path) -> Iterator[object]:
    """The tapes of every entry of a file, for tests and debugging."""
    from gradlint import library

    library.load()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    path = path.resolve()
    analyzer = _Analyzer(_Given({}, [], [path]))
    parsed = analyzer._parse(path)
    if isinstance(parsed, parse.Source):
        for entry in entries(parsed):
            yield from run_entry(analyzer.program, path, entry, Session(analyzer.program))
