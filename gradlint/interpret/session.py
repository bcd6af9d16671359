"""What the paths of one entry share: the program, symbols, gaps; and the run of an entry along its
paths.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradlint import memo, tape
from gradlint.finding import Span
from gradlint.interpret import (
    annotated,
    calls,
    conditions,
    driving,
    iteration,
    paths,
    search,
    settling,
    sweeps,
)
from gradlint.interpret.cases import cases, is_a_case
from gradlint.interpret.facts import Member
from gradlint.interpret.gaps import Gap, GiveUp
from gradlint.interpret.lineage import canonical, is_a
from gradlint.interpret.machine import (
    MAX_OF_TESTS,
    MAX_STEPS,
    TRAINING,
    Frame,
    Loop,
    Machine,
    Raised,
    Stop,
)
from gradlint.interpret.paths import Oracle, Restart
from gradlint.interpret.periods import BATCHES, Numbers, Period, Periods
from gradlint.interpret.registry import ENTRIES, FUNCTIONS, TYPES, notify
from gradlint.interpret.statements import ROUNDS
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import lower
from gradlint.ir import nodes as ir
from gradlint.paths import Paths
from gradlint.program import contexts, fields, hazards, parts, summaries
from gradlint.program.entries import Entry, is_test, steps
from gradlint.program.modules import Program
from gradlint.program.sources import Source
from gradlint.source import effects

RESTARTS = 8  # of one entry
MOST_AHEAD = 2  # rounds that are shown of a loop over numbers because branches ask for them
MOST_STEPS = 40_000  # of one entry, on all of its paths: some half a second
MOST_PASSED_OVER = 6  # calls in an entry that take too many steps, and others that raise
MOST_PASSING_OVER = 3 * MOST_STEPS  # of an entry, until it is begun again without such a call
_TRAINS = tape.May.STEP | tape.May.CLEAR | tape.May.BACKWARD | tape.May.HOLD
# paths that exceptions have ended, from the first on, after which it is taken to train nothing
MOST_LOST = 3
MOST_SILENT = 2_000  # of a script that does not speak of training, and has come to none
MOST_UNTRAINED = 4_000  # of them, while no path has come to a part of a training step
MOST_OF_A_PART = MAX_STEPS  # of a part, on one path
MOST_OF_A_PARTS_PATHS = 6_000  # behind which no more are begun
# of the constructor of what is entered and trains nothing; then nothing is known of the object
MOST_PREPARING = 2_500
MOST_PREPARING_A_PART = 30_000
_LOADERS = ("loader", "dataset", "batches", "dataiter", "data_iter")


class Session:
    """One entry: shared by its paths."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.gaps: set[Gap] = set()
        self.executed: set[Any] = set()
        # the calls of `backward` that were run, by file and line
        self.reached: set[tuple[str, int]] = set()
        self.modules: dict[Symbol, tape.Module] = {}
        self.stars: list[str] = []
        self.batches = BATCHES
        self.restarts = 0
        self.steps = 0
        self.settled = 0  # of these, those of the paths that rules have asked for
        self.periods = Periods()
        # what training loops run over: each has as many batches as the loop has rounds
        self.loaders: set[Symbol] = set()
        # functions that the analysis has ended in, and by what kind of gap
        self.passed_over: dict[ir.Node, str] = {}
        # of each path that an exception has ended, what it has ended
        self.raised: list[list[Function]] = []
        self.learns: set[ir.Node] = set()  # other loops in whose rounds a backward runs
        self.elsewhere: fields.Elsewhere | None = None  # what methods do that it does not lead to
        self.misses: Callable[[], frozenset[str] | None] = lambda: None
        self.is_uncounted = False  # a counter was met in no loop that is known to train
        self.may_train = True  # for all that is said where the entry stands
        self.contract = ""  # of a part
        self.entered: ir.Code | None = None  # the file of a part
        self.driver: tuple[ir.Code, list[ir.Node]] | None = None  # of a part: what calls it
        self.most = MAX_STEPS  # on one path that comes to training
        self.has_trained = False  # a path has come to a part of a training step
        self.lost = 0  # paths that exceptions have ended, from the first on
        # answers have kept a path from it, which can be turned round
        self.looks_for_training = False
        self.has_learned = False  # a path has come to a backward or a step
        self.visited: dict[paths.Site, paths.Visited] = {}  # the branches that its paths have met
        # whether a path has come to the end of the `__init__` that makes the entry's object
        self.makes = False
        self.made: set[str] = set()  # the attributes that the object had then, on any path
        self.has_shown = False  # whether a loop was run for a length that is known
        # the loops in which a counter meets an unknown number
        self.guesses: set[ir.Node | None] = set()
        # the rounds of loops over numbers that branches ask for
        self._ahead: dict[ir.Node | None, set[int]] = {}
        self._windows = 1  # that a loop shows: one where a loop around it comes back to it
        self._constants: dict[object, Symbol] = {}
        self._libraries: dict[str, Symbol] = {}
        # where an unknown key is one of a dict's
        self._sites: dict[tuple[ir.Node, object], ir.Node] = {}
        self._parameters: dict[tuple[int, str], Symbol] = {}
        # classes that annotations take for objects
        self.blocks: dict[Symbol, tuple[list[Class], ir.Node, Frame]] = {}
        # what parameters are that callers leave out, where that is written
        self.settings: dict[Symbol, Abstract] = {}
        # of the program, of which parameters are by their annotations
        self.classes: dict[Symbol, Class] = {}
        self._rounds: dict[int, tuple[bool, bool]] = {}

    # symbols

    def constant_symbol(self, value: object) -> Symbol:
        kind = type(value)
        key = (kind, value if kind in (str, int, bool) else repr(value))
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = Symbol(repr(value))
        return known

    def is_constant(self, symbol: Symbol) -> bool:
        """Whether it stands for a constant that is written in the program, or for a name of a
        library.
        """
        return symbol in self._constants.values()

    def site(self, node: ir.Node, word: object) -> ir.Node:
        """The branch at which it is asked whether the key of a look-up is some word."""
        return self._sites.setdefault((node, word), ir.Literal(node.at, word))

    def is_of_library(self, symbol: Symbol) -> bool:
        """Whether it stands for a function or class of a library."""
        return self._libraries.get(symbol.text) is symbol

    def library_symbol(self, name: str) -> Symbol:
        if name not in self._libraries:
            self._libraries[name] = Symbol(name)
        return self._libraries[name]

    def parameter(self, m: Machine, function: Function, parameter: ir.Parameter) -> Abstract:
        """What a parameter is that no caller is seen to pass: unknown, of the type that its
        annotation names.
        """
        key = (id(function.node), parameter.name)
        if key not in self._parameters:
            self._parameters[key] = Symbol(parameter.name)
            if isinstance(parameter.default, ir.Literal):
                self.settings[self._parameters[key]] = Const(parameter.default.value)
        symbol = self._parameters[key]
        if m.oracle.prepares:
            m.state.setdefault("made with", set()).add(symbol)
        typed = self._annotated(m, function, parameter, symbol)
        if typed is not None:
            return typed
        name = parameter.name.lower()
        is_data = any(word in name for word in _LOADERS) or is_a_case(function.node, parameter.name)
        return Unknown(symbol, data=is_data)

    def is_given(self, symbol: Symbol) -> bool:
        """Whether it is a parameter that no caller is seen to pass, or a plain part of one:
        `config.amp`.
        """
        while symbol.source is not None:
            if not isinstance(symbol.key, tuple) or symbol.key[0] not in ("attribute", "item"):
                return False
            symbol = symbol.source
        return symbol in self._parameters.values()

    def _annotated(
        self, m: Machine, function: Function, parameter: ir.Parameter, symbol: Symbol
    ) -> Abstract | None:
        if parameter.annotation is None or isinstance(parameter.annotation, ir.Literal):
            return None
        written = _besides_none(parameter.annotation)
        if self.contract and (classes := annotated.classes(m, written, function.scope)):
            return _one_of(m, classes, symbol, written, function.scope)
        if self.contract and m.oracle.prepares and symbol not in self.blocks:
            named = annotated.classes(m, written, function.scope, within=True)
            self.blocks[symbol] = (
                [cls for cls in named if calls.is_module(cls)],
                written,
                function.scope,
            )
        items = annotated.of_tuple(m, written, function.scope)
        if items:
            own = [
                symbol.derive(("item", position), f"{symbol.text}[{position}]")
                for position in range(len(items))
            ]
            typed = [
                self._typed(m, function, parameter, *each) for each in zip(items, own, strict=True)
            ]
            known = [each or Unknown(item) for each, item in zip(typed, own, strict=True)]
            return (
                Sequence("tuple", known)
                if any(isinstance(each, Object) for each in typed)
                else None
            )
        made = self._typed(m, function, parameter, written, symbol)
        is_plain = isinstance(made, Unknown) and made.type in _FIELDS.values()
        return made if is_plain or written is parameter.annotation else None

    def _typed(
        self,
        m: Machine,
        function: Function,
        parameter: ir.Parameter,
        written: ir.Node,
        symbol: Symbol,
    ) -> Abstract | None:
        annotation = m.evaluate(written, function.scope)
        if isinstance(annotation, Class):
            self.classes[symbol] = annotation
        maker = TYPES.get(canonical(annotation.name)) if isinstance(annotation, Lib) else None
        return maker(m, symbol, function, parameter) if maker is not None else None

    def called_as(self, m: Machine, symbol: Symbol) -> Class | None:
        """The class that a constructor is given where it calls what its annotation says to be an
        object of it.

        `block: Union[Basic, Bottleneck]` of `self.layer = block(width)`: timm's way to write
        `type[…]`
        """
        if not m.oracle.prepares or symbol not in self.blocks:
            return None
        classes, written, scope = self.blocks[symbol]
        return _one_of(m, classes, symbol, written, scope) if classes else None

    def kind_of_field(self, owner: Symbol, name: str) -> str:
        """What the class of a parameter says that an attribute is: a number, a bool or a string; ""
        for others.
        """
        cls = self.classes.get(owner)
        lineage = (
            [each for each in cls.lineage() if isinstance(each, Class)] if cls is not None else []
        )
        kinds = (
            kind
            for each in lineage
            if (kind := _FIELDS.get(_annotation_of(each, name))) is not None
        )
        return next(kinds, "")

    # names

    def is_builtin(self, name: str) -> bool:
        return hasattr(builtins, name)

    def missing(self, frame: Frame, name: str) -> Abstract:
        """A name that nothing in sight binds."""
        for module in self.stars:
            if f"{module}.{name}" in FUNCTIONS:
                return Lib(f"{module}.{name}")
        return Unknown(self.library_symbol(f"{frame.code.path}:{name}").derive("name", name))

    def member_of(self, cls: Class, name: str) -> Abstract | None:
        """A member of the program's part of a class's lineage."""
        for entry in cls.lineage():
            if isinstance(entry, Class) and name in entry.namespace:
                return entry.namespace[name]
        return None

    def may_do(self, block: ast.AST, wanted: tape.May, tree: ast.Module) -> bool:
        """Whether a block of a file may have one of these effects on tensors."""
        return hazards.may(block, wanted, tree)

    def has_model(self, name: str) -> bool:
        return canonical(name) in FUNCTIONS

    # loops

    def rounds(self, node: ir.For | ir.While) -> int:
        trains, _ = self._kind(node)
        return self.batches if trains else ROUNDS

    def wanted(self, node: ir.For | ir.While, frame: Frame) -> int:
        """The rounds of a generator's own loop: as many values as the loop over the generator would
        take.
        """
        return 0 if self._kind(node)[1] else frame.wanted

    @property
    def listed(self) -> int:
        """How many items of something without a known end a list of them has: with counters about,
        a whole window.
        """
        return self.batches if self.batches > BATCHES else ROUNDS

    def shown(self, length: int, loop: Loop | None = None) -> int:
        """In how many rounds to show a loop of a known length: with the same remainder for every
        counter.

        Whether an unknown number divides it nobody knows: then there is a remainder.
        """
        if (loop.node in self.guesses) if loop is not None and loop.over else self.guesses:
            return self.batches
        self.has_shown = True
        return length if length <= self.batches and self.periods.are_written else self.like(length)

    def listed_as(self, listed: int) -> int:
        """How many items to keep of a list that was made of so many, which can stand for more."""
        if listed <= iteration.MOST_SHOWN:
            return self.shown(listed)
        common = self.periods.common
        return listed - (listed - self.batches) // common * common

    def items(self, length: int) -> int:
        """How many items to list of a known number: a few are listed as they are, and of many more
        than a few.
        """
        if self.guesses:
            return self.batches
        self.has_shown = True
        most = iteration.MOST_SHOWN
        return length if length <= most else self.periods.like(length, most + 1)

    def like(self, length: int) -> int:
        """Rounds enough for a window, with the remainder that a loop of this length leaves to every
        counter.
        """
        self.has_shown = True
        return self.periods.like(length, self.batches)

    def numbers(self, known: range, rounds: int) -> list[int]:
        """The numbers of the rounds shown of a longer loop: half of them late ones, at which all
        counters are as far as they would be; the very last one, where they leave its remainder.
        """
        period, late = self.periods.common, rounds // 2
        skipped = max(0, len(known) - rounds) // period * period
        shown = [*known[: rounds - late], *known[skipped + rounds - late : skipped + rounds]]
        if self.periods.stand_for(len(known), len(known)):
            shown[-1] = known[-1]
        return shown

    def look_ahead(self, node: ir.Node | None, number: int) -> None:
        """A branch asks for a round that a loop over numbers does not show: the entry is run again,
        with that round.
        """
        asked = self._ahead.setdefault(node, set())
        if number not in asked and len(asked) < MOST_AHEAD:
            asked.add(number)
            self.restart()

    def ahead(self, loop: Loop) -> set[int]:
        """The rounds that branches ask for of a loop over numbers; none where its rounds are those
        of counters.
        """
        counts = loop.rounds == self.batches and self.periods
        return set() if counts else self._ahead.get(loop.node, set())

    def trains(self, m: Machine) -> bool:
        """Whether the innermost loop is one that must not run over many rounds."""
        return bool(m.loops) and m.loops[-1].over != ""

    def takes_batches(self, m: Machine) -> bool:
        """Whether the innermost loop is one that trains, and has as many rounds as there are
        batches.
        """
        return self.trains(m) and m.loops[-1].rounds == self.batches

    def _kind(self, node: ir.For | ir.While) -> tuple[bool, bool]:
        return self._rounds.get(id(node)) or _trains(node)

    def counted(self, m: Machine, number: Const) -> None:
        """A counter met `% number`, or a window of as many micro-batches."""
        if type(number.value) is int:
            written = number.value if number.written is None else number.written
            self.comes_to(
                m,
                ("every", written),
                Period(written, number.value),
                Numbers((written, written - 1)),
            )

    def comes_to(self, m: Machine, place: object, period: Period, numbers: Numbers) -> None:
        """A counter will come to a number, and then begin again: the entry is run again, with
        rounds enough for whole windows and a remainder.
        """
        loop = self.counting(m)
        self.is_uncounted |= loop is None
        if period.shown < 2 or loop is None:
            return
        windows = self._windows if any(map(_repeats, m.loops[: m.loops.index(loop)])) else 2
        if self.periods.meets(place, period, numbers, loop.length) or windows != self._windows:
            self._windows = windows
            self._run_longer()

    def came_round(self, place: object, shown: int) -> None:
        """A counter has begun again, so many rounds behind where it began before."""
        if shown > 1 and self.periods.sees(place, shown):
            self._run_longer()

    def _run_longer(self) -> None:
        rounds = self.periods.rounds(self._windows)
        if rounds != self.batches or self.has_shown or not self.periods.are_written:
            self.batches = rounds
            self.restart()

    def counting(self, m: Machine) -> Loop | None:
        """The loop whose rounds a counter counts: the innermost that trains, not one over callbacks
        within it.

        None where the driver of a part trains: how many rounds there are says nothing.
        """
        if self.contract:
            return None
        return next(
            (loop for loop in reversed(m.loops) if loop.over and self._takes_batches(m, loop)), None
        )

    def leads_to_training(self, m: Machine) -> None:
        """Takes the innermost loop for one that trains: a branch in it leads there, which is not
        come to yet.
        """
        loop = m.loops[-1] if m.loops else None
        if loop is not None and loop.over and isinstance(loop.node, ir.For | ir.While):
            self._rounds[id(loop.node)] = (True, False)
            self.restart()

    def _takes_batches(self, m: Machine, loop: Loop) -> bool:
        return loop.rounds == self.batches or self._admit(m, loop)

    def guess(self, m: Machine) -> None:
        """A counter met an unknown number, which is taken to be a small one."""
        if self.contract:
            return
        loop = self.counting(m) or m.loops[-1]
        if loop.node not in self.guesses:
            self.guesses.add(loop.node)
            if self.has_shown:
                self.restart()

    def _admit(self, m: Machine, loop: Loop) -> bool:
        """Takes a loop for one that trains, where a backward runs in a round of it and in none of a
        loop within it.

        A round of a generator's own loop is one of the loop over the generator.
        """
        node = loop.node
        if not isinstance(node, ir.For | ir.While):
            return False
        own = {loop.number, *loop.fed_by}
        if not any(_innermost(m, sink) in own for sink in m.sinks):
            return False
        self._rounds[id(node)] = (True, False)
        self.restart()
        return True

    def trains_in(self, node: ir.Comprehension) -> None:
        """A backward ran in a round of a comprehension, and in none of a loop within it: that is a
        loop that trains.
        """
        if not self.is_training(node):
            self._rounds[id(node)] = (True, False)
            self.restart()

    def is_training(self, node: ir.Comprehension) -> bool:
        """Whether a comprehension was seen to train."""
        return id(node) in self._rounds

    def runs_over(self, m: Machine, loader: Symbol) -> None:
        """A loop runs over something unknown: where that is a training loop, its length is the
        number of its rounds.
        """
        loop = m.loops[-1] if m.loops else None
        if (
            loop is not None
            and loop.over
            and loop.rounds == self.batches
            and loader not in self.loaders
        ):
            self.loaders.add(loader)
            if "len" in loader.derived:
                self.restart()

    def trained(self, m: Machine, sink: tape.Backward) -> None:
        """A backward runs: the loop around it runs over batches. Runs the entry again, where one
        was asked for None.
        """
        number = _innermost(m, sink)
        loop = next((loop for loop in m.loops if loop.number == number), None)
        if loop is None or loop.node is None or loop.node in self.learns:
            return
        if loop.hands_on & m.state.get("asked for none", set()):
            self.learns.add(loop.node)
            self.restart()

    def gives_batches(self, m: Machine, source: Symbol) -> bool:
        """Whether the items of something are batches: a loop that trains runs over it."""
        return source in self.loaders or any(
            source in loop.hands_on for loop in m.loops if loop.node in self.learns
        )

    def passes_over(self, m: Machine, running: Iterable[Function]) -> None:
        """A path has ended for its steps, before any training: the outermost call that cannot train
        is not run again.

        `rows = transfers(names)`, three loops over names: what they come to is not known, and the
        path goes on.
        """
        if self.may_train and not self.contract and not m.has_trained():
            self._pass_over(reversed(list(running)), "steps")

    def gets_past(self) -> None:
        """Exceptions have ended paths, and none has trained: the innermost call that cannot train
        is not run again.

        `def get_model(self): raise NotImplementedError`: there are subclasses out of view.
        """
        if self.has_learned or not self.may_train or self.contract:
            return
        for running in self.raised:
            self._pass_over(running, "raises")

    def _pass_over(self, running: Iterable[Function], kind: str) -> None:
        if (
            sum(each == kind for each in self.passed_over.values()) == MOST_PASSED_OVER
            or self.steps > MOST_PASSING_OVER
        ):
            return
        for function in running:
            if not self._may_train(function.node, kind):
                self.passed_over[function.node] = kind
                raise Restart

    def may_lead_to(self, branching: paths.Branching, holds: bool, may: tape.May) -> bool:
        """Whether a side of a branch may have one of these effects, in what it calls, too."""
        return summaries.may_of_side(self.program, branching.file, branching.test.at, holds, may)

    def _may_train(self, node: ir.Function, kind: str) -> bool:
        """Whether a function must be run; one that raises on all paths is not, unless a backward
        stands in it.
        """
        if kind == "raises":
            return self.is_written(node.source, node.code.path, tape.May.BACKWARD)
        return summaries.may(self.program, [node.source], _TRAINS)

    def is_written(self, node: ast.AST, file: str, wanted: tape.May) -> bool:
        """Whether an event with one of these effects stands in a statement, or in what it calls in
        its own file.
        """
        return summaries.is_written(self.program, node, file, wanted)

    def restart(self) -> None:
        """Runs the entry again, from its first path on, a few times at most."""
        self.restarts += 1
        if self.restarts <= RESTARTS:
            raise Restart


