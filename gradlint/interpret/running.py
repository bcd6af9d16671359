"""The run of an entry along its paths, within the bounds on its steps."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import (
    conditions,
    driving,
    entering,
    pairs,
    paths,
    search,
    settling,
    sweeps,
)
from gradlint.interpret.gaps import Gap
from gradlint.interpret.machine import (
    MAX_OF_TESTS,
    MAX_STEPS,
    TRAINING,
    Machine,
)
from gradlint.interpret.paths import Oracle, Restart
from gradlint.interpret.session import MOST_STEPS, RESTARTS, Session
from gradlint.interpret.symbols import Symbol
from gradlint.paths import Paths
from gradlint.program.backwards import steps
from gradlint.program.entries import Entry, is_test
from gradlint.program.modules import Program
from gradlint.program.sources import Source

# paths that exceptions have ended, from the first on, after which it is taken to train nothing
MOST_LOST = 3
MOST_SILENT = 2_000  # of a script that does not speak of training, and has come to none
MOST_UNTRAINED = 4_000  # of them, while no path has come to a part of a training step
MOST_OF_A_PART = MAX_STEPS  # of a part, on one path
MOST_OF_A_PARTS_PATHS = 6_000  # constructor apart, behind which no more are begun
MOST_OF_LONG_PATHS = 20_000  # the same, where a path takes so many that these are few
FEW = 8  # paths
MOST_OF_CONSTRUCTORS = 80_000  # what is set apart for them, on all paths of a part


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
        session.driver = driving.driver_of(entry.contract, at, entry.part)
    while True:
        try:
            tapes = _of_objects(session, list(_paths(program, path, entry, session)))
            session.gets_past()
        except Restart:
            session.repeated = session.steps
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


def _of_objects(session: Session, tapes: list[tape.Tape]) -> list[tape.Tape]:
    """The tapes of paths that made the object whose method is entered, where they come to a
    backward: of what a constructor leaves behind that raises, nothing is known.
    """
    made = [each for each in tapes if not any(each is other for other in session.unmade)]
    comes_to_one = any(isinstance(event, tape.Backward) for each in made for event in each.events)
    return made if session.makes and comes_to_one else tapes


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
    session.leaves_open = not more and bool(asked.unsettled)
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


def _path(
    program: Program, path: Path, entry: Entry, session: Session, oracle: Oracle
) -> tape.Tape:
    """The tape of the path on which the branches go as the oracle answers."""
    program.reset()
    machine = Machine(f"{path}:{entry.name}", oracle, session)
    try:
        machine.tape.complete = entering.run(machine, program, path, entry)
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
        session.first = session.first or session.steps - session.prepared
        known = min(session.repeated, MOST_STEPS)
        return session.steps > _most(session, entry) + known

    def cut_short() -> None:
        session.gaps.add(Gap("paths", _head(program, path, entry), entry.name))

    session.unmade, session.first = [], 0
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
        lambda: session.steps - session.prepared,
        is_enough,
        cut_short,
        session.visited,
        bounds,
        own=session.entered.path if session.contract and session.entered else "",
        misses=session.misses,
        sweep=functools.partial(sweeps.sweep, session, run, bounds),
        pair=functools.partial(pairs.pair, session, run, bounds),
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
        few = min(FEW * session.first, MOST_OF_LONG_PATHS)
        return max(MOST_OF_A_PARTS_PATHS, few) + min(session.prepared, MOST_OF_CONSTRUCTORS)
    looks = (
        session.has_trained
        or session.looks_for_training
        or (session.may_train and session.lost < MOST_LOST)
    )
    if looks or session.misses() is not None:
        return MOST_STEPS
    return MOST_UNTRAINED if session.may_train or entry.function else MOST_SILENT
