"""The numbers of a run over its steps: gradient norms, losses, and the first that is not finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from gradlint.trace.frames import Place
from gradlint.trace.records import Held


@dataclass(eq=False, slots=True)
class Timeline:
    """Gradient norms by parameter, one column a step, and the losses; filled only where they are
    asked for.

    A norm is None where a step found no gradient of a parameter that requires one. `on_norms` hears
    of each step, also where none is `kept`.
    """

    wanted: bool = False
    kept: bool = True
    batch: int | None = None  # that a DataLoader gave last, from 0
    # the first: what, step, batch, where
    not_finite: tuple[str, int, int | None, Place] | None = None
    on_norms: list[Callable[[int, dict[str, float | None]], None]] = field(default_factory=list)
    norms: list[tuple[int, dict[str, float | None]]] = field(default_factory=list)
    # of each backward, with the steps before it
    losses: list[tuple[int, float]] = field(default_factory=list)
    # whether a step ever found a gradient that is not zero
    trained: dict[Held, bool] = field(default_factory=dict)

    def look(self, what: str, value: float, step: int, place: Place) -> None:
        """Takes down the first value that is not finite."""
        if self.not_finite is None and not math.isfinite(value):
            self.not_finite = what, step, self.batch, place
