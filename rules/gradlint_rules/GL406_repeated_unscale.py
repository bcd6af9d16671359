"""# repeated-unscale (GL406)

`scaler.unscale_(optimizer)` runs twice between two updates of the scaler.

## What it does
Reports the second `unscale_` of an optimizer since the last `scaler.update()`: once for each
parameter group, or in gradient accumulation on every micro-batch. An `unscale_` after the step is
the same mistake. So is Accelerate's `clip_grad_norm_` in every round of `accumulate`: it unscales
first, whether the round ends a window or not. Where the precision or the length of a window is a
setting, that is a warning.

## Why it matters
Gradients can be divided by the scale once only, so the scaler refuses: "unscale_() has already been
called on this optimizer since the last update()".

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for window in torch.randn(3, 2, 8, 4):
    optimizer.zero_grad()
    for x in window:
        loss = model(x).pow(2).mean() / 2
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # expect: GL406
        # RuntimeError: unscale_() has already been called on this optimizer
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for window in torch.randn(3, 2, 8, 4):
    optimizer.zero_grad()
    for x in window:
        loss = model(x).pow(2).mean() / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## What it does not report
- Several optimizers, each unscaled once.
- A scaler that is disabled on this path.
- A clip by Accelerate under `if accelerator.sync_gradients:`; an accelerator that is not told its
  precision.
- Rounds that end with a step of something out of view, such as `xm.optimizer_step(optimizer)`.

## Limits
Where the step is missing an update as well, that is reported alone: see `missing-scaler-update`
(GL405).
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Event, Fact, Handed, OptimizerStep, ScalerUpdate, Tape, Unscale
from gradlint_rules.scaling import unscaled_once
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL403"])
_HELP = "Unscale each optimizer once, right before the step; clip all of its parameters after that."


def check(paths: Paths) -> Iterator[Report]:
    """Every `unscale_` of what an earlier one has unscaled, or a step in the same round."""
    found = list(paths.some(_repeated))
    repeated = {id(again) for _, again in found}
    unscaled = paths.some(lambda tape: tape.of(Unscale))
    alone = {event.at for event in unscaled if id(event) not in repeated}
    for first, again in found:
        yield _report(first, again, is_alone=again.at in alone and first.at != again.at)
    for fact in paths.some(lambda tape: tape.facts("accelerator-unscales")):
        yield _within_a_window(fact)


def _within_a_window(fact: Fact) -> Report:
    """Of `accelerator.clip_grad_norm_` in every round of `accumulate`: what a setting decides is a
    warning.
    """
    when = (
        " where the settings ask for float16 and windows of several rounds"
        if fact.detail == "setting"
        else ""
    )
    message = (
        f"`{fact.text}` unscales the gradients in every round of a window: the second one "
        f"raises{when}"
    )
    help_ = "Clip at the end of a window alone: `if accelerator.sync_gradients:`."
    severity = Severity.WARNING if fact.detail == "setting" else None
    return Report(fact.at, message, help_, severity=severity, hints={"window": "yes"})


def _repeated(tape: Tape) -> Iterator[tuple[Event, Unscale]]:
    done: dict[tuple[int, int], Event] = {}
    kinds = (Handed, ScalerUpdate, OptimizerStep, Unscale)
    for event in tape.among(*kinds) if tape.of(Unscale) else ():
        match event:
            case Handed(optimizer=optimizer):  # `xm.optimizer_step(optimizer)` may do it all
                done = {key: first for key, first in done.items() if key[1] != id(optimizer)}
            case ScalerUpdate(scaler=scaler):
                done = {key: first for key, first in done.items() if key[0] != id(scaler)}
            case OptimizerStep(scaler=scaler, optimizer=optimizer) if scaler is not None:
                done.pop((id(scaler), id(optimizer)), None)
                if event.scaler is not None and event.scaler.enabled:
                    done[id(scaler), id(optimizer)] = event
            case Unscale(scaler=scaler, optimizer=optimizer) if (
                optimizer is not None and scaler.enabled is not False
            ):
                key = (id(scaler), id(optimizer))
                first = done.get(key)
                if isinstance(first, Unscale) or (
                    first is not None and first.iteration == event.iteration
                ):
                    yield first, event
                if not isinstance(first, OptimizerStep):
                    done[key] = event


def _report(first: Event, again: Unscale, *, is_alone: bool) -> Report:
    is_unscaled = isinstance(first, Unscale)
    deed = "unscaled" if is_unscaled else "stepped"
    role = Role.UNSCALING if is_unscaled else Role.STEP
    where = "in the round before" if first.at == again.at else f"on line {first.at.line}"
    message = (
        f"`{again.text}` raises: the optimizer was {deed} {where}, and no update of the scaler "
        "came in between"
    )
    related = places(
        again.at, *calls(again.stack, first.stack), Related(first.at, f"{deed} here", role)
    )
    called = (at.line for at in reversed(again.stack) if at.path == again.at.path)
    hints = {"called": " ".join(map(str, called)), **({"alone": "yes"} if is_alone else {})}
    return Report(again.at, message, _HELP, related, hints=hints)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Unscales once."""
    if finding.hints.get("window"):
        raise NoFixError("whether the gradients are synchronised is to be asked")
    return unsafe("Unscale once", unscaled_once(finding, source))
