"""The paths of one entry, as rules see them: what holds on some path, and what happens on none.

    paths.some(find)                # evidence on one path is enough
    paths.never(occurs, May.STEP)   # on no path; None where code that was not run may do it

There is no third way: `Paths` cannot be iterated, counted or indexed. A rule that reports what does not happen asks
`never`: that nothing of the kind was seen is no evidence where the side of a branch was not run, or where the analysis
gave a path up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from gradlint.tape import May, Tape

_Found = TypeVar("_Found")


class Paths:
    """One tape for each path of an entry that was run; a traced run has one."""

    __slots__ = ("_tapes", "answers", "unsettled")

    def __init__(self, tapes: Iterable[Tape]) -> None:
        self._tapes = tuple(tapes)
        self.answers: dict[object, Any] = {}  # what rules have worked out about all of them
        self.unsettled = May(0)  # what was asked for on no path, and an untaken side may do

    def some(self, find: Callable[[Tape], Iterable[_Found]]) -> Iterator[_Found]:
        """What `find` finds, path by path: each is evidence of one path."""
        return (found for tape in self._tapes for found in find(tape))

    def never(self, occurs: Callable[[Tape], object], may: May) -> bool | None:
        """Whether something occurs on no path; None where it is not seen, and code that was not run may do it."""
        if any(map(occurs, self._tapes)):
            return False
        if not all(tape.complete for tape in self._tapes):
            return None
        if any(tape.unrun(may) for tape in self._tapes):
            self.unsettled |= may
            return None
        return True
