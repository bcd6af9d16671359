"""What an analysis has looked at: training steps, losses, branches and parts, counted for people
and for CI.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradlint.dataclass import dataclass
from gradlint.finding import Span

if TYPE_CHECKING:
    from gradlint import tape


class Shown(enum.IntFlag):
    """What some path has shown of a loss."""

    PARAMETERS = 1  # it leads to parameters whose module is in view
    LOOP = 2  # a loop runs around it
    AGAIN = 4  # a second round of that loop comes to it
    STEP = 8  # an optimizer steps behind it


class Loss(NamedTuple):
    """A line on which a loss is back-propagated, and what was seen of it."""

    path: str
    line: int
    shown: int


class Branch(NamedTuple):
    """A condition that could not be decided, and the sides that paths have taken: 1 is false, 2
    true, 3 both.
    """

    path: str
    line: int
    column: int
    sides: int


BOTH = 3


class Written(NamedTuple):
    """A call of `backward` in a file: the line of the function around it (0: none), and the lines
    of the tests.
    """

    line: int
    function: int
    tests: tuple[tuple[int, int], ...]


def losses(tapes: Iterable[tape.Tape]) -> tuple[Loss, ...]:
    """The lines on which the paths of an entry back-propagate; what the driver of a part does is
    none.
    """
    from gradlint.tape import OptimizerStep  # reports tell of coverage without it

    found: dict[tuple[str, int], int] = {}
    for made in tapes:
        sinks = [sink for sink in made.backwards() if not sink.assumed]
        if sinks:
            stepped = max((step.order for step in made.of(OptimizerStep)), default=-1)
            rounds: dict[tuple[str, int], set[tuple[tuple[int, int], ...]]] = {}
            for sink in sinks:
                place = sink.at.path, sink.at.line
                rounds.setdefault(place, set()).add(sink.iteration)
                found[place] = found.get(place, 0) | _shown(sink, stepped, len(rounds[place]))
    return tuple(Loss(path, line, shown) for (path, line), shown in sorted(found.items()))


def _shown(sink: tape.Backward, stepped: int, rounds: int) -> int:
    from gradlint.tape import Kind

    shown = Shown.STEP if sink.by_framework or stepped > sink.order else Shown(0)
    if any(leaf.kind is Kind.PARAMETER and not leaf.assumed for leaf in sink.leaves):
        shown |= Shown.PARAMETERS
    if sink.iteration:
        shown |= Shown.LOOP
    if rounds > 1:
        shown |= Shown.AGAIN
    return int(shown)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was looked at in the files that were checked."""

    written: int = 0  # calls of `backward` in them
    missed: tuple[Span, ...] = ()  # those of them to which no path came
    losses: tuple[int, ...] = ()  # what was shown of each
    branches: tuple[int, ...] = ()  # the sides that were taken of each
    parts: int = 0  # with a hazard
    entered: int = 0  # of these, those that a path has run to the end
    programs: int = 0  # entries that are no part: scripts, functions and methods that train

    def count(self, *shown: Shown) -> int:
        """How many losses all of this was shown of."""
        return sum(all(each in Shown(loss) for each in shown) for loss in self.losses)

    def as_object(self, located: Callable[[Span], Span]) -> Mapping[str, Mapping[str, Any]]:
        """What `--coverage` writes; `located` says where a place stands in its file."""
        return {
            "backwards": {
                "written": self.written,
                "reached": self.reached,
                "missed": [_place(located(at)) for at in self.missed],
            },
            "losses": {
                "reached": len(self.losses),
                "to_known_parameters": self.count(Shown.PARAMETERS),
            },
            "steps": {
                "behind_a_loss": self.count(Shown.STEP),
                "losses_in_loops": self.count(Shown.LOOP),
                "in_a_second_round": self.count(Shown.LOOP, Shown.AGAIN),
            },
            "branches": {
                "met": len(self.branches),
                "both_sides": sum(sides == BOTH for sides in self.branches),
            },
            "entries": {"programs": self.programs, "parts": self.parts},
            "parts": {"with_hazard": self.parts, "entered": self.entered},
        }

    @property
    def reached(self) -> int:
        """How many calls of `backward` a path came to."""
        return self.written - len(self.missed)

    def lines(self) -> list[str]:
        """The sums, one a line: `12 of 14 training steps reached`."""
        losses, loops = len(self.losses), self.count(Shown.LOOP)
        sums = (
            (self.reached, self.written, "training steps reached"),
            (self.count(Shown.PARAMETERS), losses, "losses lead to parameters in view"),
            (self.count(Shown.STEP), losses, "losses have a step of an optimizer behind them"),
            (self.count(Shown.LOOP, Shown.AGAIN), loops, "losses in loops seen in a second round"),
            (
                sum(sides == BOTH for sides in self.branches),
                len(self.branches),
                "branches taken both ways",
            ),
            (self.entered, self.parts, "parts run to their end"),
        )
        counted = [f"{some:6} of {whole} {what}" for some, whole, what in sums if whole]
        entries = self.programs + self.parts
        return (
            [f"{entries:6} entries: {self.programs} programs, {self.parts} parts", *counted]
            if entries
            else counted
        )


def _place(at: Span) -> str:
    return f"{at.path}:{at.place.rpartition(':')[0]}"


def as_json(coverage: Coverage, located: Callable[[Span], Span]) -> str:
    """The text of the file that `--coverage` writes."""
    import json

    return json.dumps(coverage.as_object(located), indent=2) + "\n"


def joined(found: Iterable[Sequence[Loss]]) -> Mapping[tuple[str, int], int]:
    """What all entries together have shown of each loss."""
    shown: dict[tuple[str, int], int] = {}
    for loss in (loss for each in found for loss in each):
        shown[loss.path, loss.line] = shown.get((loss.path, loss.line), 0) | loss.shown
    return shown


def taken(found: Iterable[Sequence[Branch]]) -> Mapping[tuple[str, int, int], int]:
    """The sides that all entries together have taken of each branch."""
    sides: dict[tuple[str, int, int], int] = {}
    for each in (branch for branches in found for branch in branches):
        place = each.path, each.line, each.column
        sides[place] = sides.get(place, 0) | each.sides
    return sides


def half_taken(
    written: Written, path: str, sides: Mapping[tuple[str, int, int], int]
) -> Iterator[int]:
    """The lines of the tests around a call of `backward` that went one way on all paths, the
    outermost first.
    """
    for first, last in written.tests:
        inside = (
            taken
            for (file, line, _), taken in sides.items()
            if file == path and first <= line <= last
        )
        if any(each != BOTH for each in inside):
            yield first
