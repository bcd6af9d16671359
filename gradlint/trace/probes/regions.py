"""Regions with grad mode off: one whose results never came to a loss is not looked into once the
run is only watched.

Validation and generation run many operations, each of which would be written down, since a route
ends where there is no gradient. What a region made in the recorded steps says whether a loss comes
out of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.tape import Cut
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place
from gradlint.trace.gradmode import switch
from gradlint.trace.private import enter_mode, pop_mode, top_mode
from gradlint.trace.records import Note, Op, serial
from gradlint.trace.session import Session

_SEEN = 3  # times that a region is looked into at least
_STEPS = 3  # optimizer steps before which none is left out
_HARMLESS = frozenset({"gradmode", "autocast", "module", "batch", "train"})
_MAIN_THREAD = threading.main_thread().ident

Key = tuple[object, int]


def install(session: Session) -> None:
    """Put the probe in its place."""
    regions = _Regions(session)
    session.on_loss.append(regions.loss)
    session.attention.before_compiling.append(regions.give_up)
    for cls in (torch.no_grad, torch.set_grad_enabled, torch.inference_mode):
        for name, wrap in (("__enter__", regions.enter), ("__exit__", regions.leave)):
            session.attention.before_compiling.append(session.replace(cls, name, wrap))


@dataclass(frozen=True, slots=True)
class _Region:
    """The outermost region that the program is in: what entered it, where it stands, and since
    when.
    """

    manager: object
    place: Place
    began: int
    is_left_out: bool


class _Regions:
    """Which regions are left out, and whether the program is in one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._now: _Region | None = None
        # how often each has been looked into, and nothing came of it
        self._seen: dict[Key, int] = {}
        self._feeding: set[Key] = set()  # a loss came out of them, or something was written there

    def enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps what enters a region."""

        def enter(manager: Any) -> Any:
            out = original(manager)
            if not (self._now or self.session.quiet or torch.is_grad_enabled()):
                self.session.guarded(self._entered, manager)
            return out

        return enter

    def leave(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps what leaves a region."""

        def leave(manager: Any, *args: Any) -> Any:
            if self._now is not None and self._now.manager is manager:
                self.session.guarded(self._left, self._now)
            return original(manager, *args)

        return leave

    def loss(self, _: torch.Tensor, op: Op) -> None:
        """Before a backward: the regions that its loss comes out of."""
        if self.session.recording:
            self._feeding.update(
                _key(each.cut_place) for each in lineage([op]) if each.cut is Cut.GRAD_MODE
            )

    def give_up(self) -> None:
        """Something is compiled in a region: its end, which Python has looked up already, is none
        of ours any more.
        """
        if self._now is not None and self._now.is_left_out:
            enter_mode(self.session.recorder)
        self._now = None

    def _entered(self, manager: Any) -> None:
        session = self.session
        if (
            threading.get_ident() != _MAIN_THREAD
            or session.depth
            or top_mode() is not session.recorder
        ):
            return
        place = switch()
        key = _key(place)
        blamed = {key, _key(session.gradmode.off)}  # a cut is laid to what made the manager
        is_known = self._seen.get(key, 0) >= _SEEN and self._feeding.isdisjoint(blamed)
        is_left_out = is_known and session.step >= _STEPS and not session.recording
        self._now = _Region(manager, place, next(serial), is_left_out)
        if is_left_out:
            session.left_dark[key] = place
            pop_mode()

    def _left(self, region: _Region) -> None:
        self._now = None
        if region.is_left_out:
            if not self.session.quiet:  # the report may have been written meanwhile
                enter_mode(self.session.recorder)
            return
        key = _key(region.place)
        self._seen[key] = self._seen.get(key, 0) + 1
        if not self._is_harmless(region):
            self._feeding.add(key)

    def _is_harmless(self, region: _Region) -> bool:
        """Whether nothing happened in it but to what was made in it."""
        for note in reversed(self.session.notes):
            if note.serial < region.began:
                break
            if note.kind not in _HARMLESS and not _is_own(note, region):
                return False
        return True


def _is_own(note: Note, region: _Region) -> bool:
    """Whether what is written in place was made in the region."""
    if note.kind != "inplace":
        return False
    before: Op = note.facts["before"]
    return before.serial > region.began and before.held is None


def _key(place: Place) -> Key:
    return (place[0].code, place[0].instruction) if place else (None, 0)