def _besides_none(annotation: ir.Node) -> ir.Node:
    """What something is that can also be None: `int` of `Optional[int]` and of `int | None`."""
    match annotation:
        case ir.Subscript(
            target=ir.Name(id="Optional") | ir.Attribute(name="Optional"), index=inner
        ):
            return inner
        case ir.Binary(op="|", left=inner, right=ir.Literal(value=None)):
            return inner
        case ir.Binary(op="|", left=ir.Literal(value=None), right=inner):
            return inner
    return annotation


_FIELDS = {"bool": "bool", "int": "number", "float": "number", "str": "str"}


def _annotation_of(cls: Class, name: str) -> str:
    """The name that a class annotates an attribute with: of `std: float = 0.02`, float."""
    for statement in cls.node.body:
        match statement:
            case ir.Declare(name=found, annotation=ir.Name(id=kind)) if found == name:
                return kind
            case ir.Assign(targets=[ir.Name(id=found)], annotation=ir.Name(id=kind)) if (
                found == name
            ):
                return kind
    return ""


def _one_of(m: Machine, classes: list[Class], symbol: Symbol, node: ir.Node, frame: Frame) -> Class:
    """The class of the program that a part is given, by its annotation; each of several on a path
    of its own.
    """
    *others, last = classes
    for number, cls in enumerate(others):
        is_it = Unknown(symbol.derive(("class", number), cls.name), data=True, type="bool")
        known = len(m.oracle.decisions)
        holds = conditions.decide(m, is_it, node, frame)
        made = m.oracle.decisions[known:]
        m.oracle.decisions[known:] = [
            replace(each, text=f"{symbol.text} is {cls.name}") for each in made
        ]
        if holds:
            return cls
    return last


