"""Threads: torch's modes are each thread's own, so the recorder is put into those that the program
starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(
        threading.Thread, "_bootstrap_inner", lambda original: _begin(session, original)
    )


def _begin(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def bootstrap_inner(self: threading.Thread) -> None:
        with session.also_here():
            original(self)

    return bootstrap_inner
