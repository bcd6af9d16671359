"""Paths on which a second branch of a constructor goes its other way, beside one that brings a
write in place.

    if self.residual:           # a path of its own brings the write
        x += shortcut
    …
    if not self.preactivation:  # and another one what is saved before it
        x = self.act(x)

A path that turns one of them alone shows a write into what nothing has saved. Which two it takes is
not known, so each other branch is turned beside the first, as far as `Bounds.pairing` goes; and
those first by themselves that were only turned with many others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.paths import BESIDE, Bounds, Oracle, Plan, Site, Visited, alone, is_lost
from gradlint.interpret.sweeps import run_apart
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.session import Session


def pair(
    session: Session,
    run: Callable[[Oracle], tape.Tape],
    bounds: Bounds,
    writing: Sequence[Plan],
    written: AbstractSet[ir.Node],
    first: int,
) -> Iterator[tape.Tape]:
    """The tapes of such paths of a part: `writing` are the plans that brought a write, `written`
    where it writes on the paths that were run one by one, and `first` is what one path takes.
    """
    visited = session.visited
    most = session.steps + bounds.pairing
    known = set(written)

    def along(plan: Plan) -> Iterator[tape.Tape]:
        oracle = Oracle(plan, visited, bounds)
        made = run_apart(session, run, oracle, _is_lost)
        if made is not None:
            if not (oracle.writes <= known or _ends_in_backward(made)):
                found.append(plan)
            known.update(oracle.writes)
            yield made

    found = list(writing)
    hidden = [_turned(site, seen) for site, seen in visited.items() if _is_hidden(seen)]
    for plan in hidden:
        if session.steps + first <= most:
            yield from along(plan)
    for plan in tuple(found):
        taken = {site for (site, _), _ in plan}
        for site, seen in list(visited.items()):
            if session.steps + first > most:
                return
            if site not in taken and _is_worth_it(seen):
                yield from along(frozenset({**dict(_turned(site, seen)), **dict(plan)}.items()))


def _is_lost(made: tape.Tape) -> bool:
    """Whether an exception ends a path before the backward of what the part gives."""
    return is_lost(made) and not _ends_in_backward(made)


def _ends_in_backward(made: tape.Tape) -> bool:
    """Whether it is the backward of what a part gives that raises: all of the part was run, and
    that is what is to be reported.
    """
    last = next((event for event in reversed(made.events) if not isinstance(event, tape.End)), None)
    return isinstance(last, tape.Backward) and last.assumed


def _turned(site: Site, seen: Visited) -> Plan:
    return seen.turned or alone(site, seen)


def _is_hidden(seen: Visited) -> bool:
    """Whether a branch that speaks of what rules report was only turned with many others."""
    return seen.swept and seen.rank < BESIDE and _is_worth_it(seen)


def _is_worth_it(seen: Visited) -> bool:
    """Whether a branch says how the object is made, and none of its sides just ends the program."""
    return seen.prepares and not (seen.at.is_refused or seen.registers)
