"""What the loss of one optimizer leaves in the parameters of another, behind their clearing."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import Backward, Event, OptimizerStep
from gradlint_rules.accounts import Account, key, serves

Left = tuple[Backward, Backward, Event, Event]


def left_overs(account: Account) -> Iterator[Left]:
    """A loss, the loss of the round before on whose gradients it lies, their clearing before that, and the step.

    A generator's loss leaves gradients in the critic: a clearing right behind the critic's own step comes too early.
    """
    if not account.optimizer.complete or account.optimizer.escapes:
        return
    for update in account.updates:
        own = [sink for sink in update.fresh if not _is_earlier(sink, update.step)]
        known = {key(sink) for sink in own}
        for other in update.fresh if own else ():
            if _is_earlier(other, update.step) and key(other) not in known:
                clearing = _clearing_before(account, other, own[0])
                if clearing is not None:
                    yield own[0], other, clearing, update.step


def _is_earlier(sink: Backward, step: OptimizerStep) -> bool:
    """Whether a backward ran in an earlier round of a loop around the step."""
    rounds = dict(step.iteration)
    return any(number < rounds.get(loop, number) for loop, number in sink.iteration)


def _clearing_before(account: Account, other: Backward, own: Backward) -> Event | None:
    """The clearing behind the last step before the other loss, by which another optimizer steps in the same round."""
    steps = account.tape.of(OptimizerStep)
    before = [each for each in steps if each.optimizer is account.optimizer and each.order < other.order]
    behind = [each for each in steps if other.order < each.order < own.order]
    if not before or not behind or any(each.optimizer is account.optimizer for each in behind):
        return None
    is_one_round = all(set(other.iteration) <= set(step.iteration) for step in (before[-1], behind[0]))
    if not is_one_round or not serves(behind[0].optimizer, other, is_alone=False):
        return None
    late = [event for event in account.clearings if before[-1].order < event.order < own.order]
    return late[-1] if late and late[-1].order < other.order else None
