"""The user's frames together with the counters of their loops, which tell one round of a loop from
the next.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from gradlint.trace.frames import RESUMED, Frame, Place
from gradlint.trace.loops import counters

_MOST = 4096
_callers: dict[int, Place] = {}  # by activation: while it runs, those that called it stand still


def counted(place: Place) -> Place:
    """The place with the values of the counters of its loops, where these are plain numbers or
    names.
    """
    if not place:
        return place
    first = place[0]
    known = _callers.get(first.activation)
    if known is None:
        known = tuple(map(_counted, place[1:]))
        if len(_callers) > _MOST:
            _callers.clear()
        if not first.code.co_flags & RESUMED:
            _callers[first.activation] = known
    return (_counted(first), *known)


def _counted(frame: Frame) -> Frame:
    names = counters(frame.code, frame.instruction)
    running = _running(frame.code) if names else None
    if running is None:
        return frame
    values = running.f_locals
    return Frame(
        frame.activation,
        frame.code,
        frame.instruction,
        tuple(_plain(values.get(name)) for name in names),
    )


def _running(code: CodeType) -> FrameType | None:
    running: FrameType | None = sys._getframe(2)
    while running is not None and running.f_code is not code:
        running = running.f_back
    return running


def _plain(value: object) -> int:
    return hash(value) if isinstance(value, (int, str)) else 0
