"""Sides of branches that a rule's question hangs on are taken, and the rule is asked again.

A rule reports what happens on no path: `paths.never(steps, May.STEP)`. Where a side that no path
took may step, that is not known. Such sides are few, and most entries leave no such question open;
so they are run when they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.interpret import paths, sweeps

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradlint.finding import Span
    from gradlint.interpret.session import Session

MOST_STEPS = 40_000  # on all the paths that are run for the questions about one entry


@dataclass(frozen=True, slots=True)
class Question:
    """Whether something may happen between two events of a path, which has met some branches."""

    met: Mapping[object, list[int]]
    may: tape.May
    between: range

    def is_about(self, site: paths.Site) -> bool:
        """Whether the path has met a branch there."""
        return self.between == tape.ALL_EVENTS or any(
            self.between.start < order < self.between.stop for order in self.met.get(site, ())
        )


def settle(
    session: Session,
    run: Callable[[paths.Oracle], tape.Tape],
    may: tape.May,
    places: Collection[Span] = (),
) -> Iterator[tape.Tape]:
    """The tapes of paths on which untaken sides are taken: those of branches at these places, and
    those that may have one of these effects.

    All of them are turned on one path first, and those that are still open again, as long as that
    closes some; then each on a path of its own. What is asked of a part of a path comes first: it
    hangs on few sides. A path that the analysis gives up, or that an exception ends, has shown
    nothing of what follows: its sides stay untaken.
    """
    questions = [question for question in session.questions if question.may & may]
    narrow = [question for question in questions if question.between != tape.ALL_EVENTS]
    stages = [narrow, questions] if 0 < len(narrow) < len(questions) else [questions]
    left: dict[paths.Site, paths.Plan] = {}
    for stage in stages:
        left = {}
        while True:
            before, left = left, _turned(session, stage, places)
            if left.keys() == before.keys():  # the last path closed none, or nothing is open
                break
            together = {choice: side for plan in left.values() for choice, side in plan}
            yield from _run(session, run, frozenset(together.items()))
    for plan in dict.fromkeys(left.values()):
        yield from _run(session, run, plan)
    session.questions.clear()


def _turned(
    session: Session, questions: Iterable[Question], places: Collection[Span]
) -> dict[paths.Site, paths.Plan]:
    """The sides that are asked for and no path took, each with what turns it: of those that may do
    something, the ones that a path met where it matters.
    """
    asked: dict[tape.May, list[Question]] = {}
    for question in questions:
        asked.setdefault(question.may, []).append(question)
    wanted = (
        (site, seen)
        for may, of_kind in asked.items()
        for site, seen in _open(session, may)
        if any(question.is_about(site) for question in of_kind)
    )
    open_ = [*_at(session, places), *wanted]
    return {site: seen.turned or paths.alone(site, seen) for site, seen in open_}


def _run(
    session: Session, run: Callable[[paths.Oracle], tape.Tape], plan: paths.Plan
) -> Iterator[tape.Tape]:
    """The tape of a path on which the plan turns some branches, where one of them is still open."""
    if session.settled > MOST_STEPS or plan in session.settling:
        return
    session.settling.add(plan)
    sites = [site for (site, _), _ in plan if site in session.visited]
    if all(len(session.visited[site].sides) == 2 for site in sites):
        return
    before = session.steps
    made = sweeps.run_apart(session, run, paths.Oracle(plan, session.visited))
    session.settled += session.steps - before
    if made is not None:
        yield made


def is_open(
    session: Session, met: Mapping[object, list[int]], may: tape.May, between: range
) -> bool:
    """Whether a side that no path took may have one of these effects, in what it calls, too.

    Between two events, only a branch that the path `met` there can have it.
    """
    question = Question(met, may, between)
    is_unanswered = any(True for _ in _open(session, may, question.is_about))
    if is_unanswered:
        session.questions.append(question)
    return is_unanswered


def _open(
    session: Session, may: tape.May, counts: Callable[[paths.Site], bool] = lambda _: True
) -> Iterator[tuple[paths.Site, paths.Visited]]:
    for site, seen in session.visited.items() if may else ():
        if not counts(site):
            continue
        untaken = len(seen.sides) == 1 and not (seen.at.picks_data or seen.registers)
        sides = {not side for side in seen.sides} - seen.followed
        if untaken and any(session.may_lead_to(seen, side, may) for side in sides):
            yield site, seen


def _at(session: Session, places: Collection[Span]) -> Iterator[tuple[paths.Site, paths.Visited]]:
    """The branches at some places of which one side was taken."""
    files = {place.path for place in places}
    for site, seen in session.visited.items():
        if len(seen.sides) == 1 and seen.at.file in files:
            source = session.program.source(Path(seen.at.file))
            if source is not None and source.code.span(seen.at.test.at) in places:
                yield site, seen
