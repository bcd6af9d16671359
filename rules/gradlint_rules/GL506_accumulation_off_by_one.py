"""# accumulation-off-by-one (GL506)

`i % N == 0` with `i` counted from 0: the first step comes after one micro-batch.

## What it does
Runs the loop, and reports the condition of the step where the first window holds one micro-batch
and the next ones hold N; and a condition that was turned around, behind which the step comes for
all micro-batches but each N-th, where the loss is divided by N.

## Why it matters
The first update of every epoch is made of a single micro-batch that was divided by N, and all later
windows are shifted: what follows the last one is left over.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
for i, x in enumerate(batches):
    loss = model(x).square().mean() / accumulate
    loss.backward()
    if i % accumulate == 0 or i + 1 == len(batches):  # expect: GL506
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
for i, x in enumerate(batches):
    loss = model(x).square().mean() / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(batches):
        optimizer.step()
        optimizer.zero_grad()
```

Or count from 1: `enumerate(batches, 1)`.

## What it does not report
- Counters that start from 1.
- Updates that come less often on purpose, whose backward is under the same condition.

## Limits
The counter must start from a number that is written down. A condition that was turned around is
seen in the source alone: a run does not show by what a loss was divided.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint_rules.inverted import Inverted, inverted_gates
from gradlint_rules.remainders import counted_from_one
from gradlint_rules.uncut import unsafe
from gradlint_rules.windows import Accumulation, accumulations, is_counted
from gradlint_rules.words import places, to_sink

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Count from 1: `if (i + 1) % n == 0:`."


def check(paths: Paths) -> Iterator[Report]:
    """Every condition that lets the first micro-batch through alone."""
    reported: set[Span] = set()
    for accumulation in accumulations(paths):
        gate = accumulation.gate
        if gate.at not in reported and is_counted(accumulation) and accumulation.is_early:
            reported.add(gate.at)
            yield _report(accumulation)
    for inverted in paths.some(inverted_gates):
        if inverted.gate.at not in reported:
            reported.add(inverted.gate.at)
            yield _report_inverted(inverted)


def _report(accumulation: Accumulation) -> Report:
    gate, step = accumulation.gate, accumulation.windows[0].update.step
    holds = "holds" if gate.detail == "true" else "is false"
    message = (
        f"`{gate.text}` {holds} for the first micro-batch already: the first update is made of "
        "one, the next of several"
    )
    related = Related(step.at, "steps after the first micro-batch")
    return Report(gate.at, message, _HELP, places(gate.at, related, to_sink(accumulation.sinks[0])))


def _report_inverted(inverted: Inverted) -> Report:
    gate = inverted.gate
    holds = "holds" if gate.detail == "true" else "is false"
    message = (
        f"`{gate.text}` {holds} for all micro-batches but each n-th: most updates are the share of "
        "a single one"
    )
    related = Related(inverted.step.at, "steps two rounds in a row")
    return Report(
        gate.at,
        message,
        "Turn the condition around.",
        places(gate.at, related, to_sink(inverted.sink)),
        hints={"inverted": "yes"},
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Counts the micro-batches from one."""
    if "inverted" in finding.hints:
        raise NoFixError("both sides of the condition compute a loss")
    return unsafe("Count from one", counted_from_one(finding, source))
