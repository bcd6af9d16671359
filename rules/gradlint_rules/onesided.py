"""Steps of a function that somebody else calls for each batch, of two optimizers or more: the
gradients of one are cleared there, and nothing clears those of another.

    def optimize_parameters(self):
        self.optimizer_g.zero_grad()
        self.loss_g().backward()
        self.optimizer_g.step()
        self.loss_f().backward()
        self.optimizer_f.step()
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.paths import Paths
from gradlint.tape import Backward, Event, May, OptimizerMade, OptimizerStep, Tape
from gradlint_rules.accounts import Account, accounts, accounts_on

_OF_TORCH = "torch.optim."


@dataclass(frozen=True, slots=True)
class OneSided:
    """A backward for an optimizer that nothing clears, its step, and the clearing of another."""

    account: Account
    sink: Backward
    step: OptimizerStep
    clearing: Event


def one_sided(paths: Paths) -> Iterator[OneSided]:
    """What is left to add up from call to call, whatever path a call takes."""
    found = {
        each.account.optimizer.identity: each
        for account in reversed(accounts(paths))
        for each in _of(account)
    }
    return (each for each in found.values() if _is_never_cleared(each.account, paths))


def _is_never_cleared(account: Account, paths: Paths) -> bool:
    identity = account.optimizer.identity
    return bool(paths.never(lambda tape: _is_cleared(tape, identity), May.CLEAR))


def _of(account: Account) -> Iterator[OneSided]:
    tape, own = account.tape, account.optimizer
    if tape.traced or own.escapes or account.clearings or not _outlives(account):
        return
    clearing = next(
        (
            event
            for other in accounts_on(tape)
            if other is not account and _outlives(other) and _steps_once(other)
            if other.optimizer.cls == own.cls or own.cls.startswith(_OF_TORCH)
            for event in other.clearings
            if not event.iteration
        ),
        None,
    )
    if clearing is not None and _steps_once(account):
        update = account.updates[0]
        yield OneSided(account, update.fresh[0], update.step, clearing)


def _outlives(account: Account) -> bool:
    """Whether the optimizer was there before the entry began."""
    return not any(made.optimizer is account.optimizer for made in account.tape.of(OptimizerMade))


def _steps_once(account: Account) -> bool:
    """Whether one step uses what backwards of the entry itself leave, in no loop."""
    if len(account.updates) != 1:
        return False
    update = account.updates[0]
    events = (*update.fresh, update.step)
    is_plain = not (update.given or update.wiped or update.step.closure)
    return bool(update.fresh) and is_plain and not any(event.iteration for event in events)


def _is_cleared(tape: Tape, identity: object) -> bool:
    return any(
        account.optimizer.identity == identity and account.clearings
        for account in accounts_on(tape)
    )
