"""In how many rounds the loops of an entry are shown, and which of them train.

A loop over batches is run for whole windows of every counter that is met, and the remainder that
its length leaves. What is learned on one path, another period or a loop that trains, can have the
entry run again from its first path on (`Session.restart`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import memo, tape
from gradlint.interpret import iteration
from gradlint.interpret.periods import BATCHES, Numbers, Period, Periods
from gradlint.interpret.statements import ROUNDS
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Const
from gradlint.ir import nodes as ir
from gradlint.source import effects

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
    from gradlint.interpret.session import Session

MOST_AHEAD = 2  # rounds that are shown of a loop over numbers because branches ask for them


class Rounds:
    """The loops of one entry: shared by its paths."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.batches = BATCHES
        self.periods = Periods()
        # what training loops run over: each has as many batches as the loop has rounds
        self.loaders: set[Symbol] = set()
        self.learns: set[ir.Node] = set()  # other loops in whose rounds a backward runs
        self.is_uncounted = False  # a counter was met in no loop that is known to train
        self.has_shown = False  # whether a loop was run for a length that is known
        # the loops in which a counter meets an unknown number
        self.guesses: set[ir.Node | None] = set()
        # the rounds of loops over numbers that branches ask for
        self._ahead: dict[ir.Node | None, set[int]] = {}
        self._windows = 1  # that a loop shows: one where a loop around it comes back to it
        self._rounds: dict[int, tuple[bool, bool]] = {}

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
            self.session.restart()

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
            self.session.restart()

    def counting(self, m: Machine) -> Loop | None:
        """The loop whose rounds a counter counts: the innermost that trains, not one over callbacks
        within it.

        None where the driver of a part trains: how many rounds there are says nothing.
        """
        if self.session.contract:
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
            self.session.restart()

    def take_for_training(self, m: Machine, loop: Loop) -> None:
        """Runs the entry again with as many rounds of a loop as of one that trains, where a
        function that it calls trains: what one round takes over from another shows in the third.
        """
        if loop.over and loop.rounds < self.batches and not m.session.contract:
            self._admit(m, loop)

    def _takes_batches(self, m: Machine, loop: Loop) -> bool:
        return loop.rounds == self.batches or self._admit(m, loop)

    def guess(self, m: Machine) -> None:
        """A counter met an unknown number, which is taken to be a small one."""
        if self.session.contract:
            return
        loop = self.counting(m) or m.loops[-1]
        if loop.node not in self.guesses:
            self.guesses.add(loop.node)
            if self.has_shown:
                self.session.restart()

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
        self.session.restart()
        return True

    def trains_in(self, node: ir.Comprehension) -> None:
        """A backward ran in a round of a comprehension, and in none of a loop within it: that is a
        loop that trains.
        """
        if not self.is_training(node):
            self._rounds[id(node)] = (True, False)
            self.session.restart()

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
                self.session.restart()

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
            self.session.restart()

    def gives_batches(self, m: Machine, source: Symbol) -> bool:
        """Whether the items of something are batches: a loop that trains runs over it."""
        return source in self.loaders or any(
            source in loop.hands_on for loop in m.loops if loop.node in self.learns
        )


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
