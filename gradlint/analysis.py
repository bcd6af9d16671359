"""From files to what the rules say of them: from the cache where nothing has changed, else by the analyzer."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import memo, parallel
from gradlint.cache import Cache, Record, Result
from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Related, Span
from gradlint.interpret.gaps import Gap
from gradlint.program.entries import in_order, was_run
from gradlint.report._place import shown_path
from gradlint.rule import rules
from gradlint.source.files import real_paths
from gradlint.source.parse import SyntaxFault

if TYPE_CHECKING:
    from gradlint.analyzer import Given

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the rules found, sorted and without repetition, where the analysis gave up, and what does not parse."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    faults: tuple[SyntaxFault, ...]
    unreached: tuple[Gap, ...] = ()  # the calls of `backward` that no path came to, with the reason


def analyze(
    files: Sequence[Path],
    *,
    select: Callable[[str], bool],
    jobs: int = 1,
    sources: Mapping[Path, str] | None = None,
    progress: Progress | None = None,
    entered: Collection[Path] | None = None,
    kept: Cache | None = None,
    keeps: bool = True,
    without_parts: Collection[Path] = (),
) -> Analysis:
    """What the selected rules say of `files`; `sources` holds texts that differ from what is on disk.

    Of files that are not to be `entered` it is only said whether they parse; all are entered where that is not given.
    Of those `without_parts` only what trains is entered.
    `kept` is what earlier analyses by the same rules have found, and takes what this one finds, where it `keeps` that.
    `progress` is told how many files are done.
    """
    real = dict(zip(files, real_paths(files), strict=True))
    names = {place: path for path, place in real.items()}
    texts = {path.resolve(): text for path, text in (sources or {}).items()}
    chosen = tuple(rule.code for rule in rules().values() if select(rule.code))
    parts = parallel.batches({path: _size(path, texts) for path in names})
    inside = frozenset(names if entered is None else (real[path] for path in entered))
    apart = frozenset(real[path] for path in without_parts)
    kept = Cache() if kept is None else kept
    kept.forget([path for path in names if path in kept.records and kept.records[path].entered != (path in inside)])
    results: dict[parallel.Batch, dict[Path, Record] | None] = {}
    done = 0
    before = gc.get_threshold()
    try:
        for part, records in _results(parts, (texts, chosen, inside, apart), kept, keeps, jobs):
            results[part] = records
            done += len(part)
            if progress is not None:
                progress(done, len(names))
    finally:
        memo.forget()
        gc.set_threshold(*before)  # which batches that are analysed in this process leave as they need it
    found = [result for part in sorted(results) for result in _of_part(part, results[part])]
    faults = [record.fault for records in results.values() for record in (records or {}).values() if record.fault]
    if keeps:
        kept.keep(records for records in results.values() if records)
    unreached = list(_unreached([records for records in results.values() if records], found))
    return _collect(found, faults, names, unreached)


def _size(path: Path, texts: Mapping[Path, str]) -> int:
    if path in texts:
        return len(texts[path])
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _results(
    parts: Sequence[parallel.Batch],
    asked: tuple[dict[Path, str], Sequence[str], Collection[Path], Collection[Path]],
    kept: Cache,
    keeps: bool,
    jobs: int,
) -> Iterator[tuple[parallel.Batch, dict[Path, Record] | None]]:
    """What each batch comes to: from the cache where nothing has changed, else analysed."""
    known = {part: found for part in parts if (found := _replay(part, kept.records)) is not None}
    yield from known.items()
    left = [part for part in parts if part not in known]
    if left:
        from gradlint.analyzer import Given, analyze_batch  # all that runs programs: a tenth of a second

        def given(part: parallel.Batch) -> Given:
            return Given(*asked, {path: kept.records[path] for path in part if path in kept.records}, keeps)

        yield from parallel.spread(parallel.Work(analyze_batch, given), left, jobs)


def _replay(part: parallel.Batch, records: Mapping[Path, Record]) -> dict[Path, Record] | None:
    """The records of a batch if all of its files have one whose results go together."""
    if any(path not in records or records[path].results is None or records[path].is_edited for path in part):
        return None
    executed: set[tuple[str, int]] = set()
    for path, entry in in_order([(path, records[path].entries) for path in part]):
        result = records[path].result(entry)
        if result is None or result.was_run != was_run(path, entry, executed):
            return None
        executed.update(result.executed)
    return {path: records[path] for path in part}


def _of_part(part: parallel.Batch, records: Mapping[Path, Record] | None) -> Iterator[Result]:
    if records is None:
        at = Span(str(part[0]), 1, 1, 1, 1)
        yield Result((), (Gap("internal", at, "the process that analysed this file has died"),))
        return
    for path in part:
        if path in records:
            yield from (records[path].results or {}).values()


def _unreached(parts: Iterable[Mapping[Path, Record]], results: Sequence[Result]) -> Iterator[Gap]:
    """The calls of `backward` in the files that were entered to which no path came."""
    reached = {place for result in results for place in result.reached}
    for path, record in (each for records in parts for each in records.items()):
        missed = [line for line in record.backwards if (str(path), line) not in reached]
        if missed and record.results is not None:
            kinds = sorted({gap.kind for result in record.results.values() for gap in result.gaps})
            reason = f"the analysis of this file met {', '.join(kinds)}" if kinds else "no path leads here"
            yield from (Gap("unreached", Span(str(path), line, 1, line, 1), reason) for line in missed)


def _collect(
    results: Sequence[Result], faults: Iterable[SyntaxFault], names: Mapping[Path, Path], unreached: Iterable[Gap]
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
        tuple(sorted((replace(gap, at=_span(gap.at, shown)) for gap in gaps), key=lambda gap: gap.sort_key)),
        tuple(sorted((replace(fault, at=_span(fault.at, shown)) for fault in faults), key=lambda fault: fault.at)),
        tuple(sorted((replace(gap, at=_span(gap.at, shown)) for gap in unreached), key=lambda gap: gap.sort_key)),
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
