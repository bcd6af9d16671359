"""Optimizers, scalers and schedulers: what a report needs of them once the objects are gone."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradlint.trace.frames import Place
from gradlint.trace.records import Held


@dataclass(eq=False, slots=True)
class Stepper:
    """An optimizer, a scaler or a scheduler: what a report needs once the object itself is gone."""

    cls: str
    place: Place
    name: str = ""
    held: list[Held] = field(default_factory=list)
    # whom these identities are of
    seen: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    frozen: set[int] = field(default_factory=set)
    optimizer: Stepper | None = None
    enabled: bool | None = True
    device: str = ""
    unscales: bool = False
    is_kept: bool = False  # whether the numbers of what it holds now are taken down
    is_inner: bool = False  # steps in the very call that made it, `result = trainer.train()`
    starved: frozenset[int] = frozenset()
    # how often the gradients had been written when a step began; None where there was none
    versions: list[int | None] = field(default_factory=list)
    steps: int = 0


class Clearing(NamedTuple):
    """Gradients cleared: where, of which optimizer or of which parameters, and whether something
    had read them.
    """

    place: Place
    stepper: Stepper | None
    parameters: list[Held]
    was_read: bool
