"""# scheduler-before-optimizer (GL510)

The learning-rate scheduler steps before the optimizer's first step.

## What it does
Reports the scheduler's step where, on every path that comes to it, its optimizer has not stepped
yet and does so later.

## Why it matters
The first value of the schedule is skipped, and all others come one step too early. PyTorch warns:
"Detected call of `lr_scheduler.step()` before `optimizer.step()`".

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for epoch in range(3):
    scheduler.step()  # expect: GL510
    for x in torch.randn(4, 8, 4):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for epoch in range(3):
    for x in torch.randn(4, 8, 4):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
```

## What it does not report
- `if epoch > 0: scheduler.step()` at the top of an epoch.
- `ReduceLROnPlateau` and `CosineAnnealingWarmRestarts`, which may be stepped at any time.
- Winding a schedule forward before training is resumed.
- A step behind a question that each round can answer otherwise:
  `if step >= warmup: scheduler.step()`.
- `scheduler.step(epoch)`, which sets the value that belongs to the epoch.

## Limits
In a function that is given its optimizer and scheduler, both must step in the same round of a loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import End, May, OptimizerStep, SchedulerStep, Tape
from gradlint_rules.accounts import Key, key
from gradlint_rules.frames import hints_of
from gradlint_rules.training import scheduled_after
from gradlint_rules.words import is_out_of_view, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Call it after the optimizer's step: at the end of the batch, or of the epoch."
_AT_ANY_TIME = ("ReduceLROnPlateau", "CosineAnnealingWarmRestarts", "SWALR")


def check(paths: Paths) -> Iterator[Report]:
    """Every scheduler step that comes before the first step of its optimizer, on all the paths that
    come to it.
    """
    found: dict[Key, tuple[SchedulerStep, OptimizerStep]] = {}
    is_alone = len({optimizer.name for optimizer in paths.some(Tape.optimizers)}) == 1
    for event, step in paths.some(lambda tape: _stepped(tape, is_alone=is_alone)):
        if step is not None:
            found.setdefault(key(event), (event, step))

    def is_never_sound(place: Key) -> bool | None:
        """Whether the optimizer comes first on no path, whatever was not run."""
        return paths.never(lambda tape: place in _sound_on(tape, is_alone=is_alone), May.STEP)

    yield from (_report(*found[place]) for place in sorted(found) if is_never_sound(place))


def _sound_on(tape: Tape, *, is_alone: bool) -> set[Key]:
    """The schedulers' steps that a path shows to be right; one that an exception ends before any
    optimizer steps shows none.
    """
    end = tape.events[-1] if tape.events else None
    if isinstance(end, End) and end.raised == "exception" and not list(tape.of(OptimizerStep)):
        return set()
    return {key(event) for event, step in _stepped(tape, is_alone=is_alone) if step is None}


def _stepped(tape: Tape, *, is_alone: bool) -> Iterator[tuple[SchedulerStep, OptimizerStep | None]]:
    """The first time that each scheduler steps on a path, with the first step of its optimizer
    where that is later.
    """
    seen: set[Key] = set()
    for event in tape.of(SchedulerStep):
        if key(event) not in seen:
            seen.add(key(event))
            first = _first_step(event, tape, is_alone=is_alone)
            if first is not None and (
                first.order < event.order or _is_for_later_rounds(event, first, tape)
            ):
                first = None
            yield event, first


def _first_step(event: SchedulerStep, tape: Tape, *, is_alone: bool) -> OptimizerStep | None:
    """The first step of the optimizer that this scheduler steers, where the two steps share a loop.

    Which one a scheduler made out of view steers is known where the optimizer `is_alone` on all
    paths.
    """
    scheduler = event.scheduler
    if (
        scheduler.cls.endswith(_AT_ANY_TIME)
        or not event.iteration
        or _is_told(event)
        or is_out_of_view(scheduler)
    ):
        return None
    steps = list(tape.of(OptimizerStep))
    if scheduler.optimizer is not None:
        mine = [step for step in steps if step.optimizer is scheduler.optimizer]
    else:
        mine = steps if is_alone and len({id(step.optimizer) for step in steps}) == 1 else []
    around = _around(event, tape)
    shared = around and any(_shares(step, around) for step in mine)
    return mine[0] if shared else None


def _shares(step: OptimizerStep, around: tuple[tuple[int, int], ...]) -> bool:
    """Whether a step is in the innermost of these loops, in whatever round: in accumulation, the
    first comes in a later one.
    """
    *outer, (loop, _) = around
    own = step.iteration[: len(around)]
    return len(own) == len(around) and [*own[:-1]] == outer and own[-1][0] == loop


def _is_for_later_rounds(event: SchedulerStep, first: OptimizerStep, tape: Tape) -> bool:
    """Whether it stands behind a question that each round can answer otherwise, and the optimizer's
    step does not: `if step >= warmup: scheduler.step()`.
    """
    asked = (
        each.whole for each in tape.decisions if each.loop is not None and each.whole is not None
    )
    return any(whole.encloses(event.at) and not whole.encloses(first.at) for whole in asked)


def _is_told(event: SchedulerStep) -> bool:
    """Whether the step is told its number, `scheduler.step(epoch)`: that sets a value, and skips
    none.
    """
    return bool(event.text) and not event.text.endswith("()")


def _around(event: SchedulerStep, tape: Tape) -> tuple[tuple[int, int], ...]:
    """The rounds of loops around a scheduler's step, without a loop over schedulers: each steps in
    one round of it. Of a generator's own loop, those of the loop over what it yields.
    """
    steps = [step.iteration for step in tape.of(OptimizerStep)]
    own = [one.iteration for one in tape.of(SchedulerStep) if one.scheduler is event.scheduler]
    around = event.iteration
    while len(around) > 1:
        *outer, (loop, number) = around
        if tape.feeding.get(loop) == outer[-1][0]:
            around = tuple(outer)
            continue
        comes_round = any(
            other == loop and again != number for iteration in own for other, again in iteration
        )
        if comes_round or any(step[: len(around)] == around for step in steps):
            break
        around = tuple(outer)
    return around


def _report(event: SchedulerStep, step: OptimizerStep) -> Report:
    name = event.scheduler.name or "the scheduler"
    message = (
        f"`{name}` steps before the optimizer's first step: the first value of the schedule is "
        "skipped"
    )
    return Report(
        event.at,
        message,
        _HELP,
        places(event.at, Related(step.at, "the optimizer's first step comes later", Role.STEP)),
        hints=hints_of(event, event, step),
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Steps the scheduler after the optimizer."""
    return scheduled_after("Step the scheduler after the optimizer", finding, source)
