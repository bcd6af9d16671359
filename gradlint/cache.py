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
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from gradlint.dataclass import dataclass
from gradlint.digests import digest
from gradlint.errors import UserError
from gradlint.holding import holding, importers, reached, strange
from gradlint.records import (
    Kept,
    Record,
    can_be_written,
    read_gist,
    read_record,
    written_gist,
    written_record,
    written_resting,
)
from gradlint.rule import packages
from gradlint.source.screen import Gist

FOLDER = ".gradlint_cache"
MOST_FILES = 64  # choices of rules and files; the oldest go first
MOST_BYTES = 200 << 20  # of all of them
LONGEST = 3600  # seconds that writing one takes at most
_STAMP = "stamp"
_MARK, _IGNORE = ".gitignore", "# made by gradlint\n*\n"


@dataclass(slots=True)
class Cache:
    """The records that still hold, and where they are kept; without a file, nothing is."""

    file: Path | None = None
    records: dict[Path, Record] = field(default_factory=dict)
    # each with what stands for its content
    gists: dict[Path, tuple[str, Gist]] = field(default_factory=dict)
    _kept: Kept = field(default_factory=lambda: Kept())
    has_more: bool = False  # than its file

    @classmethod
    def of(cls, before: Cache, contents: Mapping[Path, str], texts: Mapping[Path, str]) -> Cache:
        """What still holds of an earlier analysis of the same files; nothing is kept in a file.

        `texts` are those that differ from what is on disk.
        """
        before._kept.whole()
        return cls(None, dict(holding(Kept(before.records), contents, texts)), dict(before.gists))

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
        records = holding(kept, contents)
        for path in strange(records, frozenset(files)):
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
    texts = _texts_of(tuple(found), state)
    if folder.is_dir():
        # where nothing can be kept, that is told when results are written
        with contextlib.suppress(OSError):
            _write(folder / _STAMP, json.dumps({"state": state, "texts": texts}))
    return texts


@functools.lru_cache(maxsize=1)
def _texts_of(found: tuple[tuple[Path, Path], ...], state: str) -> str:
    """What stands for the texts of the files, in the state in which they are."""
    return digest(
        "".join(
            f"{path.relative_to(top)} {digest(path.read_bytes())}\n" for top, path in found
        ).encode()
    )


def _read_stamp(file: Path) -> Mapping[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}


class Grounds:
    """What the analysis of a file and of those that import it rests on, in one word."""

    def __init__(self, records: Mapping[Path, Record]) -> None:
        self._records = records
        self._importers = importers(records)
        self._imported = {
            path: [target for target in record.imports.values() if target is not None]
            for path, record in records.items()
        }
        self.of = functools.cache(self._of)
        self._word = functools.cache(self._word_of)

    def _of(self, path: Path) -> str:
        files = reached(reached([path], self._importers), self._imported)
        return digest(
            "".join(sorted(self._word(file) for file in files if file in self._records)).encode()
        )

    def _word_of(self, file: Path) -> str:
        """What stands for a file: its path, its content and where its imports lead."""
        record = self._records[file]
        return digest(
            os.fsencode(repr((str(file), record.content, sorted(map(str, record.imports.items())))))
        )


def _load(file: Path) -> Kept:
    try:
        handle = os.open(
            file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(handle, encoding="utf-8") as stream:
            found = json.load(stream)
        records, gists, resting = found
        return Kept(
            {Path(path): read_record(written) for path, written in records.items()},
            {Path(path): read_gist(*written) for path, written in gists.items()},
            str(resting),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return Kept()


def _store(
    file: Path, records: Mapping[Path, Record], gists: Mapping[Path, tuple[str, Gist]]
) -> None:
    parts = [(str(path), word) for path, record in records.items() for word in record.parts]
    numbers = {part: number for number, part in enumerate(parts)}
    kept = {
        path: record if can_be_written(record, numbers) else replace(record, results=None)
        for path, record in records.items()
    }
    written = [
        {str(path): written_record(record) for path, record in kept.items()},
        {str(path): written_gist(*each) for path, each in gists.items()},
        written_resting(kept, numbers),
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
