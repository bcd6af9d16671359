"""The analysis of a batch of files: their entries, run one after the other, and what the rules say
of each.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from gradlint import coverage, garbage, memo
from gradlint.contracts import contracts
from gradlint.dataclass import dataclass
from gradlint.digests import content_of, digest, digest_of_text
from gradlint.finding import Finding, Span
from gradlint.interpret.gaps import Gap
from gradlint.interpret.running import run_entry, run_more
from gradlint.interpret.session import Session
from gradlint.paths import Paths
from gradlint.program import callers
from gradlint.program.backwards import backwards
from gradlint.program.entries import Entry, Ran, entries, in_order
from gradlint.program.imports import in_package
from gradlint.program.modules import Program
from gradlint.program.parts import NOTHING, Part
from gradlint.program.texts import text_of
from gradlint.records import Record, Result
from gradlint.room import roomy
from gradlint.rule import Rule, judge, rules
from gradlint.source import document, parse
from gradlint.source.parse import SyntaxFault
from gradlint.tape import Tape

# Python frames: the interpreter nests some ten for each nested call of the program
RECURSION_LIMIT = 6_000
# bytes, as far as the system allows: what those frames take where C stands between them
STACK = 256 << 20


@dataclass(frozen=True, slots=True)
class Given:
    """What a batch is analysed with: texts that are not on disk, rules, files to enter, and what is
    known of it.
    """

    texts: dict[Path, str]
    chosen: Sequence[str]
    entered: Collection[Path]
    without_parts: Collection[Path] = ()
    records: Mapping[Path, Record] = field(default_factory=dict)
    keeps: bool = True  # what is found, for another run: then it is said, too, what that rests on


@roomy
def analyze_batch(paths: Sequence[Path], given: Given) -> dict[Path, Record]:
    """What is found in a batch of files, and of the files that they import that they were."""
    from gradlint import library

    library.load()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    _widen_stack()
    garbage.collect_seldom()
    analyzer = _Analyzer(given)
    try:
        return analyzer.analyze(paths)
    finally:
        analyzer.program.close()
        memo.forget(memo.MOST)


def _widen_stack() -> None:
    """Raises the soft limit of the stack, which grows up to it, where there is such a limit (not on
    Windows).
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))


_parsed = memo.of_texts(parse.parse)  # most files are imported by several batches


