"""# mismatched-sync (GL904)

`no_sync()` is decided by another condition than the step: the optimizer steps on gradients that
stayed on their ranks.

## What it does
Follows the micro-batches up to each step, and reports the `no_sync()` under which the last forward
and backward before a step ran.

## Why it matters
DistributedDataParallel reduces what has been accumulated in the first backward outside of
`no_sync()`. What comes after it stays on its rank. If that is the last micro-batch, the ranks step
on different gradients, and their models drift apart.

## Example
```python
import contextlib

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(4)]
for i, x in enumerate(batches):
    with contextlib.nullcontext() if i % 2 == 0 else model.no_sync():  # expect: GL904
        loss = model(x).pow(2).mean() / 2
        loss.backward()
    if (i + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
One condition for both:

```python
import contextlib

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(4)]
for i, x in enumerate(batches):
    steps = (i + 1) % 2 == 0 or i + 1 == len(batches)
    with contextlib.nullcontext() if steps else model.no_sync():
        loss = model(x).pow(2).mean() / 2
        loss.backward()
    if steps:
        optimizer.step()
        optimizer.zero_grad()
```

## What it does not report
- A backward inside `no_sync()` whose forward was outside: it is the forward that decides.
- Gradients that the program reduces by hand before the step.

## Limits
Conditions that the analysis cannot evaluate, in the round of the step, are taken to agree.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Event, Fact, Tape
from gradlint_rules.functions import synchronised_with_the_step
from gradlint_rules.replicas import Update, replicas, updates
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, places

SEVERITY = Severity.ERROR
_HELP = (
    "Decide `no_sync()` and the step by one condition: no `no_sync()` for the last micro-batch "
    "before a step."
)


def check(paths: Paths) -> Iterator[Report]:
    """The `no_sync` regions that hold the last micro-batch before a step."""
    for region, update in paths.some(_closed):
        yield _report(region.at, update)


def _closed(tape: Tape) -> Iterator[tuple[Fact, Update]]:
    """The regions that hold the last backward of an update, which nothing reduces behind them."""
    for replica in replicas(tape):
        for update in updates(tape, replica):
            region = update.passes[-1].unsynchronised
            if region is not None and not update.is_reduced and not _is_open(tape, update.step):
                yield region, update


def _is_open(tape: Tape, event: Event) -> bool:
    """Whether something in this round could as well have gone the other way."""
    rounds = set(event.iteration[-1:])
    return any((decision.loop, decision.round) in rounds for decision in tape.decisions)


def _report(at: Span, update: Update) -> Report:
    last = update.passes[-1].sink
    cause = f"{backward(last)}, the last before the step, runs under `no_sync()`"
    message = f"{cause}: the ranks step on gradients that they have not exchanged"
    related = Related(last.at, "the last backward"), Related(update.step.at, "the step", Role.STEP)
    return Report(at, message, _HELP, places(at, *related))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Synchronises with the step."""
    return unsafe("Synchronise with the step", synchronised_with_the_step(finding, source))
