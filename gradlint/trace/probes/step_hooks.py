"""Hooks of an optimizer's step: the program's own code, before the step or behind it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.session import Session

Hook = Callable[..., Any]


def install(session: Session) -> None:
    """Put the probe in its place."""
    module = importlib.import_module("torch.optim.optimizer")  # `torch.optim` hides it
    for name, is_behind in (("pre", False), ("post", True)):
        watched = functools.partial(_registering, session, is_behind)
        session.replace(torch.optim.Optimizer, f"register_step_{name}_hook", watched)
        session.replace(module, f"register_optimizer_step_{name}_hook", watched)


def _registering(session: Session, is_behind: bool, original: Callable[..., Any]) -> Hook:
    @functools.wraps(original)
    def register(*args: Any, **kwargs: Any) -> Any:
        *owner, hook = (*args, *kwargs.values())
        return original(*owner, _watched(session, is_behind, hook))

    return register


def _watched(session: Session, is_behind: bool, hook: Hook) -> Hook:
    """A hook that runs with the recorder on; behind one that comes later, the step is over."""

    @functools.wraps(hook, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        step = session.underway
        if step is None or torch.compiler.is_compiling():
            return hook(*args, **kwargs)
        if is_behind:
            step.end(running=True)
        session.stepping, session.underway = False, None
        try:
            return step.pause.lifted(hook)(*args, **kwargs)
        finally:
            session.stepping, session.underway = True, step

    return call