def _innermost(m: Machine, sink: tape.Backward) -> int | None:
    """The loop in whose rounds a backward runs, by number; one over callables that are called is no
    such loop.
    """
    return next(
        (number for number, _ in reversed(sink.iteration) if number not in m.over_callables), None
    )


@memo.of_programs
def _trains(loop: ir.For | ir.While) -> tuple[bool, bool]:
    """Whether its statements, not counting loops within them, hold a part of a training step;
    whether they loop.
    """
    found = effects.own(loop.source)
    loops = any(isinstance(each, effects.LOOPS) for each in found.inner)
    return found.trains and not loops, loops


def _repeats(loop: Loop) -> bool:
    """Whether a loop of the program is run more than once."""
    return bool(loop.over) and loop.rounds > 1


def run_entry(program: Program, path: Path, entry: Entry, session: Session) -> list[tape.Tape]:
    """The tapes of one entry, one for each path that was run."""
    Symbol.part()  # those of the entry before, which nobody asks about any more
    known = program.bound()
    session.may_train = entry.trains
    session.most = MAX_OF_TESTS if is_test(path, entry) else MAX_STEPS
    source = program.source(path)
    if entry.contract and source is not None:
        session.most = MOST_OF_A_PART
        at = source.code.span((entry.line, 0, entry.line, 0))
        session.contract, session.entered = entry.contract, source.code
        session.driver = driving.driver_of(entry.contract, at, _name_of_part(entry))
    while True:
        try:
            tapes = list(_paths(program, path, entry, session))
            session.gets_past()
        except Restart:
            program.forget(known)
            session.executed.clear()  # the paths are run anew, those first that may not come to it
            session.reached.clear()
            session.makes = False
            continue
        if session.restarts > RESTARTS:
            session.gaps.add(Gap("restarts", _head(program, path, entry), entry.name))
        if entry.contract and not any(map(_is_judged, tapes)):
            reason = (
                "every path raises"
                if all(made.complete for made in tapes)
                else "its paths are too long"
            )
            session.gaps.add(Gap("part", _head(program, path, entry), f"{entry.name}: {reason}"))
        _note_untaken(session, tapes)
        return tapes