class _Analyzer:
    """Enters files one after the other; what the entries of one file have run through is not
    entered again.
    """

    def __init__(self, given: Given) -> None:
        self.given = given
        self.contents: dict[Path, str] = {}
        self.parsed: dict[Path, parse.Source | SyntaxFault | None] = {}
        self.program = Program(self._read)
        self.rules: list[Rule] = [rules()[code] for code in given.chosen]
        self.ran = Ran()
        self.rested: set[Part] = set()  # what the entries that were run rest on

    def _read(self, path: Path) -> tuple[str, ast.Module] | None:
        parsed = self._parse(path)
        return (parsed.text, parsed.tree) if isinstance(parsed, parse.Source) else None

    def _parse(self, path: Path) -> parse.Source | SyntaxFault | None:
        """The file, parsed once; None where it cannot be read."""
        if path not in self.parsed:
            text = self._text(path)
            self.parsed[path] = _parsed(str(path), text) if text is not None else None
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
        for path, entry in in_order([(path, record.entries) for path, record in made.items()]):
            results = made[path].results
            assert results is not None
            result = results[entry] = self._result(path, entry, made[path].backwards)
            self.program.leave()
            self.ran.take(entry, result)
        if self.given.keeps:
            self._note_what_was_read(made)
        return made

    def _note_what_was_read(self, made: dict[Path, Record]) -> None:
        """Adds to records what their results rest on, with records of the files that were imported
        only.
        """
        targets = {
            path
            for found in self.program.edges.values()
            for path in found.values()
            if path is not None
        }
        for path in sorted((targets | self.program.edges.keys()) - made.keys()):
            made[path] = Record((), None)
        for file, word in sorted(self.rested):
            path = Path(file)
            # else it has no word that it was looked through for
            was_read = path in self.program.sources
            made[path].parts[word] = (
                text_of(self.program.sources[path], word) if was_read else NOTHING
            )
        for path, record in made.items():
            known = self.given.records.get(path)
            record.in_package = in_package(path)
            record.take_imports(self.program.edges.get(path, {}), known)
            record.content = self.contents.get(path) or (
                known.content if known is not None else content_of(path)
            )

    def _record(self, path: Path) -> Record | None:
        """What is known of a file before its entries are run; None where it cannot be read."""
        entered = path in self.given.entered
        known = self.given.records.get(path)
        if known is not None and known.results is not None and not known.is_edited:
            return Record(
                known.entries, {}, fault=known.fault, entered=entered, backwards=known.backwards
            )
        parsed = self._parse(path) if entered else self._looked_at(path)
        if parsed is None:
            return None
        if isinstance(parsed, SyntaxFault):
            return Record((), {}, fault=parsed, entered=entered)
        if not entered:
            return Record((), {}, entered=False)
        has_parts = path not in self.given.without_parts
        found = tuple(entry for entry in entries(parsed) if has_parts or not entry.contract)
        return Record(found, {}, backwards=backwards(parsed))

    def _looked_at(self, path: Path) -> parse.Source | SyntaxFault | None:
        """A file that is of no use but for whether it parses."""
        text = self._text(path)
        return parse.parse(str(path), text) if text is not None else None

    def _result(self, path: Path, entry: Entry, written: Sequence[coverage.Written]) -> Result:
        known_run = self.ran.through(path, entry, written)
        known = self.given.records[path].result(entry) if path in self.given.records else None
        if known is not None and known.was_run == known_run:
            return known
        return Result((), (), was_run=True) if known_run else self._entry(path, entry)

    def _entry(self, path: Path, entry: Entry) -> Result:
        session = Session(self.program)
        self.program.dependencies.asked, self.program.entered = set(), path
        try:
            tapes = run_entry(self.program, path, entry, session)
            more = functools.partial(run_more, self.program, path, entry, session)
            found = tuple(self._judged(path, entry, tapes, more))
        except Exception as error:  # one entry's mistake must not cost the others
            import logging

            logging.getLogger(__name__).debug("%s:%s", path, entry.name, exc_info=True)
            gap = Gap(
                "internal",
                Span(str(path), entry.line, 1, entry.line, 1),
                f"{entry.name}: {type(error).__name__}: {error}",
            )
            return Result((), (gap,), _places(session), rests_on=self._rests_on())
        gaps = tuple(sorted(session.gaps, key=lambda gap: gap.sort_key))
        reached, losses = tuple(sorted(session.reached)), coverage.losses(tapes)
        return Result(
            found,
            gaps,
            _places(session),
            False,
            self._rests_on(),
            reached,
            losses,
            _branches(session),
            session.leaves_open,
        )

    def _judged(
        self,
        path: Path,
        entry: Entry,
        tapes: Sequence[Tape],
        more: Callable[[Sequence[Tape], Paths], Sequence[Tape]],
    ) -> list[Finding]:
        """What the rules say of the tapes of an entry; of a part, those that its contract lets
        speak.
        """
        if not entry.contract:
            return judge(self.rules, tapes, more)
        contract = contracts()[entry.contract]
        found = judge([rule for rule in self.rules if contract.may_speak(rule.code)], tapes, more)
        if found and contract.is_trained and self._is_measured(path, entry):
            return []
        return [
            replace(each, severity=min(each.severity, contract.most))
            for each in found
            if contract.lets(each)
        ]

    def _is_measured(self, path: Path, entry: Entry) -> bool:
        """Whether all that call a part in the files in view do so with grad mode off."""
        name = entry.function[0]
        return callers.are_ungraded(
            name, [source.tree for source in self.program.users(path, name)]
        )

    def _rests_on(self) -> tuple[Part, ...]:
        """The parts of files that the entry that was just run has come to, where that is kept."""
        if not self.given.keeps:
            return ()
        found = self.program.dependencies.all_of(self.program.dependencies.asked)
        self.rested |= found
        return tuple(sorted(found))


def _places(session: Session) -> tuple[tuple[str, int], ...]:
    """The functions that an entry ran through, by file and line."""
    return tuple(sorted({(node.code.path, node.source.lineno) for node in session.executed}))


def _branches(session: Session) -> tuple[coverage.Branch, ...]:
    """The branches that the paths of an entry have met, in the files of the program."""
    driver = session.driver[0].path if session.driver is not None else None
    seen = [each for each in session.visited.values() if each.at.file != driver]
    found = (
        (each.at.file, *each.at.test.at[:2], sum(1 + side for side in each.sides)) for each in seen
    )
    return tuple(sorted(coverage.Branch(*each) for each in found))


def tapes_of(path: Path) -> Iterator[Tape]:
    """The tapes of every entry of a file, for tests and debugging."""
    from gradlint import library

    library.load()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    path = path.resolve()
    analyzer = _Analyzer(Given({}, [], [path]))
    parsed = analyzer._parse(path)
    if isinstance(parsed, parse.Source):
        for entry in entries(parsed):
            yield from run_entry(analyzer.program, path, entry, Session(analyzer.program))
