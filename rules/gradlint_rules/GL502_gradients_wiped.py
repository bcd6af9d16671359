"""# gradients-wiped (GL502)

Gradients are cleared between the backward and the step that should use them.

## What it does
Reports the clearing after which a step finds no gradient at all, although a backward ran before it
(in its round, or in the one before, where the step comes first), one between the backwards of two
losses in one step, after which the first of them trains nothing, and one in a loop of backwards
that one step follows, after which the last of them alone counts, or what came behind the last whole
window. So is one that follows a probe, a backward whose gradients no step uses, where it clears
those of the loss as well; `torch.autograd.grad` leaves `.grad` alone.

## Why it matters
The step does nothing (or, with momentum and weight decay, something that has nothing to do with the
loss), or it follows only one of its losses: the model never learns what it should, and no error is
raised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.zero_grad()  # expect: GL502
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Gradients that were read, copied or set by hand in between, as gradient surgery and
  sharpness-aware steps do.
- Gradients that are put aside for a step and put back behind it, as those of other shards are.
- Clearing what another model's loss left in these parameters.
- A loop of backwards whose gradients come into an update, or into code out of view, before they are
  cleared, and one that a `break` or a `while` ends.
- Clearing on every micro-batch, while the step runs on every N-th or behind their loop: that is
  `accumulation-defeated` (GL505).

## Limits
A step that finds gradients on another path is reported beside a probe alone: a batch can be skipped
on purpose. Of two losses in one step a traced run says nothing once the program has hooked a
backward or set a gradient by hand: it does not show what these make of the gradients of the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from gradlint.finding import Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Backward,
    May,
    Optimizer,
    Tape,
    Value,
    leaves,
)
from gradlint_rules import computed
from gradlint_rules.accounts import Account, Key, Update, Wiped, accounts, accounts_on, key
from gradlint_rules.cached import of_tape
from gradlint_rules.clearing import cleared_before, cleared_before_loop
from gradlint_rules.frames import hints_of
from gradlint_rules.halves import halves
from gradlint_rules.probed import beside_probes
from gradlint_rules.training import stepped_in_window, stepped_late
from gradlint_rules.uncut import unsafe
from gradlint_rules.uses import is_late
from gradlint_rules.words import backward, places, to_sink

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL501"])
_HELP = "Clear before the backward, or after the step."


def check(paths: Paths) -> Iterator[Report]:
    """Every clearing that leaves a step with nothing, where it never finds a gradient, or with one
    loss of two.
    """
    found = [each for each in paths.some(_wiped_on) if _is_never_fed(key(each[1].step), paths)]
    for account, update, wiped in (
        *_without_forgotten(paths, found),
        *halves(paths),
        *beside_probes(paths),
    ):
        yield _report(account, update, wiped)


def _wiped_on(tape: Tape) -> Iterator[tuple[Account, Update, Wiped]]:
    """The steps of a path that find no gradient, for what was cleared."""
    updates = [(account, update) for account in accounts_on(tape) for update in account.updates]
    for account, update in updates:
        wiped = _wiped(update)
        if wiped is not None and not _is_put_back(account, update, wiped):
            yield account, update, wiped


def _is_never_fed(step: Key, paths: Paths) -> bool:
    """Whether a step finds gradients on no path, whatever was not run."""
    return bool(paths.never(lambda tape: step in _fed_on(tape), May.BACKWARD))


@of_tape
def _fed_on(tape: Tape) -> set[Key]:
    """The steps of a path that find gradients."""
    updates = (update for account in accounts_on(tape) for update in account.updates)
    return {key(update.step) for update in updates if update.fresh or update.stale or update.given}


def _without_forgotten(
    paths: Paths, found: Sequence[tuple[Account, Update, Wiped]]
) -> list[tuple[Account, Update, Wiped]]:
    """Those whose step is not for another loss, which nothing back-propagates: that is told by
    `unused-loss`.

    What was cleared then is what the loss of another optimizer left, which that one used.
    """
    if not found:
        return []
    used = {
        key(sink)
        for account in accounts(paths)
        for update in account.updates
        for sink in update.fresh
    }
    followed = {fact.at for fact in paths.some(computed.used)}

    def is_for_another(account: Account, update: Update, wiped: Wiped) -> bool:
        between = range(wiped.sink.order, update.step.order)
        return key(wiped.sink) in used and any(
            fact.at not in followed and fact.order in between and _trains(account.optimizer, loss)
            for fact, loss in computed.losses(account.tape)
        )

    forgotten = {key(each[1].step) for each in found if is_for_another(*each)}
    return [each for each in found if key(each[1].step) not in forgotten]


def _trains(optimizer: Optimizer, loss: Value) -> bool:
    return any(
        leaf.parameter is not None and optimizer.holds(leaf.parameter) for leaf in leaves(loss)
    )


def _wiped(update: Update) -> Wiped | None:
    """The last gradient that was cleared in the round of this step, or before it in the next round.

    None where the step finds any, or what was cleared belongs to another loop.
    """
    if update.fresh or update.stale or not update.wiped:
        return None
    last = update.wiped[-1]
    rounds = dict(update.step.iteration)
    is_here = all(rounds.get(loop, number) == number for loop, number in last.sink.iteration)
    return last if is_here or is_late(update, last) else None


def _is_put_back(account: Account, update: Update, wiped: Wiped) -> bool:
    """Whether gradients come back behind the step, where they were taken away: it was not to use
    them.
    """
    behind = (
        event
        for event in account.tape.among(Backward, "gradient-set")
        if event.order > update.step.order
    )
    given = itertools.takewhile(lambda event: not isinstance(event, Backward), behind)
    return any(account.tape.traced or event.stack == wiped.clearing.stack for event in given)


def _report(account: Account, update: Update, wiped: Wiped) -> Report:
    name = account.optimizer.name or account.optimizer.cls or "optimizer"
    hints: Mapping[str, str]
    if not update.fresh and is_late(update, wiped):
        message = (
            f"`{name}` steps before {backward(wiped.sink)} of its round, whose gradients are "
            "cleared before "
            "the next one: no step finds any"
        )
        help_ = "Step after the backward, before the gradients are cleared."
        hints = {"late": "yes"}
    else:
        message = (
            f"the gradients of {backward(wiped.sink)} are cleared before `{name}` steps: the "
            "step finds "
        )
        help_ = _HELP
        hints = {}
        if not update.fresh:
            message += "none"
            is_alone = len({key(each.sink) for each in update.wiped}) == 1  # not a probe's, too
            hints = hints_of(wiped.clearing, wiped.sink, update.step) if is_alone else {}
        elif key(update.fresh[-1]) == key(wiped.sink):
            message += (
                f"only those of the last round{'s' * (update.fresh[0] is not update.fresh[-1])}"
            )
            is_window = wiped.clearing.iteration == wiped.sink.iteration
            help_ = "Step here before they are cleared." if is_window else "Clear before the loop."
            hints = {"loop": "" if is_window else "yes", "step": name if is_window else ""}
        else:
            message += f"only those of {backward(update.fresh[-1])}"
    at = wiped.clearing.at
    related = places(
        at, to_sink(wiped.sink), Related(update.step.at, "the step that should use them", Role.STEP)
    )
    return Report(at, message, help_, related, hints=hints)


def fix(finding: Finding, source: FixSource) -> Fix | None:
    """Clears the gradients before they are computed, and steps behind the backward, before they are
    cleared.
    """
    if finding.hints.get("late"):
        return unsafe("Step behind the backward", stepped_late(finding, source))
    if finding.hints.get("loop"):
        return unsafe("Clear the gradients before the loop", cleared_before_loop(finding, source))
    if finding.hints.get("step"):
        return unsafe("Step before they are cleared", stepped_in_window(finding, source))
    return cleared_before("Clear the gradients before the backward", finding, source)
