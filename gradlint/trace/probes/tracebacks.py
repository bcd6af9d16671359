"""Tracebacks that the program prints or writes to a log itself: those that there would be if nobody
watched.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from gradlint.trace import launch
from gradlint.trace.frames import unwatched
from gradlint.trace.session import Session

_Step = tuple[FrameType, Any]
_OF_TRACEBACKS = ("walk_tb", "_walk_tb_with_full_positions")  # the second from Python 3.11 on


def install(session: Session) -> None:
    """Put the probe in its place; `logging` and torch come by it, too."""
    session.replace(traceback, "walk_stack", _walk_stack)
    for name in _OF_TRACEBACKS:
        if hasattr(traceback, name):
            session.replace(traceback, name, _walk_traceback)


def _walk_stack(original: Callable[..., Iterable[_Step]]) -> Callable[..., Iterable[_Step]]:
    def walk(frame: FrameType | None) -> Iterable[_Step]:
        if frame is None:  # it counts the frames from where it is asked for the first one
            return original(frame)
        return unwatched(
            itertools.takewhile(lambda step: _code(step) is not launch.RUNS, original(frame)), _code
        )

    return walk


def _walk_traceback(original: Callable[..., Iterable[_Step]]) -> Callable[..., Iterator[_Step]]:
    def walk(trace: TracebackType | None) -> Iterator[_Step]:
        steps = list(original(trace))
        left = list(unwatched(reversed(steps), _code))
        begins_with_us = bool(steps) and (not left or left[-1] is not steps[0])
        # who goes step by step asks for this very one
        return iter(steps) if begins_with_us else reversed(left)

    return walk


def _code(step: _Step) -> CodeType:
    return step[0].f_code
