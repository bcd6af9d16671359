"""Which rounds of which loops: worked out from where the program was, without having watched every
line.

In one activation of a function, time only goes back (to an earlier instruction) where a loop goes
round. So a place before the last one, inside a loop, begins a round of the innermost loop around
both; a changed counter does, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradlint.trace.frames import Frame, Place
from gradlint.trace.loops import called, comprehensions, loops
from gradlint.trace.source import Loop


@dataclass(eq=False, slots=True)
class Round:
    """The round that a loop is in."""

    loop: Loop
    number: int
    round: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A round begins or ends."""

    loop: Loop
    number: int
    round: int
    begins: bool
    last: bool


@dataclass(eq=False, slots=True)
class _Activation:
    rounds: list[Round] = field(default_factory=list)
    instruction: int = -1
    child: int = 0
    counters: tuple[int, ...] = ()
    # the innermost of these loops that stand in a library's file, by number,
    batches: tuple[int, ...] = ()
    call: int = -1  # below the call at this instruction
    busy: bool = False  # a backward or a step happened since the innermost loop last went round
    is_in_call: bool = False  # the call that was visited last runs still


class Rounds:
    """Follows the places of a run in order."""

    def __init__(self) -> None:
        # the comprehensions in whose rounds a backward or a step happens
        self.learning: set[Loop] = set()
        self._activations: dict[int, _Activation] = {}
        self._current: list[int] = []
        self._at: Place = ()  # the frames of the last visit, outermost first
        self._numbers = itertools.count(1)  # each time that a loop is begun it is another loop

    def visit(self, place: Place, busy: bool = False, once: bool = False) -> Iterator[Turn]:
        """Go to `place`; gives the rounds that end and begin on the way.

        `busy`: a backward or step happens there. `once`: it happens once each time that the program
        comes there.
        """
        frames = place[::-1]
        yield from self._leave(frames)
        for index, frame in enumerate(frames):
            child = frames[index + 1].activation if index + 1 < len(frames) else 0
            if busy or once or not self._stands(index, frame, child):
                yield from self._move(frame, child, busy, once and not child)
        self._current, self._at = [frame.activation for frame in frames], frames

    def _stands(self, index: int, frame: Frame, child: int) -> bool:
        """Whether a frame is where the last visit left it, with the same call inside: nothing in it
        went round.
        """
        last = self._at
        return (
            index < len(last)
            and last[index] is frame
            and child == (last[index + 1].activation if index + 1 < len(last) else 0)
        )

    def fetched(self, place: Place, batches: tuple[int, ...]) -> Iterator[Turn]:
        """A loop below the call at `place`, which was visited, got a batch: the innermost of
        `batches`.
        """
        state = self._activations[place[0].activation]
        own = len(state.rounds) - len(state.batches)
        if state.batches[: len(batches)] == batches:
            yield from _ended(state.rounds, own + len(batches))
            yield from _turn(state.rounds[-1])
        else:
            shared = 0
            while shared < len(state.batches) and state.batches[shared] == batches[shared]:
                shared += 1
            yield from _ended(state.rounds, own + shared)
            for _ in batches[shared:]:
                yield self._begin(state, called(place[0].code, place[0].instruction))
        state.batches, state.call = batches, place[0].instruction

    def remain(self, place: Place) -> None:
        """The call at `place`, which was visited, runs still: what is called next is called by it,
        as the hooks behind a step are.
        """
        self._activations[place[0].activation].is_in_call = True

    def around(self, frame: Frame) -> tuple[Loop, ...]:
        """The loops in whose rounds a frame is, outermost first."""
        found = loops(frame.code, frame.instruction)
        if not self.learning:
            return found
        made = comprehensions(frame.code, frame.instruction)
        return (*found, *(each for each in made if each in self.learning))

    def now(self) -> tuple[tuple[int, int], ...]:
        """The rounds around the place that was visited last."""
        return tuple(
            (each.number, each.round)
            for key in self._current
            if key in self._activations
            for each in self._activations[key].rounds
        )

    def close(self) -> Iterator[Turn]:
        """The run ends: all rounds end."""
        yield from self._leave(())

    def _leave(self, frames: Place) -> Iterator[Turn]:
        """Activations that are no longer running have left their loops."""
        kept = 0
        while (
            kept < min(len(frames), len(self._current))
            and frames[kept].activation == self._current[kept]
        ):
            kept += 1
        for key in reversed(self._current[kept:]):
            state = self._activations.pop(key, None)
            if state is not None:
                yield from _ended(state.rounds, 0)

    def _move(self, frame: Frame, child: int, busy: bool, once: bool) -> Iterator[Turn]:
        state = self._activations.setdefault(frame.activation, _Activation())
        around = self.around(frame)
        if frame.instruction != state.call or _changed(state, frame, len(around)) is not None:
            state.batches = ()
        if state.batches:
            around += (called(frame.code, frame.instruction),) * len(state.batches)
        common = 0
        while (
            common < min(len(around), len(state.rounds))
            and around[common] == state.rounds[common].loop
        ):
            common += 1
        turned = self._turned(state, frame, child, common, once)
        if turned is None:
            yield from _ended(state.rounds, common)
        else:
            yield from _ended(state.rounds, turned + 1)
            yield from _turn(state.rounds[turned])
            state.busy = False
        for loop in around[len(state.rounds) :]:
            yield self._begin(state, loop)
        state.is_in_call = state.is_in_call and frame.instruction == state.instruction
        state.instruction, state.child = frame.instruction, child
        # a loop further out may have gone round as well
        state.counters = frame.counters or state.counters[:turned]
        state.busy = state.busy or busy

    def _begin(self, state: _Activation, loop: Loop) -> Turn:
        entry = Round(loop, next(self._numbers))
        state.rounds.append(entry)
        state.busy = False
        return Turn(loop, entry.number, 0, True, False)

    def _turned(
        self, state: _Activation, frame: Frame, child: int, common: int, once: bool
    ) -> int | None:
        """The index of the loop that went round since the last visit, if one did."""
        if not common:
            return None
        changed = _changed(state, frame, common)
        if changed is not None:
            return changed
        if frame.instruction < state.instruction:
            return common - 1
        is_another = once if child == state.child else not state.batches
        is_left = is_another and not (state.is_in_call and child)
        again = frame.instruction == state.instruction and is_left and state.busy
        return common - 1 if again else None


def _changed(state: _Activation, frame: Frame, among: int) -> int | None:
    """The index of the outermost loop whose counter is another than it was."""
    pairs = zip(frame.counters, state.counters, strict=False)
    return next(
        (index for index, (new, old) in enumerate(pairs) if new != old and index < among), None
    )


def _turn(entry: Round) -> Iterator[Turn]:
    yield Turn(entry.loop, entry.number, entry.round, False, False)
    entry.round += 1
    yield Turn(entry.loop, entry.number, entry.round, True, False)


def _ended(rounds: list[Round], keep: int) -> Iterator[Turn]:
    while len(rounds) > keep:
        entry = rounds.pop()
        yield Turn(entry.loop, entry.number, entry.round, False, True)
