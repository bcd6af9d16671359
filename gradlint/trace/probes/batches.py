"""Batches that a DataLoader gives to a loop in a library's file: a framework's, of which no line is
the user's.

Where the loop is the user's, its rounds are known from where the program is. Below a call such as
`trainer.fit(loader)` each batch begins a round of a loop that stands there. Such loops nest (a
validation within a round of training); which of them still run is told by the frames in which
batches were fetched.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch.utils.data.dataloader as loading

from gradlint.trace.counting import counted
from gradlint.trace.frames import RESUMED, activation, here, is_torchs, is_users
from gradlint.trace.loops import iterates
from gradlint.trace.session import Session

_numbers = itertools.count(1)


@dataclass(eq=False, slots=True)
class _Loop:
    """A loop over an iterator of a DataLoader: its number, and the activations in all of which it
    fetched.
    """

    number: int
    iterator: weakref.ref[Any]
    frames: tuple[int, ...]  # outermost first, below the user's call
    fetches: int = 1
    exhausted: bool = False

    def runs(self, frames: tuple[int, ...]) -> bool:
        """Whether it goes on while these frames fetch from another iterator."""
        return not self.exhausted and (
            self.fetches == 1 or (bool(self.frames) and self.frames[-1] in frames)
        )


@dataclass(eq=False, slots=True)
class _Loops:
    """The loops below one call of the user's, outermost first, and the iterators that another one's
    rounds end.
    """

    running: list[_Loop]
    companions: weakref.WeakSet[Any]

    def fetched(self, iterator: Any, frames: tuple[int, ...]) -> _Loop | None:
        """The loop that got a batch; None for one that goes along with another, a batch of each a
        round.
        """
        known = [
            index
            for index, each in enumerate(self.running)
            if each.iterator() is iterator and not each.exhausted
        ]
        if known:
            self._end_above(known[0])
            loop = self.running[known[0]]
            loop.fetches += 1
            loop.frames = _shared(loop.frames, frames)
        elif iterator in self.companions:
            return None
        else:
            while self.running and not self.running[-1].runs(frames):
                self.running.pop()
            loop = _Loop(next(_numbers), weakref.ref(iterator), frames)
            self.running.append(loop)
        return loop

    def _end_above(self, index: int) -> None:
        for each in self.running[index + 1 :]:
            if not each.exhausted and (left := each.iterator()) is not None:
                self.companions.add(left)
        del self.running[index + 1 :]


def install(session: Session) -> None:
    """Put the probe in its place."""
    calls: dict[tuple[int, int], _Loops] = {}
    session.replace(
        loading._BaseDataLoaderIter, "__next__", lambda original: _next(session, calls, original)
    )


def _next(
    session: Session, calls: dict[tuple[int, int], _Loops], original: Callable[..., Any]
) -> Callable[..., Any]:
    def fetch(self: Any) -> Any:
        if session.quiet:
            return original(self)
        try:
            batch = original(self)
        except StopIteration:
            session.guarded(_ended, calls, self)
            raise
        session.timeline.batch = getattr(self, "_num_yielded", 0) - 1
        session.guarded(_fetched, session, calls, self, sys._getframe(1))
        return batch

    return fetch


def _fetched(
    session: Session, calls: dict[tuple[int, int], _Loops], iterator: Any, caller: FrameType
) -> None:
    frames = _below_the_user(caller)
    place = here() if frames else ()
    if not place:
        return
    loops = calls.setdefault(
        (place[0].activation, place[0].instruction), _Loops([], weakref.WeakSet())
    )
    loop = loops.fetched(iterator, frames)
    if loop is not None:
        loop.exhausted = _is_exhausted(iterator)
        if loop.fetches == 2:
            session.batched.add(loop.number)
        session.note("batch", counted(place), loops=tuple(each.number for each in loops.running))


def _ended(calls: dict[tuple[int, int], _Loops], iterator: Any) -> None:
    for each in itertools.chain.from_iterable(loops.running for loops in calls.values()):
        if each.iterator() is iterator:
            each.exhausted = True


def _below_the_user(frame: FrameType | None) -> tuple[int, ...]:
    """The activations between the user's frame and a fetch, outermost first; none where the loop is
    the user's.
    """
    found, outermost = [], frame
    while frame is not None and not is_users(frame.f_code):
        if not is_torchs(frame.f_code):
            found.append(activation(frame))
            outermost = frame
        frame = frame.f_back
    if (
        frame is None
        or outermost is None
        or _is_resumed(outermost)
        or iterates(frame.f_code, frame.f_lasti)
    ):
        return ()
    return tuple(reversed(found))


def _is_resumed(frame: FrameType) -> bool:
    """Whether the user asks for the next of something: what wraps a loader gives its batches on."""
    return bool(frame.f_code.co_flags & RESUMED) or frame.f_code.co_name == "__next__"


def _is_exhausted(iterator: Any) -> bool:
    try:
        return bool(iterator._num_yielded >= len(iterator))
    except TypeError:  # of unknown length
        return False


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(each for each, _ in pairs)
