"""Gradients clipped by torch's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradlint.trace.session import Session
from gradlint.trace.spent import is_spent, used_up

_NAMES = (
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grad_norm",
    "get_total_norm",
    "clip_grads_with_norm_",
)
_READING = frozenset({"get_total_norm"})


def install(session: Session) -> None:
    """Put the probe in its place."""
    for module in (torch.nn.utils, torch.nn.utils.clip_grad):
        for name in _NAMES:
            if name in vars(module):
                session.replace(module, name, lambda original: _clip(session, original))


def _clip(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.depth:
            return original(parameters, *args, **kwargs)
        spent = is_spent(session, parameters)
        listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        reads = original.__name__ in _READING or math.inf in (*args[:1], kwargs.get("max_norm"))
        session.guarded(_clipped, session, listed, reads)
        if spent:
            session.guarded(used_up, session)
        with session.paused():
            return original(_again(parameters, listed), *args, **kwargs)

    return clip


def _again(given: Any, listed: list[torch.Tensor]) -> Any:
    """What was given, or what stands for it once it was read out: torch warns of a generator
    without parameters.
    """
    if not isinstance(given, Iterator):
        return given
    return (each for each in listed)


def _clipped(session: Session, parameters: list[torch.Tensor], reads: bool) -> None:
    held = [
        session.memory.held(parameter)
        for parameter in parameters
        if isinstance(parameter, torch.nn.Parameter)
    ]
    session.happened("clip", held=held, reads=reads, exhausted=not parameters)
