"""The recorder off for a while: inside a backward pass or an optimizer step."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gradlint.trace.private import enter_mode, pop_mode, top_mode

if TYPE_CHECKING:
    from gradlint.trace.session import Session

Result = TypeVar("Result")


class Pause:
    """Takes the recorder off the stack of modes where it is on top, and silences it where it is
    not.
    """

    __slots__ = ("_on_top", "_session", "_was")

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Pause:
        session = self._session
        session.depth += 1
        self._was = session.quiet
        self._on_top = top_mode() is session.recorder
        if self._on_top:
            pop_mode()
        else:
            session.quiet = True
        return self

    def __exit__(self, *_: object) -> None:
        session = self._session
        session.depth -= 1
        if self._on_top:
            enter_mode(session.recorder)
        session.quiet = self._was

    def lifted(self, function: Callable[..., Result]) -> Callable[..., Result]:
        """`function` with the recorder on: the closure that an optimizer calls in its step is the
        program's.
        """

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            self.__exit__()
            try:
                return function(*args, **kwargs)
            finally:
                self.__enter__()

        return call


class Differentiation:
    """The backward that runs, with its pause: what its hooks do is the program's own code.

    Hooks of one parameter each can run in several threads of torch's, one for each device: then one
    of them is watched at a time.
    """

    __slots__ = ("_lock", "_pause", "has_stepped")

    def __init__(self, pause: Pause) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self.has_stepped = False  # a hook had an optimizer step

    def run(self, hook: Callable[..., Result], *args: Any) -> Result:
        """Calls a hook with the recorder on."""
        if not self._lock.acquire(blocking=False):
            return hook(*args)
        try:
            return self._pause.lifted(hook)(*args)
        finally:
            self._lock.release()


class Underway:
    """The step of an optimizer that runs: its pause, and what is done once when it is over."""

    __slots__ = ("_finish", "_is_over", "pause")

    def __init__(self, pause: Pause, finish: Callable[[bool], None]) -> None:
        self.pause = pause
        self._finish = finish
        self._is_over = False

    def end(self, running: bool = False) -> None:
        """The parameters are updated; hooks behind the step come while its call is `running`."""
        if not self._is_over:
            self._is_over = True
            self._finish(running)
