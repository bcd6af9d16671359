"""# accumulation-defeated (GL505)

Gradients are cleared on every micro-batch while the step runs on every N-th.

## What it does
Runs the loop until the step has come, and reports the clearing that threw away gradients of the
same loss on the way: where a counter lets the step through, and where the step comes behind an
inner loop over micro-batches. Gradients that are only read before they are cleared, to write down
their norm, are thrown away all the same. A warning is a loss that is divided by the number that
rounds are counted by (`step % accumulate`), where step and clearing run in every round, in a hook
behind the accumulation of a gradient, too. A clearing between Accelerate's `accumulate` and the
backward of a round is one, too: the prepared optimizer clears in the round that ends a window, and
what the rounds before have accumulated is gone. So is `model.zero_grad()` in every round, which
clears without asking whether a window ends. A warning where a setting says how many rounds a window
has.

## Why it matters
Each update uses the last micro-batch alone, divided by N: most of the data is computed and thrown
away, and the effective learning rate is N times too small.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
for i, x in enumerate(batches):
    optimizer.zero_grad()  # expect: GL505
    loss = model(x).square().mean() / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(batches):
        optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
optimizer.zero_grad()
for i, x in enumerate(batches):
    loss = model(x).square().mean() / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(batches):
        optimizer.step()
        optimizer.zero_grad()
```

## What it does not report
- Updates that come less often on purpose: a policy that is updated every second step has a loss and
  a clearing of its own.
- Steps that are skipped because of what the batch holds.
- Rounds of an inner loop whose gradients are averaged, picked from or applied by hand, and rounds
  that are tries: a `break` or a `while` ends them.

## Limits
The counter must be one that the analysis can follow: it starts from a number that is written down.
A traced run does not see by what rounds are counted, and says nothing of losses that are divided by
that number, but for those that an `Accelerator` divides. That its optimizer was not prepared, only
a run shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Event
from gradlint_rules.clearing import cleared_with_the_step
from gradlint_rules.rounds import ClearedRound, cleared_rounds
from gradlint_rules.shares import Share, shares_alone
from gradlint_rules.synchronized import WipedWindow, wiped_windows
from gradlint_rules.uncut import unsafe
from gradlint_rules.windows import Accumulation, accumulations, is_counted
from gradlint_rules.words import backward, loss_of, places, to_sink

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL501", "GL502"])
_HELP = "Clear right after the step, under the same condition."


def check(paths: Paths) -> Iterator[Report]:
    """Every clearing within a window that a step then uses."""
    yield from (*_within_windows(paths), *_within_loops(paths), *_of_shares(paths))
    yield from map(_report_wiped, paths.some(wiped_windows))


def _within_windows(paths: Paths) -> Iterator[Report]:
    """The clearings within windows that a counter closes."""
    for accumulation in accumulations(paths):
        clearing = accumulation.defeat if is_counted(accumulation) else None
        if clearing is not None:
            yield _report(accumulation, clearing)


def _within_loops(paths: Paths) -> Iterator[Report]:
    """The clearings in every round of a loop over micro-batches, behind which the step comes."""
    return (_report_loop(lost) for lost in paths.some(cleared_rounds) if lost.is_of_one_loss)


def _of_shares(paths: Paths) -> Iterator[Report]:
    """The clearings of rounds that each step on their share of a window."""
    return (_report_share(share) for share in paths.some(shares_alone))


def _report(accumulation: Accumulation, clearing: Event) -> Report:
    step = accumulation.windows[0].update.step
    name = accumulation.account.optimizer.name or accumulation.account.optimizer.cls or "optimizer"
    sink = accumulation.sinks[0]
    message = (
        f"gradients are cleared on every micro-batch, but `{name}` steps only when "
        f"{accumulation.condition}: "
        f"of {backward(sink)}, only the last one counts"
    )
    return Report(
        clearing.at,
        message,
        _HELP,
        places(clearing.at, to_sink(sink), Related(step.at, "the step", Role.STEP)),
    )


def _report_loop(lost: ClearedRound) -> Report:
    name = lost.account.optimizer.name or lost.account.optimizer.cls or "optimizer"
    sink, clearing, step = lost.wiped.sink, lost.wiped.clearing, lost.update.step
    message = (
        f"gradients are cleared in every round of a loop, and `{name}` steps after it: "
        f"of {backward(sink)}, only the last one counts"
    )
    help_ = "Clear before the loop."
    return Report(
        clearing.at,
        message,
        help_,
        places(clearing.at, to_sink(sink), Related(step.at, "the step", Role.STEP)),
    )


def _report_share(share: Share) -> Report:
    name = share.account.optimizer.name or share.account.optimizer.cls or "optimizer"
    message = (
        f"`{name}` steps and its gradients are cleared in every round, but "
        f"{loss_of(share.sink)} is divided by the "
        "number that rounds are counted by: each micro-batch is an update of its own, by a "
        "share of its gradient"
    )
    divided = Related(share.quotient.at, "the loss is divided here")
    related = places(
        share.clearing.at,
        to_sink(share.sink),
        divided,
        Related(share.step.at, "the step", Role.STEP),
    )
    help_ = "Step and clear where the window is full, or do not divide."
    return Report(
        share.clearing.at,
        message,
        help_,
        related,
        severity=Severity.WARNING,
        hints={"share": "yes"},
    )


def _report_wiped(wiped: WipedWindow) -> Report:
    name = wiped.step.optimizer.name or wiped.step.optimizer.cls or "optimizer"
    when = "in the round that ends a window of `accumulate`"
    who = f"`{name}` clears"
    if wiped.is_of_each_round:
        when, who = "in each round of `accumulate`", "the model clears"
    message = (
        f"{when}, {who} what the rounds before have accumulated: of {backward(wiped.sink)}, only "
        "the last one counts"
    )
    if wiped.is_setting:
        message += ", where `gradient_accumulation_steps` is more than 1"
    entered = Related(wiped.entered.at, "a round of a window begins")
    step = Related(wiped.step.at, "the step", Role.STEP)
    return Report(
        wiped.clearing.at,
        message,
        f"Clear by `{name}.zero_grad()`, right after the step."
        if wiped.is_of_each_round
        else "Clear right after the step.",
        places(wiped.clearing.at, entered, to_sink(wiped.sink), step),
        severity=Severity.WARNING if wiped.is_setting else Severity.ERROR,
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Clears the gradients where they have been used."""
    if "share" in finding.hints:
        raise NoFixError("the step is in the wrong place, too")
    return unsafe("Clear the gradients with the step", cleared_with_the_step(finding, source))
