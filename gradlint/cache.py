"""Results of earlier runs, by content: of what each of them came to, of the rules chosen, and of
gradlint itself.

One file of JSON for each choice of rules and of files. It is written aside and moved into place, so
that runs at the same time do not meet; what cannot be read is taken for empty. A result counts as
long as every part of a file that it rests on has the text that it had, wherever in its file that is
by now, and every import there still leads where it did.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gradlint.coverage import Branch, Loss, Written
from gradlint.dataclass import dataclass
from gradlint.errors import UserError
from gradlint.finding import Finding, Related, Severity, Span
from gradlint.interpret.gaps import Gap
from gradlint.program.entries import Entry
from gradlint.program.imports import BESIDE, IsFile, in_package, neighbours, on_disk, resolve
from gradlint.program.parts import Edited, Part, Text
from gradlint.rule import packages
from gradlint.source import document
from gradlint.source.parse import SyntaxFault
from gradlint.source.screen import Gist

FOLDER = ".gradlint_cache"
MOST_FILES = 64  # choices of rules and files; the oldest go first
MOST_BYTES = 200 << 20  # of all of them
LONGEST = 3600  # seconds that writing one takes at most
_STAMP = "stamp"
_MARK, _IGNORE = ".gitignore", "# made by gradlint\n*\n"
Imports = dict[tuple[str, int], Path | None]


@dataclass(frozen=True, slots=True)
class Result:
    """What one entry came to: `executed` are the functions it ran through; `was_run`: another entry
    ran through it.

    `reached` are the calls of `backward` that it ran, by file and line; `losses` and `branches` are
    what it has shown.

    It holds as long as the parts of files that it `rests_on` are what they are.
    """

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    executed: tuple[tuple[str, int], ...] = ()
    was_run: bool = False
    rests_on: tuple[Part, ...] = ()
    reached: tuple[tuple[str, int], ...] = ()
    losses: tuple[Loss, ...] = ()
    branches: tuple[Branch, ...] = ()


@dataclass(slots=True)
class Record:
    """What is known of one file; `results` is None for a file that was imported only."""

    entries: tuple[Entry, ...]
    results: dict[Entry, Result] | None
    imports: Imports = field(default_factory=dict)
    content: str = ""
    fault: SyntaxFault | None = None
    entered: bool = True  # False: it was only parsed
    in_package: bool = False  # which decides, too, whether it is a script
    parts: dict[str, Text] = field(default_factory=dict)  # those that results rest on
    is_edited: bool = False  # since then: its entries have to be found anew
    backwards: tuple[Written, ...] = ()  # the calls of `backward` in it

    def result(self, entry: Entry) -> Result | None:
        """What the entry came to, if it was entered."""
        return self.results.get(entry) if self.results is not None else None

    def take_imports(self, imports: Imports, before: Record | None) -> None:
        """Adds what this run has asked to what earlier ones did: replayed entries ask nothing."""
        self.imports = {**(before.imports if before is not None else {}), **imports}


@dataclass(slots=True)
class Cache:
    """The records that still hold, and where they are kept; without a file, nothing is."""

    file: Path | None = None
    records: dict[Path, Record] = field(default_factory=dict)
    # each with what stands for its content
    gists: dict[Path, tuple[str, Gist]] = field(default_factory=dict)
    _kept: _Kept = field(default_factory=lambda: _Kept())
    has_more: bool = False  # than its file

    @classmethod
    def of(cls, before: Cache, contents: Mapping[Path, str], texts: Mapping[Path, str]) -> Cache:
        """What still holds of an earlier analysis of the same files; nothing is kept in a file.

        `texts` are those that differ from what is on disk.
        """
        before._kept.whole()
        return cls(None, dict(_holding(_Kept(before.records), contents, texts)), dict(before.gists))

    @classmethod
    def read(
        cls, folder: Path, chosen: Iterable[str], files: Collection[Path],
        contents: Mapping[Path, str],
        without_parts: Iterable[Path] = (),
    ) -> Cache:  # fmt: skip
        """What is kept in `folder` of these rules on these files, less what has changed.

        `contents` holds what stands for the content of files, as far as it is known already.
        """
        if folder.is_symlink() or not _can_be_ours(folder):
            _warn("gradlint: %s was not made by gradlint: nothing is kept", folder)
            return cls()
        apart = sorted(map(str, without_parts))
        key = [
            _stamp(folder),
            str(sys.version_info[:3]),
            *chosen,
            *sorted(map(str, files)),
            str(len(apart)),
            *apart,
        ]
        file = folder / f"{digest(os.fsencode(chr(10).join(key)))[:16]}.json"
        kept = _load(file)
        records = _holding(kept, contents)
        for path in _strange(records, frozenset(files)):
            del records[path]
        return cls(file, records, kept.gists, kept)

    def gist(self, path: Path, content: str) -> Gist | None:
        """What the bytes of the file at `path` say, if they are those for which `content`
        stands.
        """
        known = self.gists.get(path)
        return known[1] if known is not None and known[0] == content else None

    def take_gist(self, path: Path, content: str, gist: Gist) -> None:
        self.gists[path] = content, gist
        self.has_more = True

    def forget(self, paths: Iterable[Path]) -> None:
        for path in paths:
            del self.records[path]

    def verdicts(self) -> dict[str, bool]:
        """What trials of fixes have shown, by what stands for the fix and all that its trial rests
        on.
        """
        try:
            found = json.loads(self._verdicts.read_text(encoding="utf-8"))
            return {str(name): bool(holds) for name, holds in found.items()}
        except (OSError, ValueError, AttributeError, RecursionError):
            return {}

    def keep_verdicts(self, verdicts: Mapping[str, bool]) -> None:
        """Writes down what trials have shown, beside the results that they rest on."""
        try:
            _write(self._verdicts, json.dumps(verdicts, separators=(",", ":")))
        except OSError as error:
            _warn("gradlint: nothing is kept in %s: %s", self._verdicts.parent, error.strerror)

    @property
    def _verdicts(self) -> Path:
        assert self.file is not None, "verdicts are kept in a file"
        return self.file.with_suffix(".fixes.json")

    def keep(self, made: Iterable[Mapping[Path, Record]]) -> None:
        """Takes the records that this run has made; all are written if there is a file for them,
        and anything new.
        """
        merged: dict[Path, Record] = {}
        for part in made:
            for path, record in part.items():
                _merge(merged, path, record)
        if self.has_more or any(
            self.records.get(path) is not record for path, record in merged.items()
        ):
            self._kept.whole()
        for path in merged.keys() & self.records.keys():
            _merge(merged, path, self.records[path])
        self.has_more |= any(
            self.records.get(path) is not record for path, record in merged.items()
        )
        self.records |= merged
        if self.file is not None and self.has_more:
            try:
                _store(self.file, self.records, self.gists)
            except OSError as error:
                _warn("gradlint: nothing is kept in %s: %s", self.file.parent, error.strerror)


def _warn(text: str, *words: object) -> None:
    import logging  # which few runs need

    logging.getLogger(__name__).warning(text, *words)


def clean(folder: Path) -> bool:
    """Removes a cache; whether there was one. A link is not followed."""
    if folder.is_symlink():
        raise UserError(f"{folder} is a link: it is not gradlint's to remove")
    if not folder.is_dir():
        return False
    if not _is_ours(folder):
        raise UserError(f"{folder} was not made by gradlint")
    import shutil

    shutil.rmtree(folder)
    return True


def _can_be_ours(folder: Path) -> bool:
    """Whether a cache can stand there: files that are not ours would be among those that it
    removes.
    """
    try:
        return (
            not folder.is_dir()
            or _is_ours(folder)
            or not any(name != _MARK for name in os.listdir(folder))
        )
    except OSError:  # what cannot be read is reported when it is written
        return True


def _is_ours(folder: Path) -> bool:
    mark = folder / _MARK
    return mark.is_file() and mark.read_text(encoding="utf-8", errors="replace") == _IGNORE


def _merge(merged: dict[Path, Record], path: Path, record: Record) -> None:
    """One record of a file that several batches met: one has analysed it, all have seen imports of
    it.
    """
    known = merged.get(path)
    if known is None:
        merged[path] = record
    elif known is not record:
        results, other = (known, record) if known.results is not None else (record, known)
        # it changed while we ran
        content = known.content if known.content == record.content else ""
        imports, parts = {**other.imports, **results.imports}, {**other.parts, **results.parts}
        merged[path] = replace(results, imports=imports, content=content, parts=parts)


def _stamp(folder: Path) -> str:
    """What changes with the text of any file of gradlint and of its rules, wherever these are
    installed.

    The files are read where they are not those that were read last: another machine has installed
    them at another time.
    """
    tops = [
        Path(__file__).parent,
        *(Path(part) for package in packages() for part in package.__path__),
    ]
    found = [
        (top, path)
        for top in tops
        for kind in ("*.py", "*.toml")
        for path in sorted(top.rglob(kind))
    ]
    states = ((path, path.stat()) for _, path in found)
    state = digest(
        os.fsencode("".join(f"{path} {each.st_mtime_ns} {each.st_size}\n" for path, each in states))
    )
    known = _read_stamp(folder / _STAMP)
    if known.get("state") == state and "texts" in known:
        return known["texts"]
    texts = digest(
        "".join(
            f"{path.relative_to(top)} {digest(path.read_bytes())}\n" for top, path in found
        ).encode()
    )
    if folder.is_dir():
        with contextlib.suppress(
            OSError
        ):  # where nothing can be kept, that is told when results are written
            _write(folder / _STAMP, json.dumps({"state": state, "texts": texts}))
    return texts


def _read_stamp(file: Path) -> Mapping[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def content_of(path: Path) -> str:
    """What stands for the content of the file; "" where it cannot be read."""
    try:
        return digest(document.read(path))
    except OSError:
        return ""


def digest(content: bytes) -> str:
    """What stands for this content."""
    return hashlib.sha256(content).hexdigest()


def digest_of_text(text: str) -> str:
    """What stands for a file that holds this text in UTF-8."""
    return digest(text.encode(errors="surrogatepass"))


def reaching(paths: Iterable[Path], records: Mapping[Path, Record]) -> set[Path]:
    """These files, and those whose imports lead to one of them."""
    return _reached(paths, _importers(records))


def _importers(records: Mapping[Path, Record]) -> dict[Path, list[Path]]:
    found: dict[Path, list[Path]] = {}
    for path, record in records.items():
        for target in record.imports.values():
            if target is not None:
                found.setdefault(target, []).append(path)
    return found


def _reached(paths: Iterable[Path], ways: Mapping[Path, Iterable[Path]]) -> set[Path]:
    """These files, and all to which a way leads from one of them."""
    found = set(paths)
    pending = list(found)
    while pending:
        fresh = set(ways.get(pending.pop(), ())) - found
        found |= fresh
        pending += fresh
    return found


class Grounds:
    """What the analysis of a file and of those that import it rests on, in one word."""

    def __init__(self, records: Mapping[Path, Record]) -> None:
        self._records = records
        self._importers = _importers(records)
        self._imported = {
            path: [target for target in record.imports.values() if target is not None]
            for path, record in records.items()
        }
        self.of = functools.cache(self._of)
        self._word = functools.cache(self._word_of)

    def _of(self, path: Path) -> str:
        files = _reached(_reached([path], self._importers), self._imported)
        return digest(
            "".join(sorted(self._word(file) for file in files if file in self._records)).encode()
        )

    def _word_of(self, file: Path) -> str:
        """What stands for a file: its path, its content and where its imports lead."""
        record = self._records[file]
        return digest(
            os.fsencode(repr((str(file), record.content, sorted(map(str, record.imports.items())))))
        )


@dataclass(slots=True)
class _Kept:
    """What a file of the cache holds; what results rest on is read from its `resting` where
    something has changed.
    """

    records: dict[Path, Record] = field(default_factory=dict)
    gists: dict[Path, tuple[str, Gist]] = field(default_factory=dict)
    resting: str = ""

    def whole(self) -> dict[Path, Record]:
        """The records with what their results rest on."""
        if self.resting:
            try:
                _rest(self.records, *json.loads(self.resting))
            except (ValueError, TypeError, KeyError, IndexError, RecursionError):
                self.records.clear()
            self.resting = ""
        return self.records


def _rest(
    records: Mapping[Path, Record], texts: list[Any], written: Mapping[str, list[Any]]
) -> None:
    """Adds to records what was written of the parts of files that their results rest on."""
    places: list[Part] = []
    for path, parts in texts:
        places += [(path, word) for word, *_ in parts]
        if (record := records.get(Path(path))) is not None:
            record.parts = {
                word: Text(
                    digest, tuple((first, last) for first, last in (lines[0] if lines else ()))
                )
                for word, digest, *lines in parts
            }
    for path, results in written.items():
        if (record := records.get(Path(path))) is None:
            continue
        record.results = {
            entry: replace(result, rests_on=tuple(places[each] for each in rests_on))
            for (entry, result), rests_on in zip(
                (record.results or {}).items(), results, strict=True
            )
        }


def _holding(
    kept: _Kept, contents: Mapping[Path, str], texts: Mapping[Path, str] | None = None
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


def _strange(records: Mapping[Path, Record], files: AbstractSet[Path]) -> list[Path]:
    """The records that tell of files which are neither checked nor imported by those that are: not
    of our making.

    A report quotes the lines that a record names, so that a forged one would make it read any file.
    """
    told = {
        path: {Path(place) for place in _told(record)} - files for path, record in records.items()
    }
    if not any(told.values()):
        return []
    ways = {path: _followed(path, record, files) for path, record in records.items()}
    known = _reached(files, ways)
    return [path for path, places in told.items() if not places <= known]


def _told(record: Record) -> Iterator[str]:
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
    from gradlint.program.modules import edited

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


def _load(file: Path) -> _Kept:
    try:
        handle = os.open(
            file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(handle, encoding="utf-8") as stream:
            found = json.load(stream)
        records, gists, resting = found
        return _Kept(
            {Path(path): _record(written) for path, written in records.items()},
            {Path(path): _gist(*written) for path, written in gists.items()},
            str(resting),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return _Kept()


def _store(
    file: Path, records: Mapping[Path, Record], gists: Mapping[Path, tuple[str, Gist]]
) -> None:
    parts = [(str(path), word) for path, record in records.items() for word in record.parts]
    numbers = {part: number for number, part in enumerate(parts)}
    kept = {
        path: record if _can_be_written(record, numbers) else replace(record, results=None)
        for path, record in records.items()
    }
    written = [
        {str(path): _written(record) for path, record in kept.items()},
        {str(path): _written_gist(*each) for path, each in gists.items()},
        _written_resting(kept, numbers),
    ]
    _write(file, json.dumps(written, separators=(",", ":")))
    with contextlib.suppress(FileNotFoundError):  # another run does the same
        _bound(file.parent)


def _write(file: Path, text: str) -> None:
    """Puts a file of the cache into its place, at once."""
    import tempfile

    folder = file.parent
    folder.mkdir(exist_ok=True)
    if not (folder / _MARK).exists():
        (folder / _MARK).write_text(_IGNORE, encoding="utf-8")
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def _bound(folder: Path) -> None:
    """Removes what was written longest ago of a cache that has grown too large."""
    size = 0
    for part in folder.glob("*.part"):  # of a run that was killed
        if time.time() - part.stat().st_mtime > LONGEST:
            part.unlink(missing_ok=True)
    newest = sorted(
        ((each, each.stat()) for each in folder.glob("*.json")),
        key=lambda each: -each[1].st_mtime_ns,
    )
    for number, (file, state) in enumerate(newest):
        size += state.st_size
        if number >= MOST_FILES or (number and size > MOST_BYTES):
            file.unlink(missing_ok=True)


def _can_be_written(record: Record, parts: Container[Part]) -> bool:
    """A finding with a fix of its own (a plugin's) is found anew each time, and so is what a
    process died of.
    """
    if record.results is None:
        return True
    is_whole = not record.is_edited and record.results.keys() == set(record.entries)
    results = record.results.values()
    has_fix = any(finding.fix for result in results for finding in result.findings)
    return (
        is_whole
        and not has_fix
        and all(part in parts for result in results for part in result.rests_on)
    )


def _written_resting(records: Mapping[Path, Record], numbers: Mapping[Part, int]) -> str:
    """What results rest on, which most runs need not read: the texts of parts, and their numbers
    for each result.
    """
    texts = [
        [str(path), [[word, *_written_text(text)] for word, text in record.parts.items()]]
        for path, record in records.items()
    ]
    results = {
        str(path): [
            [numbers[part] for part in record.results[entry].rests_on] for entry in record.entries
        ]
        for path, record in records.items()
        if record.results is not None
    }
    return json.dumps([texts, results], separators=(",", ":"))


def _written_text(text: Text) -> list[Any]:
    return [text.digest, text.lines] if text.lines else [text.digest]


def _written(record: Record) -> list[Any]:
    imports = [
        [module, level, path and str(path)] for (module, level), path in record.imports.items()
    ]
    results = record.results
    entries = None if results is None else [
        [list(entry.function), entry.line, entry.trains, entry.contract,
            _written_result(results[entry])]
        for entry in record.entries
    ]  # fmt: skip
    fault = record.fault and [_place(record.fault.at), record.fault.message, record.fault.help]
    return [
        record.content,
        imports,
        entries,
        fault,
        record.entered,
        record.in_package,
        record.backwards,
    ]


def _written_result(result: Result) -> list[Any]:
    findings = [
        [each.code, each.name, int(each.severity), each.message, _place(each.at), each.help,
         [[_place(part.at), part.message] for part in each.related], each.step, dict(each.hints)]
        for each in result.findings
    ]  # fmt: skip
    gaps = [[gap.kind, _place(gap.at), gap.detail] for gap in result.gaps]
    return [
        findings,
        gaps,
        result.executed,
        result.was_run,
        result.reached,
        result.losses,
        _by_file(result.branches),
    ]


def _by_file(branches: Iterable[Branch]) -> list[Any]:
    """Branches as they are written: the name of a file stands there once."""
    found: dict[str, list[Any]] = {}
    for path, *rest in branches:
        found.setdefault(path, []).extend(rest)
    return list(found.items())


def _branches(written: Iterable[Any]) -> Iterator[Branch]:
    for path, numbers in written:
        rest = iter(numbers)
        yield from (Branch(path, *each) for each in zip(rest, rest, rest, strict=True))


def _place(at: Span) -> list[Any]:
    return [at.path, at.line, at.column, at.end_line, at.end_column]


def _written_gist(content: str, gist: Gist) -> list[Any]:
    return [content, gist.matters, gist.is_of_another, sorted(gist.imported), gist.speaks]


def _gist(
    content: str, matters: bool, is_of_another: bool, imported: list[str], speaks: bool
) -> tuple[str, Gist]:
    return content, Gist(matters, is_of_another, frozenset(imported), speaks)


def _record(written: list[Any]) -> Record:
    content, imports, entries, fault, entered, packaged, lines = written
    found = {(module, level): Path(path) if path else None for module, level, path in imports}
    if entries is None:
        return Record((), None, found, content, in_package=packaged)
    results = {
        Entry(tuple(function), line, trains, contract): _result(result)
        for function, line, trains, contract, result in entries
    }
    fault = fault and SyntaxFault(Span(*fault[0]), *fault[1:])
    backwards = tuple(
        Written(line, function, tuple(map(tuple, tests))) for line, function, tests in lines
    )
    return Record(
        tuple(results), results, found, content, fault, entered, packaged, backwards=backwards
    )


def _result(written: list[Any]) -> Result:
    findings, gaps, executed, was_run, reached, losses, branches = written
    return Result(
        tuple(
            Finding(code, name, Severity(severity), message, Span(*at), text,
                    tuple(Related(Span(*place), told) for place, told in related), None, step,
                    hints)
            for code, name, severity, message, at, text, related, step, hints in findings
        ),
        tuple(Gap(kind, Span(*at), detail) for kind, at, detail in gaps),
        tuple((path, line) for path, line in executed),
        was_run,
        reached=tuple((path, line) for path, line in reached),
        losses=tuple(Loss(*each) for each in losses),
        branches=tuple(_branches(branches)),
    )  # fmt: skip
