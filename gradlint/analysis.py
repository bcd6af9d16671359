"""From files to what the rules say of them: from the cache where nothing has changed, else by the
analyzer.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import coverage, memo, parallel
from gradlint.cache import Cache
from gradlint.coverage import Coverage, Written
from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Span
from gradlint.interpret.gaps import Gap
from gradlint.program.entries import Ran, in_order
from gradlint.records import Record, Result
from gradlint.report._place import shown_path
from gradlint.rule import rules
from gradlint.source.files import real_paths
from gradlint.source.parse import SyntaxFault

if TYPE_CHECKING:
    from gradlint.analyzer import Given

Progress = Callable[[int, int], None]
FOLLOWED = 20  # times less that a file costs which is only imported
_GIVEN_UP = ("part", "internal")


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the rules found, sorted and without repetition, where the analysis gave up, and what
    does not parse.
    """

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    faults: tuple[SyntaxFault, ...]
    unreached: tuple[Gap, ...] = ()  # the calls of `backward` that no path came to, with the reason
    coverage: Coverage = Coverage()


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
    shard: parallel.Shard | None = None,
) -> Analysis:
    """What the selected rules say of `files`; `sources` holds texts that differ from what is on
    disk.

    Of files that are not to be `entered` it is only said whether they parse; all are entered where
    that is not given. Of those `without_parts` only what trains is entered. `kept` is what earlier
    analyses by the same rules have found, and takes what this one finds, where it `keeps` that.
    `progress` is told how many files are done. Of the work, a `shard` is what belongs to it: of the
    other files, it is said of all calls of `backward` that no path came to them, as far as this
    shard has seen.
    """
    real = dict(zip(files, real_paths(files), strict=True))
    names = {place: path for path, place in real.items()}
    texts = {path.resolve(): text for path, text in (sources or {}).items()}
    chosen = tuple(rule.code for rule in rules().values() if select(rule.code))
    inside = frozenset(names if entered is None else (real[path] for path in entered))
    apart = frozenset(real[path] for path in without_parts)
    every, parts = _shared_out(names, texts, inside, shard)
    kept = Cache() if kept is None else kept
    _forget_others(kept, names, inside)
    results: dict[parallel.Batch, dict[Path, Record] | None] = {}
    done, size = 0, sum(map(len, parts))
    before = gc.get_threshold()
    try:
        for part, records in _results(parts, (texts, chosen, inside, apart), kept, keeps, jobs):
            results[part] = records
            done += len(part)
            if progress is not None:
                progress(done, size)
    finally:
        memo.forget()
        # which batches that are analysed in this process leave as they need it
        gc.set_threshold(*before)
    # batches end in any order: reports are to be the same whichever came first
    found = [result for part in sorted(results) for result in _of_part(part, results[part])]
    if keeps:
        kept.keep(records for records in results.values() if records)
    made = [item for each in results.values() for item in (each or {}).items()]
    # a file that another batch imports is in that one, too, without what is found in it
    known = dict(sorted(made, key=lambda item: item[1].results is not None))
    faults = [record.fault for record in known.values() if record.fault]
    checked = {path: record for path, record in known.items() if record.results is not None}
    backwards = {path: record.backwards for path, record in checked.items()}
    analysis = _collect(found, faults, names, list(_unreached(backwards, found)), checked)
    if shard is None:
        return analysis
    of_others = {path for part in every for path in part if path in inside} - checked.keys()
    elsewhere = _missed(_unreached(_written(of_others, texts), found), names)
    unreached = sorted((*analysis.unreached, *elsewhere), key=lambda gap: gap.sort_key)
    return replace(analysis, unreached=tuple(unreached))


