"""Periods: the iterations after which a counter begins again, as written and as unrolled."""

from __future__ import annotations

import math

from gradlint.dataclass import dataclass

BATCHES = 3  # rounds of a loop over batches that no counter counts
MOST_BATCHES = 11  # rounds of a loop, at most, to see a step that runs every so often
LARGEST = 4  # a step that runs less often than this is taken to run as often,
SMALLER = (4, 3, 5, 7, 8, 6, 9)  # or as one of these, the first that fits


@dataclass(frozen=True, slots=True)
class Period:
    """The iterations from one reset of a counter to the next: `written` in the program, and `shown`
    where the loop is unrolled for fewer.
    """

    written: int
    shown: int

    def stands_for(self, rounds: int, length: int) -> bool:
        """Whether unrolling `rounds` iterations leaves the same remainder as the written trip count
        `length` does.

        `length % written` maps to `rounds % shown`, where 0, 1 and −1 stay themselves.
        """
        left, shown = length % self.written, rounds % self.shown
        if left < 2 or self.written == self.shown:
            return shown == left
        if left == self.written - 1:
            return shown == self.shown - 1
        return 1 < shown < self.shown - 1 or 0 < shown < self.shown == 3


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that can be written for the one that a counter comes to, or begins with; each
    round adds `step`.
    """

    written: tuple[int, ...]
    step: int = 1

    def less(self, rounds: int) -> dict[int, int]:
        """What they are taken to be, where it is to be so many rounds less."""
        return {number: number - rounds * self.step for number in self.written}


class Periods:
    """The periods of one entry's counters, by the places where they are met."""

    def __init__(self) -> None:
        # numbers that are written for rounds, and what they are taken to be
        self.smaller: dict[int, int] = {}
        self._known: dict[object, Period] = {}
        # that are taken to be smaller for the sake of a place
        self._numbers: dict[object, Numbers] = {}
        self._seen: set[object] = set()  # the places at which a counter came round

    def __bool__(self) -> bool:
        return bool(self._known)

    def know(self, place: object) -> bool:
        """Whether a counter that is met at a place comes round."""
        return place in self._known

    def meets(self, place: object, period: Period, numbers: Numbers, length: int | None) -> bool:
        """Whether a period is new. Where it is large, what is written for it is taken for smaller,
        so that a loop of a known length can end with its last number.
        """
        if place in self._known:
            return False
        if period.shown > LARGEST and period.shown == period.written:
            smaller = (
                Period(period.written, shown) for shown in SMALLER if shown <= period.written
            )
            fits = (each for each in smaller if length is None or each.stands_for(length, length))
            period = next(fits, Period(period.written, LARGEST))
            self._numbers[place] = numbers
            self.smaller |= numbers.less(period.written - period.shown)
        self._known[place] = period
        return True

    def sees(self, place: object, shown: int) -> bool:
        """Whether it is news that the counter that was met at a place comes round so often: the
        first time counts.
        """
        met = self._known.get(place)
        if met is None or place in self._seen:
            return False
        self._seen.add(place)
        period = Period(shown + met.written - met.shown, shown)
        # it began further back: what is written is taken for more
        if place in self._numbers and shown < met.shown:
            period = Period(period.written, min(met.shown, period.written))
            self.smaller |= self._numbers[place].less(
                met.written - met.shown - (period.shown - shown)
            )
        self._known[place] = period
        return met.shown != shown

    def rounds(self, windows: int) -> int:
        """How many rounds show whole windows of each counter and leave a remainder, counted from 0
        as from 1.
        """
        shown = {period.shown for period in self._known.values()}
        for rounds in range(windows * max(shown) + 1, MOST_BATCHES):
            if all(rounds % each == 1 if each == 2 else rounds % each > 1 for each in shown):
                return max(rounds, BATCHES)
        return MOST_BATCHES

    def like(self, length: int, least: int) -> int:
        """So many rounds, or some more or less, that each counter leaves what it leaves of as many
        as are written.
        """
        tried = (
            *range(least, min(length, least + MOST_BATCHES) + 1),
            *range(min(least, length), 0, -1),
        )
        return next((rounds for rounds in tried if self.stand_for(rounds, length)), least)

    def stand_for(self, rounds: int, length: int) -> bool:
        return all(period.stands_for(rounds, length) for period in self._known.values())

    @property
    def are_written(self) -> bool:
        """Whether no written number is taken for a smaller one."""
        return not self.smaller

    @property
    def common(self) -> int:
        """In how many rounds all counters have come round together."""
        return math.lcm(*(period.shown for period in self._known.values()))