def run_more(
    program: Program,
    path: Path,
    entry: Entry,
    session: Session,
    tapes: Iterable[tape.Tape],
    asked: Paths,
) -> list[tape.Tape]:
    """The tapes of an entry, with those of paths that take the sides which rules have asked for.

    What a contract lets rules say of a part does not wait for sides that may do something.
    """
    run = functools.partial(_path, program, path, entry, session)
    may = tape.May(0) if entry.contract else asked.unsettled
    more = list(settling.settle(session, run, may, asked.unturned))
    found = [*tapes, *more]
    if more:
        _note_untaken(session, found)
    return found


def _note_untaken(session: Session, tapes: Iterable[tape.Tape]) -> None:
    """Has the tapes answer for the sides that none of them took."""
    for made in tapes:
        made.unrun = functools.cache(functools.partial(settling.is_open, session, made.branches))


def _is_judged(made: tape.Tape) -> bool:
    """Whether the driver of a part came to its backward, or to the end: of what measures or makes
    something.
    """
    ended = any(
        isinstance(event, tape.End) and event.raised != "exception" for event in made.events
    )
    return made.complete and (
        ended or any(event.assumed for event in made.events if isinstance(event, tape.Backward))
    )


def _name_of_part(entry: Entry) -> str:
    """What the user calls it: a function, or the class whose objects are called."""
    return entry.function[0] if len(entry.function) == 2 else entry.name.rpartition(".")[2]