def _shared_out(
    files: Iterable[Path],
    texts: Mapping[Path, str],
    inside: Collection[Path],
    shard: parallel.Shard | None,
) -> tuple[Sequence[parallel.Batch], Sequence[parallel.Batch]]:
    """All batches of the work, and those of them that are done here."""
    sizes = {path: _size(path, texts) for path in files}
    every = parallel.batches(sizes)
    if shard is None:
        return every, every
    costs = {path: size if path in inside else size // FOLLOWED for path, size in sizes.items()}
    return every, shard.share(every, costs)


def _forget_others(kept: Cache, files: Iterable[Path], inside: Collection[Path]) -> None:
    """Drops what is kept of files that were entered and are not now, or the other way round."""
    records = kept.records
    kept.forget(
        [path for path in files if path in records and records[path].entered != (path in inside)]
    )


def _written(paths: Iterable[Path], texts: Mapping[Path, str]) -> Mapping[Path, Sequence[Written]]:
    """The calls of `backward` in these files, which are not entered."""
    from gradlint.program.backwards import backwards
    from gradlint.source.parse import Source, parse

    found: dict[Path, Sequence[Written]] = {}
    for path in paths:
        text = texts[path] if path in texts else _text(path)
        source = parse(str(path), text) if "backward" in text else None
        if isinstance(source, Source):
            found[path] = backwards(source)
    return found


def _text(path: Path) -> str:
    """The text of a file; "" where there is none to read."""
    from gradlint.source import document

    try:
        text = document.decode(str(path), document.read(path))
    except OSError:
        return ""
    return text if isinstance(text, str) else ""


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
        # all that runs programs: a tenth of a second
        from gradlint.analyzer import Given, analyze_batch

        def given(part: parallel.Batch) -> Given:
            return Given(
                *asked, {path: kept.records[path] for path in part if path in kept.records}, keeps
            )

        yield from parallel.spread(parallel.Work(analyze_batch, given), left, jobs)


def _replay(part: parallel.Batch, records: Mapping[Path, Record]) -> dict[Path, Record] | None:
    """The records of a batch if all of its files have one whose results go together."""
    if any(
        path not in records or records[path].results is None or records[path].is_edited
        for path in part
    ):
        return None
    ran = Ran()
    for path, entry in in_order([(path, records[path].entries) for path in part]):
        result = records[path].result(entry)
        if result is None or result.was_run != ran.through(path, entry, records[path].backwards):
            return None
        ran.take(entry, result)
    return {path: records[path] for path in part}


def _of_part(part: parallel.Batch, records: Mapping[Path, Record] | None) -> Iterator[Result]:
    if records is None:
        at = Span(str(part[0]), 1, 1, 1, 1)
        yield Result((), (Gap("internal", at, "the process that analysed this file has died"),))
        return
    for path in part:
        if path in records:
            yield from (records[path].results or {}).values()


def _unreached(
    backwards: Mapping[Path, Sequence[Written]], results: Sequence[Result]
) -> Iterator[Gap]:
    """Those of the calls of `backward` in files to which no path came."""
    reached = {place for result in results for place in result.reached}
    for path, calls in backwards.items():
        for written in calls:
            if (str(path), written.line) not in reached:
                at = Span(str(path), written.line, 1, written.line, 1)
                yield Gap("unreached", at, _reason(str(path), written, results))


def _reason(path: str, written: Written, results: Sequence[Result]) -> str:
    """Why no path came to a call of `backward`, as far as it is known."""
    around = path, written.function
    through = (
        [result for result in results if around in result.executed] if written.function else results
    )
    if not through:
        return f"no path leads here: none got through the function at line {written.function}"
    kinds = sorted({gap.kind for result in through for gap in result.gaps if gap.at.path == path})
    met = f"; the analysis met {', '.join(kinds)}" if kinds else ""
    sides = coverage.taken(result.branches for result in through)
    for line in coverage.half_taken(written, path, sides):
        return f"no path leads here: all went one way at line {line}{met}"
    return f"no path leads here{met}"


def _collect(
    results: Sequence[Result],
    faults: Iterable[SyntaxFault],
    names: Mapping[Path, Path],
    unreached: Iterable[Gap],
    records: Mapping[Path, Record],
) -> Analysis:
    shown = _shown(names)
    findings: dict[tuple[str, Span], Finding] = {}
    for finding in (finding for result in results for finding in result.findings):
        known = findings.get((finding.code, finding.at))
        if known is None or _is_told_instead(finding, known):
            findings[finding.code, finding.at] = finding
    gaps = {gap for result in results for gap in result.gaps}
    renamed = (_renamed(finding, shown) for finding in findings.values())
    missed = _missed(unreached, names)
    return Analysis(
        tuple(sorted(renamed, key=lambda finding: finding.sort_key)),
        tuple(
            sorted(
                (replace(gap, at=_span(gap.at, shown)) for gap in gaps),
                key=lambda gap: gap.sort_key,
            )
        ),
        tuple(
            sorted(
                (replace(fault, at=_span(fault.at, shown)) for fault in faults),
                key=lambda fault: fault.at,
            )
        ),
        missed,
        _coverage(records, [gap.at for gap in missed]),
    )


def _is_told_instead(finding: Finding, known: Finding) -> bool:
    """Whether this one is told of two at one place: the worse, or the first by its words, whichever
    was found first.
    """
    if finding.severity is known.severity:
        return finding.wording < known.wording
    return known.severity < finding.severity


def _coverage(records: Mapping[Path, Record], missed: Sequence[Span]) -> Coverage:
    """What was looked at in the files that were entered."""
    results = [result for record in records.values() for result in (record.results or {}).values()]
    files = {str(path) for path in records}
    losses = coverage.joined(result.losses for result in results)
    sides = coverage.taken(result.branches for result in results)
    entries = [each for record in records.values() for each in (record.results or {}).items()]
    parts = [result for entry, result in entries if entry.contract]
    return Coverage(
        sum(len(record.backwards) for record in records.values()),
        tuple(missed),
        tuple(shown for (path, _), shown in losses.items() if path in files),
        tuple(taken for (path, *_), taken in sides.items() if path in files),
        len(parts),
        sum(all(gap.kind not in _GIVEN_UP for gap in part.gaps) for part in parts),
        len(entries) - len(parts),
    )


def _missed(unreached: Iterable[Gap], names: Mapping[Path, Path]) -> tuple[Gap, ...]:
    """Calls that no path came to, as reports tell them, in order."""
    shown = _shown(names)
    return tuple(
        sorted(
            (replace(gap, at=_span(gap.at, shown)) for gap in unreached),
            key=lambda gap: gap.sort_key,
        )
    )


def _shown(names: Mapping[Path, Path]) -> _Shown:
    return _Shown({str(resolved): str(path) for resolved, path in names.items()})


class _Shown(dict[str, str]):
    """How reports write a path: as it was given; that of an imported file relative to the working
    folder.
    """

    def __missing__(self, path: str) -> str:
        self[path] = shown_path(path)
        return self[path]


def _span(at: Span, shown: Mapping[str, str]) -> Span:
    return replace(at, path=shown[at.path])


def _renamed(finding: Finding, shown: Mapping[str, str]) -> Finding:
    related = tuple(replace(entry, at=_span(entry.at, shown)) for entry in finding.related)
    return replace(finding, at=_span(finding.at, shown), related=related)
