"""Accelerate's `Accelerator`: whether it divides losses by the size of a window, and what it
accumulates.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from gradlint.trace.frames import Place, nearest
from gradlint.trace.imported import when_imported
from gradlint.trace.records import Op
from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place, once the program imports the library."""
    watch = _Watch(session)
    session.on_loss.append(watch.loss)
    when_imported(session, "accelerate.accelerator", watch.put)


class _Watch:
    """The accelerators that divide."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.made: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()
        self.entered = False  # `accumulate`, since the last backward
        self.dividing = False  # a backward within `accumulate` is running

    def put(self, module: ModuleType) -> None:
        """Put the probe in its place."""
        cls = module.Accelerator
        self.session.replace(cls, "__init__", self._init)
        self.session.replace(cls, "backward", self._backward)
        for name in ("accumulate", "no_sync"):
            self.session.replace(cls, name, self._enter)

    def loss(self, _: torch.Tensor, op: Op) -> None:
        """What `accelerator.backward` back-propagates in a round is the share of a window."""
        if self.dividing:
            self.session.note("fact", op.place, what="share-of-window", op=op, detail="")

    def _init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make(accelerator: Any, *args: Any, **kwargs: Any) -> None:
            original(accelerator, *args, **kwargs)
            window = accelerator.gradient_accumulation_steps
            if window > 1 and not self.session.quiet:
                self.made[accelerator] = nearest()
                self._tell("accelerator-divides", accelerator, str(window))

        return make

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(accelerator: Any, *args: Any, **kwargs: Any) -> Any:
            self._tell("accelerator-backward", accelerator)
            self.dividing, self.entered = self.entered and accelerator in self.made, False
            try:
                return original(accelerator, *args, **kwargs)
            finally:
                self.dividing = False

        return backward

    def _enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(accelerator: Any, *args: Any, **kwargs: Any) -> Any:
            self.entered = True
            self._tell("accelerator-accumulates", accelerator)
            return original(accelerator, *args, **kwargs)

        return enter

    def _tell(self, what: str, accelerator: Any, detail: str = "") -> None:
        made = self.made.get(accelerator)
        if made is not None and not self.session.quiet:
            self.session.happened("fact", what=what, detail=detail, related=made)
