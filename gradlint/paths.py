"""The paths of one entry, as rules see them: what holds on some path, and what happens on none.

    paths.some(find)               # evidence on one path is enough
    paths.never(occurs, May.STEP)  # on no path; None where code that was not run may do it
    paths.turns(answers, at)       # on a path that goes so at a branch; else such a path is run

There is no other way: `Paths` cannot be iterated, counted or indexed. A rule that reports what does
not happen asks `never`: that nothing of the kind was seen is no evidence where the side of a branch
was not run, or where the analysis gave a path up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from gradlint.finding import Span
from gradlint.tape import ALL_EVENTS, May, Tape

_Found = TypeVar("_Found")


def _anywhere(_: Tape) -> range:
    return ALL_EVENTS


def _is_complete(tape: Tape) -> bool:
    return tape.complete


class Paths:
    """One tape for each path of an entry that was run; a traced run has one."""

    __slots__ = ("_tapes", "answers", "unsettled", "unturned")

    def __init__(self, tapes: Iterable[Tape]) -> None:
        self._tapes = tuple(tapes)
        self.answers: dict[object, Any] = {}  # what rules have worked out about all of them
        self.unsettled = May(0)  # what was asked for on no path, and an untaken side may do
        self.unturned: set[Span] = set()  # branches that a rule asks for, and all paths take alike

    def some(self, find: Callable[[Tape], Iterable[_Found]]) -> Iterator[_Found]:
        """What `find` finds, path by path: each is evidence of one path."""
        return (found for tape in self._tapes for found in find(tape))

    def never(
        self,
        occurs: Callable[[Tape], object],
        may: May,
        *,
        between: Callable[[Tape], range] = _anywhere,
        enough: Callable[[Tape], bool] = _is_complete,
    ) -> bool | None:
        """Whether something occurs on no path; None where it is not seen, and code that was not run
        may do it.

        `between` says where on a path it could: a side of a branch that the path had behind it
        then, or came to later alone, is no matter. `enough` says of a path that was given up on its
        way whether it had come past all places where it could: a whole round of a loop.
        """
        if any(map(occurs, self._tapes)):
            return False
        if not all(tape.complete or enough(tape) for tape in self._tapes):
            return None
        if [tape for tape in self._tapes if tape.unrun(may, between(tape))]:  # asked of each
            self.unsettled |= may
            return None
        return True

    def turns(self, answers: Callable[[Tape], object], at: Span) -> bool:
        """Whether a path answers so at the branch at a place; where none does, such a path is asked
        for.
        """
        if any(map(answers, self._tapes)):
            return True
        self.unturned.add(at)
        return False
