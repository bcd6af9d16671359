"""Losses that are shares of a window, where each round is an update of its own."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.tape import Backward, Event, OptimizerStep, Tape, Value
from gradlint_rules.accounts import Account, Update, accounts_on
from gradlint_rules.cached import of_tape

_ROUNDS = 2  # that have to be seen


@dataclass(frozen=True, slots=True)
class Share:
    """A loss that is divided by the size of a window, and the step and the clearing of its
    round.
    """

    account: Account
    sink: Backward
    quotient: Value
    step: OptimizerStep
    clearing: Event


@of_tape
def shares_alone(tape: Tape) -> list[Share]:
    """The shares of a path that an optimizer steps on one by one."""
    quotients = {
        id(fact.value): fact.value
        for fact in tape.facts("share-of-window")
        if fact.value is not None
    }
    return (
        [found for account in accounts_on(tape) for found in _of(account, quotients)]
        if quotients
        else []
    )


def _of(account: Account, quotients: dict[int, Value]) -> Iterator[Share]:
    """The share of an optimizer's account, if all of its updates are of one share each, and cleared
    in its round.
    """
    if not account.optimizer.complete or account.optimizer.escapes:
        return
    found = [_share(account, update, quotients) for update in account.updates]
    known = [share for share in found if share is not None]
    counted = found[:-1]  # the last round need not have been counted
    if len(known) >= _ROUNDS and None not in counted:
        yield known[0]


def _share(account: Account, update: Update, quotients: dict[int, Value]) -> Share | None:
    if len(update.fresh) != 1 or update.stale or update.taken:
        return None
    (sink,) = update.fresh
    quotient = next((value for value in sink.graph if id(value) in quotients), None)
    in_round = (
        sink.iteration != () and update.step.iteration[: len(sink.iteration)] == sink.iteration
    )
    if (
        quotient is None
        or not in_round
        or sink.by_framework
        or quotient.iteration != sink.iteration
    ):
        return None
    rounds = len(sink.iteration)
    cleared = (each for each in account.clearings if each.iteration[:rounds] == sink.iteration)
    clearing = next(cleared, None)
    return Share(account, sink, quotient, update.step, clearing) if clearing is not None else None
