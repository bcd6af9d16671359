"""Which steps find the gradients of a backward, on all paths."""

from __future__ import annotations

from gradlint.dataclass import dataclass
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    May,
    Optimizer,
    OptimizerStep,
    Tape,
)
from gradlint_rules.accounts import Update, Wiped, accounts_on, key
from gradlint_rules.cached import of_tape


@dataclass(frozen=True, slots=True)
class _Use:
    """A step that finds the gradients of a backward."""

    sink: Backward
    step: OptimizerStep

    @property
    def optimizer(self) -> Optimizer:
        return self.step.optimizer

    @property
    def is_inside(self) -> bool:
        """Whether the step stands in all the loops that the backward stands in."""
        return {loop for loop, _ in self.sink.iteration} <= {
            loop for loop, _ in self.step.iteration
        }


@of_tape
def uses_on(tape: Tape) -> list[_Use]:
    """The steps of a path that find gradients, each with the backward that they are from."""
    updates = (update for account in accounts_on(tape) for update in account.updates)
    return [_Use(sink, update.step) for update in updates for sink in update.fresh]


def is_never_used(sink: Backward, paths: Paths, optimizer: Optimizer | None = None) -> bool:
    """Whether no step (of one optimizer) finds the gradients of this statement on any path,
    whatever was not run.
    """

    def is_used(tape: Tape) -> bool:
        used = (use for use in uses_on(tape) if key(use.sink) == key(sink))
        return any(
            optimizer is None or use.optimizer.identity == optimizer.identity for use in used
        )

    return bool(paths.never(is_used, May.STEP))


def is_never_used_inside(sink: Backward, paths: Paths) -> bool:
    """Whether no step in its loop finds the gradients of this statement on any path, whatever was
    not run.
    """

    def is_used(tape: Tape) -> bool:
        return any(use.is_inside and key(use.sink) == key(sink) for use in uses_on(tape))

    return bool(paths.never(is_used, May.STEP))


def is_late(update: Update, wiped: Wiped) -> bool:
    """Whether the step comes before the backward of its round: it could use the gradients of the
    round before.
    """
    sink, step = wiped.sink, update.step
    loops = [loop for loop, _ in sink.iteration]
    return (
        bool(loops)
        and loops == [loop for loop, _ in step.iteration]
        and sink.iteration < step.iteration
    )
