"""Updates that stand alone: a method clips and steps, and the backward is where it is called from.

def update(self):
    clip_grad_norm_(self.net.parameters(), 1.0)
    self.scaler.step(self.optimizer)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.paths import Paths
from gradlint.tape import Clip, May, Optimizer, OptimizerStep, Tape, Unscale, ZeroGrad
from gradlint_rules.held import identities, share
from gradlint_rules.scaled import SCALE_READ


@dataclass(frozen=True, slots=True)
class Alone:
    """A clip, and the step of the same update."""

    clip: Clip
    step: OptimizerStep


def scaled(paths: Paths) -> Iterator[Alone]:
    """The clips of gradients that the step behind them unscales, in entries that unscale nothing by
    themselves.
    """
    found = list(paths.some(_before_scaler))
    if (
        found
        and paths.never(_has_backward, May.BACKWARD)
        and paths.never(lambda tape: bool(tape.of(Unscale)), May.CLIP)
    ):
        yield from found


def behind(paths: Paths) -> Iterator[Alone]:
    """The clips behind the step that ends an update."""
    found = list(paths.some(_behind_step))
    if found and paths.never(_has_backward, May.BACKWARD, between=_behind_first_step):
        yield from found


def _has_backward(tape: Tape) -> bool:
    return any(tape.backwards())


def _behind_first_step(tape: Tape) -> range:
    """Where a path can do something behind a step."""
    first = next((step.order for step in tape.of(OptimizerStep)), len(tape.events))
    return range(first, sys.maxsize)


def _before_scaler(tape: Tape) -> Iterator[Alone]:
    if tape.facts(SCALE_READ):  # somebody unscales by hand
        return
    for clip in _clips(tape):
        following = tape.among(OptimizerStep, ZeroGrad)
        step = next((event for event in following if event.order > clip.order), None)
        if isinstance(step, OptimizerStep) and _is_scaled(step):
            yield Alone(clip, step)


def _behind_step(tape: Tape) -> Iterator[Alone]:
    steps = tape.of(OptimizerStep)
    if not steps or any(clip.order < steps[-1].order for clip in tape.of(Clip)):
        return
    cleared = {event.order for event in tape.of(ZeroGrad)}
    for clip in _clips(tape):
        between = range(steps[-1].order, clip.order)
        if cleared.isdisjoint(between) and _is_of(clip, steps[-1].optimizer):
            yield Alone(clip, steps[-1])


def _clips(tape: Tape) -> list[Clip]:
    return [clip for clip in tape.of(Clip) if not (clip.reads_only or clip.exhausted)]


def _is_scaled(step: OptimizerStep) -> bool:
    return step.scaler is not None and step.scaler.enabled is not False


def _is_of(clip: Clip, optimizer: Optimizer) -> bool:
    """Whether an optimizer can hold what is clipped."""
    if not (clip.parameters and optimizer.complete):
        return True
    return share(identities(clip.parameters), identities(optimizer.parameters))
