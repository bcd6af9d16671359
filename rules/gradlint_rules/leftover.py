"""What the loss of one optimizer leaves in the parameters of another, behind their clearing."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import Backward, Event, OptimizerStep
from gradlint_rules.accounts import Account, key, serves

Left = tuple[Backward, Backward, Event, Event]


def left_overs(account: Account) -> Iterator[Left]:
    """A loss, another one on whose gradients it lies, the clearing before both, and the step.

    A generator's loss leaves gradients in the critic: a clearing right behind the critic's own
    step, or before both losses, comes too early.
    """
    if not account.optimizer.complete or account.optimizer.escapes:
        return
    for update in account.updates:
        for other in update.fresh:
            behind = _stepped_by_another(account, other)
            later = [sink for sink in update.fresh if behind and sink.order > behind.order]
            own = [sink for sink in later if not _is_earlier(sink, update.step)]
            if (
                behind is None
                or not own
                or not _is_of_another(account, other, own, behind, update.step)
            ):
                continue
            clearing = _clearing_before(account, other)
            if clearing is not None:
                yield own[0], other, clearing, update.step


def _is_earlier(sink: Backward, step: OptimizerStep) -> bool:
    """Whether a backward ran in an earlier round of a loop around the step."""
    rounds = dict(step.iteration)
    return any(number < rounds.get(loop, number) for loop, number in sink.iteration)


def _stepped_by_another(account: Account, other: Backward) -> OptimizerStep | None:
    """The step right behind a loss, in the same round, if it is that of another optimizer, which
    the loss serves.
    """
    behind = next(
        (step for step in account.tape.of(OptimizerStep) if step.order > other.order), None
    )
    if behind is None or behind.optimizer is account.optimizer or _is_earlier(other, behind):
        return None
    return behind if serves(behind.optimizer, other, is_alone=False) else None


def _is_of_another(
    account: Account,
    other: Backward,
    own: list[Backward],
    behind: OptimizerStep,
    step: OptimizerStep,
) -> bool:
    """Whether another loss ran backward: another statement did, or the same one in another
    optimizer's turn.

    `for index, optimizer in enumerate(optimizers): … loss.backward(); optimizer.step()` with a loss
    for each.
    """
    if all(key(sink) != key(other) for sink in own):
        return _is_earlier(other, step) or not any(_is_shared(account, sink) for sink in own)
    losses = {(sink.value.at, sink.value.stack) for sink in own}
    return (other.value.at, other.value.stack) not in losses and key(behind) == key(step)


def _is_shared(account: Account, sink: Backward) -> bool:
    """Whether a loss serves another optimizer as well: then what several losses add up to can be
    meant.
    """
    others = (each for each in account.tape.optimizers() if each is not account.optimizer)
    return any(serves(each, sink, is_alone=False) for each in others)


def _clearing_before(account: Account, other: Backward) -> Event | None:
    """The last clearing before a loss, if no step of the optimizer lies between."""
    steps = (
        step.order for step in account.tape.of(OptimizerStep) if step.optimizer is account.optimizer
    )
    since = max((order for order in steps if order < other.order), default=-1)
    return next(
        (event for event in reversed(account.clearings) if since < event.order < other.order), None
    )