def _path(
    program: Program, path: Path, entry: Entry, session: Session, oracle: Oracle
) -> tape.Tape:
    """The tape of the path on which the branches go as the oracle answers."""
    program.reset()
    machine = Machine(f"{path}:{entry.name}", oracle, session)
    try:
        machine.tape.complete = _run(machine, program, path, entry)
    finally:
        session.steps += machine.steps
    session.looks_for_training |= bool(oracle.sought)
    machine.tape.decisions = conditions.decided(machine)
    return machine.tape


def _paths(program: Program, path: Path, entry: Entry, session: Session) -> Iterator[tape.Tape]:
    def is_enough(made: tape.Tape) -> bool:
        session.has_trained |= any(isinstance(event, TRAINING) for event in made.events)
        session.has_learned |= any(
            isinstance(event, tape.Backward | tape.OptimizerStep) for event in made.events
        )
        session.lost = session.lost + 1 if paths.is_lost(made) else MOST_LOST
        return session.steps > _most(session, entry)

    def cut_short() -> None:
        session.gaps.add(Gap("paths", _head(program, path, entry), entry.name))

    session.has_trained, session.has_learned, session.lost, session.raised = False, False, 0, []
    session.misses = functools.partial(
        _misses, session, None if entry.function else program.source(path)
    )
    session.looks_for_training = False
    session.visited, session.reached = {}, set()
    run = functools.partial(_path, program, path, entry, session)
    bounds = paths.ALL
    if entry.contract:
        bounds = paths.OF_A_PART
    elif is_test(path, entry):
        bounds = paths.of_a_test()
    return search.explore(
        run,
        lambda: session.steps,
        is_enough,
        cut_short,
        session.visited,
        bounds,
        misses=session.misses,
        sweep=functools.partial(sweeps.sweep, session, run, bounds),
    )


