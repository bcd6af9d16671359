"""Grad mode and inference mode: where each was switched off."""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from gradlint.trace.frames import Frame, Place, is_users, nearest
from gradlint.trace.source import context

if TYPE_CHECKING:
    from gradlint.trace.session import Session

_GRAD_MODES = torch.autograd.grad_mode.__file__
_DISTRIBUTIONS = os.path.join("torch", "distributions", "")


class GradMode:
    """Follows what switches grad mode, and what restores it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.off: Place = ()
        self.inference: Place = ()
        self.samples = False  # grad mode is off inside a distribution's `sample()`
        self._restored: weakref.WeakKeyDictionary[Any, tuple[Place, bool]] = (
            weakref.WeakKeyDictionary()
        )
        self._made_at: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()

    def switched(self, enabled: bool, by: FrameType) -> None:
        """Grad mode went on or off in the frame `by`: what the end of an `enable_grad` restores was
        there before it.
        """
        if by.f_back is not None and by.f_back.f_code.co_filename == _GRAD_MODES:
            by = by.f_back  # `no_grad` leaves it to a `set_grad_enabled`
        manager = by.f_locals.get("self") if by.f_code.co_filename == _GRAD_MODES else None
        before = (self.off, self.samples)
        self.changed(enabled, manager)
        if manager is None:
            return
        if by.f_code.co_name != "__exit__":
            self._restored[manager] = before
        elif not enabled and manager in self._restored:
            self.off, self.samples = self._restored.pop(manager)

    def changed(self, enabled: bool, manager: object = None, inference: bool = False) -> None:
        """Grad mode went on or off, by a context manager, a decorator or a call."""
        place = switch()
        if not enabled:
            self.off = self.entered_by(manager, place)
        self.samples = not enabled and _in_distributions()
        if inference:
            self.inference = () if enabled else self.off
        self.session.note("gradmode", place, enabled=enabled, inference=inference)
        if enabled:
            self.off = ()

    def manager_made(self, manager: object) -> None:
        """A context manager that switches a mode was made, to be entered here or elsewhere."""
        self._made_at[manager] = nearest()[:1]

    def entered_by(self, manager: object, place: Place) -> Place:
        """What made the manager that a `with` enters, with the calls that led to the `with`; else
        the place itself.
        """
        entered = bool(place) and context(place[0].code, place[0].instruction) == "with"
        made = self._made_at.get(manager, ()) if entered and manager is not None else ()
        return (*made, *place[1:]) if made else place


def switch() -> Place:
    """Where grad mode was switched: the user's line, or the function that a decorator of torch's
    wraps.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "decorate_context" and code.co_filename.endswith("_contextlib.py"):
            wrapped = frame.f_locals.get("func")
            inner = getattr(wrapped, "__code__", None)
            return (
                (Frame(0, inner, -1), *nearest())
                if inner is not None and is_users(inner)
                else nearest()
            )
        if is_users(code):
            break
        frame = frame.f_back
    return nearest()


def _in_distributions() -> bool:
    """Whether a distribution of torch's runs, called by the program: its `sample()` turns grad mode
    off for itself.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code):
        if _DISTRIBUTIONS in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False
