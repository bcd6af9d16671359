"""CUDA graphs that train: what a replay does comes past no Python. Its steps are counted, and the
report says so.

Graphs that torch replays for itself stand behind a function of its own, whose forward and backward
are seen: `make_graphed_callables`, and compiled code in the mode "reduce-overhead".
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.frames import is_torchs
from gradlint.trace.records import serial
from gradlint.trace.session import Session, Stop

_TRAINS = frozenset(["backward", "step"])
_UNSEEN = (
    "the backward passes and steps of a CUDA graph are seen where it is captured, not in its "
    "replays"
)


def install(session: Session) -> None:
    """Put the probe in its place."""
    watch(session, torch.cuda.CUDAGraph)
    for module in (torch.cuda, torch.cuda.graphs):
        session.replace(
            module, "make_graphed_callables", lambda original: _unseen(session, original)
        )


def _unseen(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    """What warms up and captures is no training: its gradients go nowhere."""

    @functools.wraps(original)
    def make_graphed_callables(*args: Any, **kwargs: Any) -> Any:
        with session.paused():
            return original(*args, **kwargs)

    return make_graphed_callables


def watch(session: Session, graph: type[Any]) -> None:
    """Look at what the graphs of a class capture, and at whether they are replayed."""
    watched = _Watch(session)
    session.replace(graph, "capture_begin", watched.begin)
    session.replace(graph, "capture_end", watched.end)
    session.replace(graph, "replay", watched.replay)


class _Watch:
    """Which graphs hold a backward pass or a step, and how many steps."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._begun: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def begin(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._begun[graph] = (next(serial), self.session.step)
            return original(graph, *args, **kwargs)

        return capture_begin

    def end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(graph, *args, **kwargs)
            begun, step = self._begun.pop(graph, (0, 0))
            if any(note.serial > begun and note.kind in _TRAINS for note in self.session.notes):
                self._steps[graph] = self.session.step - step
            return out

        return capture_end

    def replay(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(graph, *args, **kwargs)
            if (
                graph in self._steps
                and not self.session.quiet
                and not is_torchs(sys._getframe(1).f_code)
            ):
                self._replayed(self._steps[graph])
            return out

        return replay

    def _replayed(self, steps: int) -> None:
        session = self.session
        session.blind[_UNSEEN] = None
        session.step += steps
        if session.limit is not None and session.step >= session.limit:
            raise Stop(0)
