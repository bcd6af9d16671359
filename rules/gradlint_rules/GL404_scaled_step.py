"""# scaled-step (GL404)

The loss is scaled for the backward, and the optimizer steps by itself on the scaled gradients.

## What it does
Reports `optimizer.step()` after `scaler.scale(loss).backward()`, where `scaler.step(optimizer)` is
meant. It is a warning where `scaler.unscale_(optimizer)` ran before: the update is right then, but
a step on infinite gradients is not skipped.

## Why it matters
The gradients are 65536 times too large, and so is the step of SGD. Adam hides the factor, but not
from its epsilon, weight decay and clipping, and the first overflow writes NaN into the parameters.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
loss = (model(torch.randn(8, 4)) - 3).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
optimizer.step()  # expect: GL404
assert model.weight.norm() > 1000
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
loss = (model(torch.randn(8, 4)) - 3).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
assert model.weight.norm() < 10
```

## What it does not report
- Optimizers whose parameters got no gradient from the scaled loss.
- A scaler that is disabled on this path, and gradients that are divided by `scaler.get_scale()`.

## Limits
Where an optimizer comes from outside, it is taken to hold what is trained only if no other one
steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Backward,
    Event,
    May,
    OptimizerStep,
    Scaler,
    ScalerUpdate,
    Tape,
    Unscale,
    ZeroGrad,
)
from gradlint_rules.scaled import Meeting, is_gated, meetings
from gradlint_rules.scaling import stepped_by_scaler
from gradlint_rules.uncut import safe
from gradlint_rules.words import backward, calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL405", "GL406"])
_OF_SCALERS = (OptimizerStep, ScalerUpdate, Unscale)


def check(paths: Paths) -> Iterator[Report]:
    """Every step of an optimizer by itself after the backward of a scaled loss."""
    found: dict[Span, Meeting] = {}
    for meeting in paths.some(meetings):
        step = meeting.event
        if not isinstance(step, OptimizerStep) or step.scaler is not None:
            continue
        if not is_gated(meeting, paths, OptimizerStep, May.STEP):
            known = found.get(step.at)
            if known is None or (meeting.scaled and not known.scaled):
                found[step.at] = meeting
    for at in sorted(found):
        yield _report(found[at])


def _report(meeting: Meeting) -> Report:
    step, sink = meeting.event, meeting.gradients.sink
    scaler = meeting.gradients.scaler.name or "scaler"
    effect = (
        "steps on gradients that are still scaled"
        if meeting.scaled
        else "steps even where they are infinite"
    )
    message = f"{backward(sink)} scales the gradients, and `{step.text}` {effect}"
    advice = f"Step by `{scaler}.step(optimizer)`, then call `{scaler}.update()`."
    related = places(
        step.at, *calls(step.stack, sink.stack), Related(sink.at, "the gradients are scaled here")
    )
    severity = None if meeting.scaled else Severity.WARNING
    hints = _hints(meeting, step)
    if "stepped" in hints:
        advice = f"Take this step out: `{scaler}` steps beside it."
    return Report(step.at, message, advice, related, severity, hints=hints)


def _hints(meeting: Meeting, step: Event) -> dict[str, str]:
    """Whether the scaler steps on the same gradients as well, and is updated before it comes to the
    optimizer again.
    """
    assert isinstance(step, OptimizerStep)
    around = [
        each
        for each in meeting.tape.among(*_OF_SCALERS)
        if _concerns(each, step, meeting.gradients.scaler)
    ]
    place = around.index(step)
    beside = (*around[:place][-1:], *around[place + 1 :][:1])
    hints = {}
    if any(_steps_as_well(other, step, meeting.tape) for other in beside):
        hints["stepped"] = "yes"
    if any(isinstance(each, ScalerUpdate) for each in around[place + 1 :][:1]):
        hints["updated"] = "yes"
    return hints


def _concerns(event: Event, step: OptimizerStep, scaler: Scaler) -> bool:
    """Whether it is an update of the scaler, or an unscaling or a step of this optimizer."""
    if isinstance(event, ScalerUpdate):
        return event.scaler is scaler
    return isinstance(event, Unscale | OptimizerStep) and event.optimizer is step.optimizer


def _steps_as_well(other: Event, step: Event, tape: Tape) -> bool:
    """Whether the scaler steps with nothing cleared or back-propagated between that and the
    step.
    """
    if not isinstance(other, OptimizerStep) or other.scaler is None:
        return False
    first, second = sorted([other.order, step.order])
    return not any(first < event.order < second for event in tape.among(Backward, ZeroGrad))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Lets the scaler step, or takes the step out where the scaler steps beside it."""
    title = "Leave the step to the scaler" if "stepped" in finding.hints else "Step by the scaler"
    return safe(title, stepped_by_scaler(finding, source))
