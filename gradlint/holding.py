"""Which records of earlier runs still hold, and what edits leave of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from gradlint.digests import content_of
from gradlint.program.entries import Entry
from gradlint.program.imports import BESIDE, IsFile, in_package, neighbours, on_disk, resolve
from gradlint.program.parts import Edited
from gradlint.records import Kept, Record, Result


def reaching(paths: Iterable[Path], records: Mapping[Path, Record]) -> set[Path]:
    """These files, and those whose imports lead to one of them."""
    return reached(paths, importers(records))


def importers(records: Mapping[Path, Record]) -> dict[Path, list[Path]]:
    """The files that import each file, by the records of those."""
    found: dict[Path, list[Path]] = {}
    for path, record in records.items():
        for target in record.imports.values():
            if target is not None:
                found.setdefault(target, []).append(path)
    return found


def reached(paths: Iterable[Path], ways: Mapping[Path, Iterable[Path]]) -> set[Path]:
    """These files, and all to which a way leads from one of them."""
    found = set(paths)
    pending = list(found)
    while pending:
        fresh = set(ways.get(pending.pop(), ())) - found
        found |= fresh
        pending += fresh
    return found


def holding(
    kept: Kept, contents: Mapping[Path, str], texts: Mapping[Path, str] | None = None
) -> dict[Path, Record]:
    """The records that still hold, and of those of edited files what does."""
    is_file = on_disk()
    records = kept.records
    now = {path: contents.get(path) or content_of(path) for path in records}
    gone = {
        path
        for path, record in records.items()
        if not now[path] or not _leads_where_it_did(path, record, is_file)
    }
    edited = {
        path for path, record in records.items() if path not in gone and now[path] != record.content
    }
    if not gone and not edited:
        return records
    records = kept.whole()
    edits = _edits({path: records[path] for path in edited}, now, texts or {})
    states = {str(path): edits.get(path) for path in gone | edited}  # None: nothing of it holds
    held: dict[Path, Record] = {}
    for path, record in records.items():
        results = _results_holding(path, record, states)
        if str(path) not in states:
            held[path] = replace(record, results=results)
        elif (edit := edits.get(path)) is not None:
            parts, is_edited = dict(edit.same), results is not None
            held[path] = replace(
                record, results=results, content=now[path], parts=parts, is_edited=is_edited
            )
    return held


def strange(records: Mapping[Path, Record], files: AbstractSet[Path]) -> list[Path]:
    """The records that tell of files which are neither checked nor imported by those that are: not
    of our making.

    A report quotes the lines that a record names, so that a forged one would make it read any file.
    """
    named = {
        path: {Path(place) for place in _named_files(record)} - files
        for path, record in records.items()
    }
    if not any(named.values()):
        return []
    ways = {path: _followed(path, record, files) for path, record in records.items()}
    known = reached(files, ways)
    return [path for path, places in named.items() if not places <= known]


def _named_files(record: Record) -> Iterator[str]:
    """The files of which a record says something."""
    if record.fault is not None:
        yield record.fault.at.path
    for result in (record.results or {}).values():
        for finding in result.findings:
            yield finding.at.path
            yield from (part.at.path for part in finding.related)
        yield from (gap.at.path for gap in result.gaps)


def _followed(path: Path, record: Record, files: AbstractSet[Path]) -> list[Path]:
    """Where the imports of a file lead; files are looked at beside it, and among those that are
    checked.
    """
    found = ((level, target) for (_, level), target in record.imports.items() if target is not None)
    return [
        target
        for level, target in found
        if level != BESIDE or target in files or _is_beside(target, path)
    ]


def _is_beside(target: Path, path: Path) -> bool:
    return target.parent == path.parent and target.suffix == ".py"


def _leads_where_it_did(path: Path, record: Record, is_file: IsFile) -> bool:
    """Whether the file is still there, and what it imports where it was."""
    if not record.content or record.is_edited or in_package(path) != record.in_package:
        return False
    looked_at = {target for (_, level), target in record.imports.items() if level == BESIDE}
    if looked_at and not looked_at.issuperset(neighbours(path)):
        return False
    return all(resolve(path, *named, is_file) == target for named, target in record.imports.items())


def _edits(
    records: Mapping[Path, Record], now: Mapping[Path, str], texts: Mapping[Path, str]
) -> dict[Path, Edited]:
    """What is left of the parts of files whose content has changed; nothing where it is not at
    hand.
    """
    at_hand = {
        path: record
        for path, record in records.items()
        if path in texts or now[path] == content_of(path)
    }
    if not at_hand:
        return {}
    from gradlint.program.edits import edited

    return {path: edited(path, record.parts, texts.get(path)) for path, record in at_hand.items()}


def _results_holding(
    path: Path, record: Record, states: Mapping[str, Edited | None]
) -> dict[Entry, Result] | None:
    """The results of a file that still hold, where edits have moved them; `states` are those of
    files that changed.
    """
    if record.results is None:
        return None
    found: dict[Entry, Result] = {}
    for entry, result in record.results.items():
        moved = _moved(entry, result, path, states)
        if moved is not None:
            found[moved[0]] = moved[1]
    return found


def _moved(
    entry: Entry, result: Result, path: Path, states: Mapping[str, Edited | None]
) -> tuple[Entry, Result] | None:
    """An entry and its result as they are now; None where what the result rests on is not what it
    was.
    """
    for file, word in result.rests_on:
        if file in states and ((edit := states[file]) is None or word not in edit.same):
            return None
    told = [at for each in result.findings for at in (each.at, *(part.at for part in each.related))]
    told += [gap.at for gap in result.gaps]
    if any((edit := states.get(at.path)) and any(by for _, _, by in edit.moved) for at in told):
        return None  # messages tell lines
    line = _line(entry.line, states.get(str(path))) if entry.function else entry.line
    if line is None:
        return None
    try:
        now = replace(
            result,
            executed=tuple((file, _now(file, line, states)) for file, line in result.executed),
            reached=tuple((file, _now(file, line, states)) for file, line in result.reached),
            losses=tuple(
                each._replace(line=_now(each.path, each.line, states)) for each in result.losses
            ),
            branches=tuple(
                each._replace(line=_now(each.path, each.line, states)) for each in result.branches
            ),
        )
    except _GoneError:
        return None
    return replace(entry, line=line), now


class _GoneError(Exception):
    """A line of an edited file is no more."""


def _now(file: str, line: int, states: Mapping[str, Edited | None]) -> int:
    """Where a line of a file is now."""
    found = _line(line, states.get(file))
    if found is None:
        raise _GoneError
    return found


def _line(line: int, edit: Edited | None) -> int | None:
    return line if edit is None else edit.line(line)
