"""# sync-every-micro-batch (GL902)

Gradients are accumulated under DistributedDataParallel, and reduced after every micro-batch.

## What it does
Notes the backward that runs several times between two steps, each time after a call of the wrapper,
where nothing in sight uses `no_sync()`.

## Why it matters
The result is right: the sum of means is the mean of sums. But every gradient crosses the network
once for each micro-batch, where once for each step would do.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(4)]
for i, x in enumerate(batches):
    loss = model(x).pow(2).mean() / 2
    loss.backward()  # expect: GL902
    if (i + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
import contextlib

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(4)]
for i, x in enumerate(batches):
    steps = (i + 1) % 2 == 0
    with contextlib.nullcontext() if steps else model.no_sync():
        loss = model(x).pow(2).mean() / 2
        loss.backward()
    if steps:
        optimizer.step()
        optimizer.zero_grad()
```

The forward belongs inside `no_sync()` as well: it is what decides.

## What it does not report
- Several backwards after one forward.
- Loops in which `no_sync()` is used, well or badly (`mismatched-sync`, GL904).

## Limits
Whether the communication matters is for a profiler to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import May, OptimizerStep, Tape
from gradlint_rules.replicas import Pass, Update, replicas, updates
from gradlint_rules.words import backward, places

SEVERITY = Severity.NOTE
_HELP = "Run all micro-batches but the last under `ddp.no_sync()`, forward and backward."


def check(paths: Paths) -> Iterator[Report]:
    """The backwards of accumulation under a wrapper, where no path knows of `no_sync`."""
    reported: set[Span] = set()
    for last, step in paths.some(_synchronised):
        at = last.sink.at
        if at not in reported and paths.never(lambda tape: bool(tape.facts("no-sync")), May.SYNC):
            reported.add(at)
            message = (
                f"{backward(last.sink)} reduces all gradients after every micro-batch, for one step"
            )
            yield Report(at, message, _HELP, places(at, Related(step.at, "the step", Role.STEP)))


def _synchronised(tape: Tape) -> Iterator[tuple[Pass, OptimizerStep]]:
    """The last backward of each accumulation under a wrapper, and the step that uses what is
    accumulated.
    """
    for replica in replicas(tape):
        for update in updates(tape, replica):
            last = _accumulated(update)
            if last is not None:
                yield last, update.step


def _accumulated(update: Update) -> Pass | None:
    """The last of several backwards at one place, each after a forward of its own."""
    last = update.passes[-1]
    same = [
        run for run in update.passes if run.sink.at == last.sink.at and not run.sink.by_framework
    ]
    forwards = {id(run.forward) for run in same}
    return (
        last
        if len(same) > 1
        and len(forwards) == len(same)
        and None not in [run.forward for run in same]
        else None
    )