def _misses(session: Session, script: Source | None) -> frozenset[str] | None:
    """The names that are asked around calls of `backward` to which no path came; None where there
    are no such calls.

    Of functions that were run, and of the top of a script.
    """
    if not session.may_train or session.contract:
        return None
    own = [(script.code.path, step) for step in steps(script.tree, 0)] if script is not None else []
    found = [
        (node.code.path, step)
        for node in session.executed
        for step in steps(node.source, node.source.lineno)
    ]
    missed = [
        step for path, step in (*own, *found) if (path, step.written.line) not in session.reached
    ]
    return frozenset[str]().union(*(step.asked for step in missed)) if missed else None


def _head(program: Program, path: Path, entry: Entry) -> Span:
    """Where an entry begins."""
    source = program.source(path)
    assert source is not None
    return source.code.span((entry.line, 0, entry.line, 0))


def _most(session: Session, entry: Entry) -> int:
    """The steps that the paths of an entry may take together, by what those that were run have come
    to.
    """
    if entry.contract:
        return MOST_OF_A_PARTS_PATHS
    looks = (
        session.has_trained
        or session.looks_for_training
        or (session.may_train and session.lost < MOST_LOST)
    )
    if looks or session.misses() is not None:
        return MOST_STEPS
    return MOST_UNTRAINED if session.may_train or entry.function else MOST_SILENT


