"""# missing-scaler-update (GL405)

`scaler.step(optimizer)` is followed by no `scaler.update()` before the next one.

## What it does
Reports the `scaler.step` after which the same scaler steps the same optimizer again, or unscales
its gradients, with no `update` in between.

## Why it matters
The scaler keeps a state for each optimizer that only `update()` resets: "step() has already been
called since the last update()", or "unscale_() is being called after step()". Where the update is
skipped in some rounds only, it is the round after that raises.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for x, y in zip(torch.randn(5, 2, 4), torch.randn(5, 2, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # expect: GL405
    # RuntimeError: step() has already been called since the last update()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for x, y in zip(torch.randn(5, 2, 4), torch.randn(5, 2, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## What it does not report
- Several optimizers that step between two updates, each once: one `update()` at the end of the
  round is right.
- A scaler that is disabled on this path.
- An `unscale_` behind the step of the same round: see `repeated-unscale` (GL406).

## Limits
A single step with no second one in view needs no update, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import May, OptimizerStep, ScalerUpdate, Tape, Unscale
from gradlint_rules.scaling import updated
from gradlint_rules.uncut import safe
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True


def check(paths: Paths) -> Iterator[Report]:
    """Every step of a scaler that the next one of the same optimizer, or its unscaling, follows
    without an update.
    """
    reported: set[Span] = set()
    for tape, first, second in paths.some(_repeated):
        if first.at not in reported and not _is_gated(first, paths):
            reported.add(first.at)
            yield _report(
                first, second, {"elsewhere": "yes"} if _is_updated_elsewhere(first, tape) else {}
            )


def _repeated(tape: Tape) -> Iterator[tuple[Tape, OptimizerStep, OptimizerStep | Unscale]]:
    stepped: dict[tuple[int, int], OptimizerStep] = {}
    for event in tape.among(ScalerUpdate, OptimizerStep, Unscale):
        if isinstance(event, ScalerUpdate):
            stepped = {
                key: step for key, step in stepped.items() if step.scaler is not event.scaler
            }
        elif (
            isinstance(event, OptimizerStep | Unscale)
            and event.scaler
            and event.scaler.enabled is not False
        ):
            key = (id(event.scaler), id(event.optimizer))
            first = stepped.get(key)
            # GL406
            if first is not None and not (
                isinstance(event, Unscale) and event.iteration == first.iteration
            ):
                yield tape, first, event
            if isinstance(event, OptimizerStep):
                stepped[key] = event


def _is_gated(step: OptimizerStep, paths: Paths) -> bool:
    """Whether the scaler comes from outside, can be disabled, and is updated on another path, or
    may be.
    """
    if step.scaler is None or step.scaler.enabled is not None:
        return False
    return not paths.never(lambda tape: bool(tape.of(ScalerUpdate)), May.SCALE)


def _is_updated_elsewhere(step: OptimizerStep, tape: Tape) -> bool:
    """Whether another function updates the scaler, too late, or another scaler that is stepped in
    the same place.

    A second update of one step would raise.
    """
    scalers = {id(other.scaler) for other in tape.of(OptimizerStep) if other.at == step.at}
    updates = (event for event in tape.of(ScalerUpdate) if id(event.scaler) in scalers)
    return any((event.stack, event.at.path) != (step.stack, step.at.path) for event in updates)


def _report(first: OptimizerStep, second: OptimizerStep | Unscale, hints: dict[str, str]) -> Report:
    assert first.scaler is not None
    scaler = first.scaler.name or "scaler"
    rounds = dict(first.iteration)
    is_later = any(rounds.get(loop, number) != number for loop, number in second.iteration)
    again = (
        "in the next round" if is_later or first.at == second.at else f"on line {second.at.line}"
    )
    deed = (
        "the optimizer is stepped again"
        if isinstance(second, OptimizerStep)
        else "the gradients are unscaled"
    )
    message = f"no `{scaler}.update()` follows before {deed} {again}: that raises"
    advice = (
        f"Call `{scaler}.update()` once after the steps of a round, also where the round is cut "
        "short."
    )
    related = places(
        first.at, *calls(first.stack, second.stack), Related(second.at, "which raises here")
    )
    return Report(first.at, message, advice, related, hints=hints)


def fix(finding: Finding, source: FixSource) -> Fix | None:
    """Updates the scaler right behind its step, where no other function has an update that would be
    one too many.
    """
    if finding.hints.get("elsewhere"):
        return None
    return safe("Update the scaler", updated(finding, source))
