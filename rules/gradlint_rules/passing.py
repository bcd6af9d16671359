"""What the loss of one optimizer leaves in the parameters of another through which it only passes,
before that one has stepped on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Related, Role, Severity
from gradlint.rule import Report
from gradlint.tape import Backward, Event, Optimizer, OptimizerStep, Value, ZeroGrad, above
from gradlint_rules.accounts import Account, Update, serves
from gradlint_rules.words import backward, places


def passing(account: Account) -> Iterator[Report]:
    """Every loss that adds to the gradients of the one before it, behind a clearing for another
    optimizer, where one step uses both.

    A policy is cleared and learns by a critic, `-critic(policy(x))`, while the critic has yet to
    step on its own loss: the gradient passes through the critic, and stays in it.
    """
    if not account.optimizer.complete or account.optimizer.escapes:
        return
    for update in account.updates:
        for own, other in zip(update.fresh, update.fresh[1:], strict=False):
            owner = _cleared_between(account, own, other)
            if owner is None or own.iteration != other.iteration:
                continue
            clearing, optimizer = owner
            if _steps_later(account, optimizer, update) and _is_behind(
                account.optimizer, optimizer, other
            ):
                yield _report(account, other, own, [clearing, update.step])


def _report(account: Account, other: Backward, own: Backward, used: Sequence[Event]) -> Report:
    name = account.optimizer.name or account.optimizer.cls or "optimizer"
    message = (
        f"{backward(other)} passes through what `{name}` holds and adds to the gradients of "
        f"{backward(own)} there, on which it has not stepped yet"
    )
    help_ = (
        f"Step `{name}` before this loss is computed, or freeze what it holds for this backward: "
        "`requires_grad_(False)`."
    )
    clearing, step = used
    related = [
        Related(own.at, f"the loss that `{name}` is cleared for"),
        Related(clearing.at, "cleared here for the other loss, and nothing else"),
        Related(step.at, "the step that uses both", Role.STEP),
    ]
    return Report(
        other.at,
        message,
        help_,
        places(other.at, *related),
        Severity.WARNING,
        hints={"passing": "yes"},
    )


def _cleared_between(
    account: Account, own: Backward, other: Backward
) -> tuple[Event, Optimizer] | None:
    """The clearing of another optimizer between two losses, of which the second alone serves it."""
    for event in account.tape.of(ZeroGrad):
        optimizer = event.optimizer
        if (
            optimizer is not None
            and optimizer is not account.optimizer
            and own.order < event.order < other.order
            and serves(optimizer, other, is_alone=False)
            and not serves(optimizer, own, is_alone=False)
        ):
            return event, optimizer
    return None


def _steps_later(account: Account, optimizer: Optimizer, update: Update) -> bool:
    """Whether the other optimizer steps behind that loss, too: nothing else is wrong with it."""
    last = update.fresh[-1]
    steps = (step for step in account.tape.of(OptimizerStep) if step.optimizer is optimizer)
    return any(step.order > last.order for step in steps)


def _is_behind(passed: Optimizer, served: Optimizer, sink: Backward) -> bool:
    """Whether all that one optimizer holds stands between the loss and what the other holds: it is
    computed with what comes of the other's parameters, and none of these with what comes of it.
    """
    behind_served = _made_of(served, sink)
    behind_passed = _made_of(passed, sink)
    return _meets(passed, behind_served, sink) and not _meets(served, behind_passed, sink)


def _made_of(optimizer: Optimizer, sink: Backward) -> set[int]:
    """The ids of the values of a graph that are computed from what an optimizer holds."""
    held = {id(value) for value in sink.graph if _holds(optimizer, value)}
    return {id(value) for value in above(sink.graph, held)}


def _meets(optimizer: Optimizer, made: set[int], sink: Backward) -> bool:
    """Whether a parameter that an optimizer holds is used together with one of these values."""
    return any(
        id(source) in made and not _holds(optimizer, source)
        for value in sink.graph
        if any(_holds(optimizer, source) for source in value.inputs)
        for source in value.inputs
    )


def _holds(optimizer: Optimizer, value: Value) -> bool:
    return value.parameter is not None and optimizer.holds(value.parameter)