def _run(m: Machine, program: Program, path: Path, entry: Entry) -> bool:
    source = program.source(path)
    assert source is not None
    raised, at = "", source.code.span((1, 0, 1, 0))
    try:
        if entry.contract == "statement":
            _run_statement(m, program, path, entry)
        elif entry.function:
            _enter(m, program, path, entry)
        else:
            frame = Frame(
                source.code, {"__name__": Const("__main__"), "__file__": Const(str(path))}
            )
            program.scripts.append(frame)
            program.dependencies.ask(frame, parts.WHOLE)
            m.frames.append(frame)
            m.execute(source.statements, frame)
    except Raised as error:
        raised, at = "exception", error.at
        if not _is_refused(m):
            m.session.raised.append(error.running)
    except Stop:
        raised = "exit"
    except GiveUp as gave_up:
        session = m.session
        session.passes_over(m, gave_up.running)
        session.gaps.add(gave_up.gap)
        _end(m, at, "gap")
        return False
    except RecursionError:  # calls that no function of the program stands for: `A.__call__ = A()`
        m.session.gaps.add(Gap("depth", at, entry.name))
        _end(m, at, "gap")
        return False
    _end(m, at, raised)
    return True


def _is_refused(m: Machine) -> bool:
    """Whether torch itself has ended the program, for what it was given: nobody gets past that."""
    last = m.tape.events[-1] if m.tape.events else None
    return isinstance(last, tape.Fact) and last.what in tape.REFUSED


def _end(m: Machine, at: Span, raised: str) -> None:
    notify("end", m)
    m.emit(tape.End(at=at, raised=raised))


def _run_statement(m: Machine, program: Program, path: Path, entry: Entry) -> None:
    """Runs a statement by itself, in the scope of its module; nothing is known of the names bound
    around it.
    """
    frame = program.frame(path)
    assert frame is not None
    assert frame.source is not None
    program.dependencies.ask(frame, entry.function[0] if entry.function else parts.WHOLE)
    for suspect in contexts.unentered(frame.source.tree):
        if (suspect.path, suspect.line) == (entry.function, entry.line):
            scope = Frame(
                frame.code,
                {name: m.unknown(name) for name in contexts.bound_around(suspect)},
                frame,
            )
            m.frames.append(scope)
            m.execute(lower.module(ast.Module(contexts.alone(suspect), []), frame.code), scope)


def _enter(m: Machine, program: Program, path: Path, entry: Entry) -> None:
    """Calls a function with unknown arguments; a method on an object made with unknown
    arguments.
    """
    frame = program.frame(path)
    source = program.source(path)
    assert frame is not None
    assert frame.source is not None
    assert source is not None
    node = ir.Literal((entry.line, 0, entry.line, 0), None)
    call = Call(entry.name, [], {}, node, frame, open=True)
    value = program.bind(m, frame, entry.function[0])
    if value is None:
        return
    for position, name in enumerate(entry.function[1:], 1):
        if isinstance(value, Class):
            last = position == len(entry.function) - 1
            if not last:
                value = value.namespace.get(name)
                continue
            if entry.contract == "forward" and not calls.is_module(value):
                return
            instance = _object(m, value, call)
            program.dependencies.ask(frame, parts.below(instance.cls.name))
            _forget(m, instance, name, source.tree)
            m.state["older"] = frozenset(m.parameters)
            value = m.attribute(instance, name, call)
            call.kwargs = driving.typed_by_defaults(
                m, value.function if isinstance(value, Bound) else value
            )
            if entry.contract:
                driving.drive(m, value, call)
            else:
                _hook(m, instance, name, value, call)
            return
    call.kwargs = driving.typed_by_defaults(m, value)
    if entry.contract and value is not None:
        driving.drive(m, value, call)
        return
    test = driving.undecorated(value)
    if isinstance(test, Function):
        _note_cases(m, test)
    if isinstance(value, Function | Abstract):
        result = m.call(value, call)
        _drain(m, result, call)


