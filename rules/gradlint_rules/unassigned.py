"""Steps of gradients that `autograd.grad` returns and nothing stores."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Fact,
    InPlace,
    May,
    OptimizerStep,
    Tape,
    ZeroGrad,
)
from gradlint_rules.accounts import is_gradient
from gradlint_rules.computed import foreign


def unassigned(paths: Paths) -> Iterator[tuple[OptimizerStep, Backward]]:
    """Steps of a program that has its gradients returned by `autograd.grad`, and puts none where a
    step looks.
    """
    found = list(paths.some(_unassigned_on))
    if found and paths.never(_fills, May.CLEAR | May.BACKWARD | May.STEP):
        yield from found


def _unassigned_on(tape: Tape) -> Iterator[tuple[OptimizerStep, Backward]]:
    for step in tape.of(OptimizerStep):
        if not step.closure and step.optimizer.complete:
            asked = [sink for sink in tape.backwards() if _is_asked_for(tape, sink, step)]
            yield from ((step, sink) for sink in asked[-1:])


def _fills(tape: Tape) -> bool:
    """Whether something may be put into the gradients of parameters, or set them up for it."""
    if any(sink.sink != "autograd.grad" for sink in tape.backwards()) or named_alone(tape):
        return True
    if any(event.optimizer is None and not event.text for event in tape.of(ZeroGrad)):
        return True  # `p.grad = torch.zeros_like(p)`
    return any(is_gradient(event.before) for event in tape.of(InPlace))


def _is_asked_for(tape: Tape, sink: Backward, step: OptimizerStep) -> bool:
    """Whether these gradients are of what the step holds, and no unknown code runs between the
    two.
    """
    if (
        step.optimizer.escapes
        or sink.order > step.order
        or sink.iteration[: len(step.iteration)] != step.iteration
    ):
        return False
    held = any(
        one.parameter is not None and step.optimizer.holds(one.parameter)
        for one in sink.inputs or ()
    )
    return held and not any(sink.order < call.order < step.order for call in foreign(tape))


def named_alone(tape: Tape) -> list[Fact]:
    """Where a backward is named as a statement, and not called."""
    return [fact for fact in tape.facts("not-called") if fact.detail == "backward"]
