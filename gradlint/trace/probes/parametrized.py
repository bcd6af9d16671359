"""What a parametrized module computes for each access to an attribute: a write into it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.utils import parametrize

from gradlint.tape import COMPUTED_ANEW
from gradlint.trace.frames import here
from gradlint.trace.memory import storage_key
from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(
        parametrize.ParametrizationList, "forward", lambda original: _forward(session, original)
    )


def _forward(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any) -> Any:
        out = original(self)
        if isinstance(out, torch.Tensor) and not session.quiet and not parametrize._cache_enabled:
            session.guarded(_computed, session, self, out)
        return out

    return forward


def _computed(session: Session, parametrization: Any, out: torch.Tensor) -> None:
    """An attribute was computed, not into the memory of what it is computed from."""
    sources = {
        storage_key(each) for each in (*parametrization.parameters(), *parametrization.buffers())
    }
    if storage_key(out) not in sources:
        session.memory.of(out, here()).flags |= {COMPUTED_ANEW}
