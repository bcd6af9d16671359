"""Frozen leaves of a loss, and the optimizers that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.tape import (
    Cut,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules.arrivals import Arrival


def _turn_of(arrival: Arrival) -> Optimizer | None:
    """The optimizer that steps next or, where the run ends here, was cleared last, and has not
    stepped since.
    """
    order, tape = arrival.sink.order, arrival.tape
    following = next((step for step in tape.of(OptimizerStep) if step.order > order), None)
    if following is not None:
        return following.optimizer
    before = [event for event in tape.among(OptimizerStep, ZeroGrad) if event.order < order]
    return before[-1].optimizer if before and isinstance(before[-1], ZeroGrad) else None


def frozen_for_the_step(cuts: Sequence[Value], arrival: Arrival) -> list[Value]:
    """The frozen leaves that the optimizer holds whose turn it is, where it holds nothing behind
    the other cuts.

    Where nothing shows whose turn it is, they are those that the round of the loss has frozen, or
    that were frozen under an optimizer's hands: who detaches the rest means these to be trained.
    """
    optimizer = _turn_of(arrival)
    if optimizer is None and all(cut.cut in (Cut.FROZEN, Cut.DETACH) for cut in cuts):
        rounds, optimizers = arrival.sink.iteration, arrival.tape.optimizers()
        return [
            cut
            for cut in cuts
            if (rounds and _is_frozen_in(rounds, cut) and _is_trained(cut, optimizers))
            or _is_frozen_while_held(cut, arrival)
        ]
    held = [cut for cut in cuts if optimizer is not None and is_trained_by(optimizer, cut)]
    return held if all(cut.cut is Cut.FROZEN for cut in held) else []


def _is_frozen_in(rounds: tuple[tuple[int, int], ...], cut: Value) -> bool:
    return cut.cut is Cut.FROZEN and cut.iteration == rounds


def _is_frozen_while_held(cut: Value, arrival: Arrival) -> bool:
    """Whether an optimizer held a frozen leaf when it was frozen, before the loss.

    A trainer's loop lies in a library, so that its first batch is no round of anything.
    """
    tape, sink = arrival.tape, arrival.sink.order
    frozen = [
        fact.order
        for fact in tape.facts("frozen")
        if fact.order < sink and fact.value is not None and fact.value.parameter is cut.parameter
    ]
    return (
        cut.cut is Cut.FROZEN
        and bool(frozen)
        and any(
            made.order < frozen[-1] and is_trained_by(made.optimizer, cut)
            for made in tape.of(OptimizerMade)
        )
    )


def _is_trained(cut: Value, optimizers: Sequence[Optimizer]) -> bool:
    """Whether one of these holds what was frozen; on a path that ends before the first step none is
    known.
    """
    return not optimizers or any(is_trained_by(optimizer, cut) for optimizer in optimizers)


def is_trained_by(optimizer: Optimizer, cut: Value) -> bool:
    """Whether a cut keeps a gradient from something that the optimizer holds."""
    return any(
        value.parameter is not None and optimizer.holds(value.parameter) for value in ancestors(cut)
    )
