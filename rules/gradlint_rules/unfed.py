"""Steps of optimizers in a program without a backward."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Fact,
    May,
    OptimizerStep,
    Tape,
    Value,
    leaves,
)
from gradlint_rules.computed import foreign, losses, used
from gradlint_rules.unassigned import named_alone


def unfed(paths: Paths) -> Iterator[tuple[OptimizerStep, Fact]]:
    """Steps of a program without a backward, each with a loss that was computed for it and only
    looked at.
    """
    if any(paths.some(named_alone)):
        return
    followed = {fact.at for fact in paths.some(used)}
    found = list(paths.some(lambda tape: _unfed_on(tape, followed)))
    if found and paths.never(lambda tape: bool(tape.of(Backward)), May.BACKWARD | May.STEP):
        yield from found


def _unfed_on(tape: Tape, followed: AbstractSet[Span]) -> Iterator[tuple[OptimizerStep, Fact]]:
    for step in tape.of(OptimizerStep):
        fed = (
            fact
            for fact, loss in losses(tape)
            if fact.at not in followed
            and _is_for(tape, fact, loss, step)
            # a closure that was not run may back-propagate
            and (tape.traced or not step.closure or step.at in fact.stack)
        )
        fact = next(fed, None)
        if fact is not None:
            yield step, fact


def _is_for(tape: Tape, fact: Fact, loss: Value, step: OptimizerStep) -> bool:
    """Whether a loss of this round would train what the step holds, and no unknown code runs
    between the two.
    """
    if not step.optimizer.complete or step.optimizer.escapes or fact.iteration != step.iteration:
        return False
    held = any(
        leaf.parameter is not None and step.optimizer.holds(leaf.parameter) for leaf in leaves(loss)
    )
    return (
        held
        and fact.order < step.order
        and not any(fact.order < call.order < step.order for call in foreign(tape))
    )
