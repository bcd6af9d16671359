"""Steps of shares of a window in all rounds but each n-th: `if i % n != 0: optimizer.step()`."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.tape import Backward, Fact, OptimizerStep, Tape
from gradlint_rules.accounts import Account, Update, accounts_on
from gradlint_rules.cached import of_tape
from gradlint_rules.windows import gate_of, rounds_of


@dataclass(frozen=True, slots=True)
class Inverted:
    """A condition that keeps the step from each n-th round, and lets it through in all others."""

    gate: Fact
    sink: Backward
    step: OptimizerStep


@of_tape
def inverted_gates(tape: Tape) -> list[Inverted]:
    """The conditions of a path behind which shares of a window are updates of their own."""
    quotients = {id(fact.value) for fact in tape.facts("share-of-window")}
    accounts = accounts_on(tape) if quotients else []
    return [found for account in accounts for found in _of(account, quotients)]


def _of(account: Account, quotients: set[int]) -> Iterator[Inverted]:
    for update in account.updates:
        if _is_share(update, quotients):
            yield from _behind_a_gate(account, update)


def _behind_a_gate(account: Account, update: Update) -> Iterator[Inverted]:
    (sink,) = update.fresh
    loop, number = sink.iteration[-1]
    rounds = rounds_of(account.backwards, loop)
    stepped = rounds_of((each.step for each in account.updates), loop)
    is_within = {number - 1, number} <= stepped and number < max(rounds)
    gate = gate_of(account.tape, update.step, loop, sorted(rounds), stepped)
    if gate is not None and is_within:
        yield Inverted(gate, sink, update.step)


def _is_share(update: Update, quotients: set[int]) -> bool:
    """Whether an update is made of one share of a window, and steps in its round."""
    if len(update.fresh) != 1 or update.stale or update.given:
        return False
    (sink,) = update.fresh
    is_own = sink.iteration != () and update.step.iteration == sink.iteration
    return is_own and any(id(value) in quotients for value in sink.graph)