def _note_cases(m: Machine, test: Function) -> None:
    """Has the parameters of a test come together as its cases give them."""
    parameters = {parameter.name: parameter for parameter in test.node.parameters}
    members: set[Symbol] = set()

    def member(node: ir.Node) -> Member | None:
        """A member of an enum: `Mode.OFF`."""
        if not (isinstance(node, ir.Attribute) and isinstance(node.target, ir.Name)):
            return None
        value = m.evaluate(node, test.scope)
        if not (
            isinstance(value, Instance)
            and any(is_a(base, "enum.Enum") for base in value.cls.libraries())
        ):
            return None
        members.add(symbol := m.symbol(value).asked)
        return Member(symbol, members)

    for rows in cases(test.node, member):
        own = [name for name in rows[0] if name in parameters]
        symbols = {name: m.symbol(m.session.parameter(m, test, parameters[name])) for name in own}
        m.oracle.facts.one_of([{symbols[name]: row[name] for name in own} for row in rows])


def _object(m: Machine, cls: Class, call: Call) -> Instance:
    instance = Instance(cls, at=call.frame.span(call.node))
    calls.prepare(m, instance)
    depth = len(m.running)
    m.oracle.prepares = True
    try:
        known = driving.typed_by_defaults(m, m.session.member_of(cls, "__init__"))
        is_made = _initialised(
            m, instance, Call(cls.name, [], known, call.node, call.frame, open=True)
        )
    except Raised:
        if (
            m.session.makes
        ):  # where the branches go this way there is no object to call the method of
            raise
        del m.running[depth:]
    else:
        if is_made:
            m.session.makes, m.state["made"] = True, instance
            m.session.made |= instance.attrs.keys()
        elif m.session.contract:
            del m.running[depth:]
        else:
            instance = Instance(cls, at=instance.at)
            calls.prepare(m, instance)
    m.oracle.prepares = False
    return instance


def _initialised(m: Machine, instance: Instance, call: Call) -> bool:
    """Runs a constructor; that of what trains nothing to its end only where it does not take too
    many steps.
    """
    if m.session.may_train:
        calls.initialise(m, instance, call)
        return True
    most, m.most = (
        m.most,
        m.steps + (MOST_PREPARING_A_PART if m.session.contract else MOST_PREPARING),
    )
    bound = m.most
    try:
        calls.initialise(m, instance, call)
    except GiveUp as gave_up:
        if (
            m.steps <= bound
            or (m.most != bound and m.session.entered is None)
            or m.steps > m.session.most
        ):
            raise
        m.session.gaps.add(gave_up.gap)
        return False
    finally:
        m.most = max(m.most, most)
    return True


def _forget(m: Machine, instance: Instance, name: str, tree: ast.Module) -> None:
    """Makes unknown what other methods than `name`, and those that it leads to, put in the place of
    plain values.
    """
    if m.session.elsewhere is None:  # the same on all paths
        lineage = [cls for cls in instance.cls.lineage() if isinstance(cls, Class)]
        own = [
            node.source
            for cls in lineage
            for node in cls.node.body
            if isinstance(node, ir.Function)
        ]
        others = [
            method
            for cls in fields.relatives(instance.cls.name, tree)
            for method in fields.methods(cls)
        ]
        m.session.elsewhere = fields.elsewhere(name, [*own, *others])
    known = instance.attrs
    for written in sorted(m.session.elsewhere.written & known.keys()):
        value = known[written]
        if _is_plain(value):
            known[written] = made = Unknown(
                m.symbol(instance).derive(("attribute", written), f"self.{written}")
            )
            if m.session.contract and isinstance(value, Const):
                m.state.setdefault("defaults", {})[made.symbol] = value.value
    m.state["stepped elsewhere"] = [
        known[each] for each in sorted(m.session.elsewhere.stepped & known.keys())
    ]


def _is_plain(value: Abstract) -> bool:
    """Whether a value is data: a constant, a tensor of numbers, or a container of such."""
    match value:
        case Const():
            return True
        case Tensor():
            return not value.node.requires_grad
        case Sequence():
            return all(map(_is_plain, value.items))
        case Mapping():
            return all(map(_is_plain, value.items.values()))
    return False


def _hook(m: Machine, instance: Abstract, name: str, method: Abstract, call: Call) -> None:
    for hook in ENTRIES:
        if hook(m, instance, name, method, call):
            return
    _drain(m, m.call(method, call), call)


def _drain(m: Machine, result: Abstract, call: Call) -> None:
    """Runs a generator that an entry returns; what it is sent is not known."""
    if isinstance(result, Object) and result.cls == "builtins.generator":
        result.state["sent to"] = True
        m.items(result, call)
