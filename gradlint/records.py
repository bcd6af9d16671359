"""Records of earlier runs: what is known of one file, and how that is written as JSON."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gradlint.coverage import Branch, Loss, Written
from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Related, Role, Severity, Span
from gradlint.interpret.gaps import Gap
from gradlint.program.entries import Entry
from gradlint.program.parts import Part, Text
from gradlint.source.parse import SyntaxFault
from gradlint.source.screen import Gist

Imports = dict[tuple[str, int], Path | None]


@dataclass(frozen=True, slots=True)
class Result:
    """What one entry came to: `executed` are the functions it ran through; `was_run`: another entry
    ran through it.

    `reached` are the calls of `backward` that it ran, by file and line; `losses` and `branches` are
    what it has shown. `leaves_open`: rules said nothing where sides that were not run may do what
    they ask for.

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
    leaves_open: bool = False


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
class Kept:
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


def can_be_written(record: Record, parts: Container[Part]) -> bool:
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


def written_resting(records: Mapping[Path, Record], numbers: Mapping[Part, int]) -> str:
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


def written_record(record: Record) -> list[Any]:
    """A record as JSON."""
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
         list(map(_written_related, each.related)), each.step, dict(each.hints)]
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
        result.leaves_open,
    ]


def _written_related(related: Related) -> list[Any]:
    return [_place(related.at), related.message, related.role and related.role.value]


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


def written_gist(content: str, gist: Gist) -> list[Any]:
    """What the bytes of a file say, as JSON."""
    return [content, gist.matters, gist.is_of_another, sorted(gist.imported), gist.speaks]


def read_gist(
    content: str, matters: bool, is_of_another: bool, imported: list[str], speaks: bool
) -> tuple[str, Gist]:
    """What was written by `written_gist`."""
    return content, Gist(matters, is_of_another, frozenset(imported), speaks)


def read_record(written: list[Any]) -> Record:
    """What was written by `written_record`."""
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


def _related(written: list[Any]) -> Related:
    place, message, role = written
    return Related(Span(*place), message, role and Role(role))


def _result(written: list[Any]) -> Result:
    findings, gaps, executed, was_run, reached, losses, branches, leaves_open = written
    return Result(
        tuple(
            Finding(code, name, Severity(severity), message, Span(*at), text,
                    tuple(map(_related, related)), None, step,
                    hints)
            for code, name, severity, message, at, text, related, step, hints in findings
        ),
        tuple(Gap(kind, Span(*at), detail) for kind, at, detail in gaps),
        tuple((path, line) for path, line in executed),
        was_run,
        reached=tuple((path, line) for path, line in reached),
        losses=tuple(Loss(*each) for each in losses),
        branches=tuple(_branches(branches)),
        leaves_open=leaves_open,
    )  # fmt: skip
