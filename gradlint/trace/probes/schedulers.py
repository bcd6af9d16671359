"""Learning-rate schedulers: their steps, but for the one that their constructor takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place."""
    base = torch.optim.lr_scheduler.LRScheduler
    for cls in vars(torch.optim.lr_scheduler).values():
        if isinstance(cls, type) and issubclass(cls, base):
            if "step" in vars(cls):
                session.replace(cls, "step", lambda original: _step(session, original))
            if "__init__" in vars(cls):
                session.replace(cls, "__init__", lambda original: _init(session, original))


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        outer, session.scheduling = session.scheduling, True
        try:
            original(self, *args, **kwargs)
        finally:
            session.scheduling = outer

    return make


def _step(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.scheduling:
            return original(self, *args, **kwargs)
        session.guarded(_stepped, session, self)
        session.scheduling = True
        try:
            return original(self, *args, **kwargs)
        finally:
            session.scheduling = False

    return step


def _stepped(session: Session, scheduler: Any) -> None:
    stepper = session.stepper(scheduler)
    optimizer = getattr(scheduler, "optimizer", None)
    stepper.optimizer = session.stepper(optimizer) if optimizer is not None else None
    session.happened("scheduler", stepper=stepper)
