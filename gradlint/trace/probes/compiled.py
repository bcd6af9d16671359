"""`torch.compile`: compiled code runs eagerly while it is recorded; after that the recorder stays away from it.

Dynamo traces into an active mode. Left on, it would break the graphs or recompile them at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(torch, "compile", lambda original: _compile(session, original))


def _compile(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def compile_(*args: Any, **kwargs: Any) -> Any:
        if not session.quiet:
            session.guarded(session.meet_compiler)
        return original(*args, **kwargs)

    return compile_
