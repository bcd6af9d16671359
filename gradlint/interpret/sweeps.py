"""Paths on which many branches go their other way at once, so that some path takes every side.

A branch turned round by itself costs a whole path; most of them have nothing to do with each other.
So all the branches of which one side is untaken are turned on one path; those that it did not come
to, behind an early return or another branch that it turned, wait for the next one. Where an
exception ends such a path, the branches that it came to are turned in two halves, as in group
testing (R. Dorfman, "The detection of defective members of large populations", 1943).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.branches import leaves
from gradlint.interpret.paths import (
    Bounds,
    Choice,
    Oracle,
    Plan,
    Restart,
    Site,
    Visited,
    alone,
    is_lost,
    turned_at,
)
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.session import Session

IN_VAIN = 4  # paths in a row that take no side which was untaken


def sweep(
    session: Session, run: Callable[[Oracle], tape.Tape], bounds: Bounds, works: Plan
) -> Iterator[tape.Tape]:
    """The tapes of such paths, until no side is left that they can take, or the bounds end them.

    All other branches go as on a path that `works`: as its plan has it.
    """
    if not (session.contract or session.may_train or session.has_trained):
        return
    visited = session.visited
    known = set(visited)
    groups = deque(_apart(visited, visited))
    most, vain = session.steps + bounds.sweeping, 0
    while groups and session.steps < most and vain < IN_VAIN:
        group = [site for site in groups.popleft() if site in visited and _is_open(visited[site])]
        if not group:
            continue
        oracle = Oracle(_together(group, visited, works), visited, bounds)
        made = run_apart(session, run, oracle)
        if made is None:
            vain += 1
            groups.appendleft([site for site in group if site not in oracle.visits])
            groups.extend(_halves([site for site in group if site in oracle.visits]))
            continue
        for site in group:
            visited[site].swept = not _is_open(visited[site])
        yield made
        found = [site for site in visited if site not in known]
        known.update(found)
        left = [site for site in group if _is_open(visited[site])]
        vain = 0 if len(left) < len(group) else vain + 1
        groups.extend(_apart([*left, *found], visited) if len(left) < len(group) else _halves(left))


def _apart(sites: Iterable[Site], visited: Mapping[Site, Visited]) -> Iterator[list[Site]]:
    """The open branches of what a call does, those of how its object is made, which says little of
    a call that goes otherwise, and those that leave a block, which hide what is behind them.
    """
    groups: dict[str, list[Site]] = {"stays": [], "made": [], "leaves": []}
    for site in sites:
        seen = visited[site]
        if _is_open(seen):
            kind = "leaves" if _may_leave(seen) else "made" if seen.prepares else "stays"
            groups[kind].append(site)
    yield from groups.values()


def _may_leave(seen: Visited) -> bool:
    """Whether a side ends in a `return`, a `break` or a `continue`."""
    whole = seen.at.whole
    return isinstance(whole, ir.If) and (leaves(whole.then) or leaves(whole.otherwise))


def _is_open(seen: Visited) -> bool:
    """Whether one side is untaken that does not just end the program by an exception."""
    return len(seen.sides) < 2 and not (seen.at.is_refused or seen.registers)


def _together(group: Iterable[Site], visited: Mapping[Site, Visited], works: Plan) -> Plan:
    turned: dict[Choice, bool] = {}
    for site in group:
        for choice, side in visited[site].turned or alone(site, visited[site]):
            turned.setdefault(choice, side)
    return frozenset({**dict(works), **turned}.items())


def _halves(group: list[Site]) -> list[list[Site]]:
    middle = len(group) // 2
    return [group[:middle], group[middle:]] if middle else []


def run_apart(
    session: Session,
    run: Callable[[Oracle], tape.Tape],
    oracle: Oracle,
    is_lost: Callable[[tape.Tape], bool] = is_lost,
) -> tape.Tape | None:
    """The tape of a path of which nothing hangs in how the entry is run.

    None where the analysis gives it up, or an exception ends it: then it has shown nothing of what
    follows, and the sides that it took count as untaken. A call on it that takes all the steps is
    no reason to begin the entry again.
    """
    taken = {site: (set(seen.sides), set(seen.followed)) for site, seen in session.visited.items()}
    passed_over, raised = dict(session.passed_over), list(session.raised)
    executed, reached = set(session.executed), set(session.reached)
    try:
        made = run(oracle)
    except Restart:
        session.passed_over = passed_over
        made = None
    session.raised = raised
    if made is None or not made.complete or is_lost(made):
        _take_back(session.visited, taken)
        # what it came to is left for entries of its own
        session.executed, session.reached = executed, reached
        return None
    _note_ways(oracle)
    return made


def _note_ways(oracle: Oracle) -> None:
    """Notes how a path came to the branches that it alone has met: they stand behind the sides that
    it took.
    """
    for site, _ in oracle.taken:
        seen = oracle.visited[site]
        if len(seen.sides) < 2 and not seen.turned:
            seen.turned = turned_at(oracle, site)


def _take_back(
    visited: dict[Site, Visited], taken: Mapping[Site, tuple[set[bool], set[bool]]]
) -> None:
    for site in list(visited):
        if site in taken:
            visited[site].sides, visited[site].followed = taken[site]
        else:
            del visited[site]
