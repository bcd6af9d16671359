"""# unclipped-step (TM001)

An optimizer steps with gradients that nothing has clipped.

## What it does
Reports each step before which no gradient of the optimizer was clipped since its step before.

## Why it matters
One bad batch is enough to throw a long run off. We clip everywhere, and say so where we do not.

## Example
```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features in torch.randn(9, 5, 3):
    optimizer.zero_grad()
    model(features).square().mean().backward()
    optimizer.step()  # expect: TM001
```

## Use instead
```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features in torch.randn(9, 5, 3):
    optimizer.zero_grad()
    model(features).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
```

## What it does not report
A norm that is only read (`clip_grad_norm_(parameters, inf)`) does not count as clipping.

## Limits
A clip of some of the parameters counts for all.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Clip, Optimizer, OptimizerStep, Tape

SEVERITY = Severity.WARNING
AT_RUN_TIME = True


def check(paths: Paths) -> Iterator[Report]:
    """Every step, on any path, whose gradients were not clipped since the step before."""
    found = {step.at: step.optimizer for step in paths.some(_unclipped)}
    for at in sorted(found):
        message = f"`{found[at].name}` steps with gradients that nothing has clipped"
        yield Report(at, message, "Clip between the backward and the step.")


def _unclipped(tape: Tape) -> Iterator[OptimizerStep]:
    clips: list[Clip] = []
    for event in tape.among(Clip, OptimizerStep):
        if isinstance(event, Clip) and not event.reads_only:
            clips.append(event)
        elif isinstance(event, OptimizerStep):
            if not any(_concerns(clip, event.optimizer) for clip in clips):
                yield event
            clips = [clip for clip in clips if not _concerns(clip, event.optimizer)]


def _concerns(clip: Clip, optimizer: Optimizer) -> bool:
    return any(value.parameter and optimizer.holds(value.parameter) for value in clip.parameters)
