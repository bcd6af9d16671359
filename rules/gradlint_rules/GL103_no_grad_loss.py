"""# no-grad-loss (GL103)

The loss was computed while grad mode was off, so autograd recorded nothing of it.

## What it does
Reports what switched grad mode off, `torch.no_grad()`, `torch.inference_mode()` or
`torch.set_grad_enabled(False)`, as a context manager, a decorator or a call, here or in a function
that is called, where every route from the parameters to a loss was computed under it.

## Why it matters
The backward raises. The cause is often far from it: a decorator on a helper that evaluation and
training share, a sampler that was written for inference, a flag that is the wrong way round.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()  # expect: GL103
def shared_step(x, y):
    return (model(x) - y).pow(2).mean()


for x, y in zip(torch.randn(3, 2, 4), torch.randn(3, 2, 1)):
    loss = shared_step(x, y)
    optimizer.zero_grad()
    loss.backward()  # RuntimeError: does not require grad
    optimizer.step()
```

## Use instead
Switch grad mode off where it is not needed, not in what training shares.

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def shared_step(x, y):
    return (model(x) - y).pow(2).mean()


for x, y in zip(torch.randn(3, 2, 4), torch.randn(3, 2, 1)):
    loss = shared_step(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    print(shared_step(torch.randn(2, 4), torch.randn(2, 1)).item())
```

## What it does not report
- Targets, teachers and frozen encoders computed without gradient whose output meets a trainable
  module afterwards.
- Evaluation, which has no backward.
- Grad mode that was switched off somewhere else and is still off at the backward: see
  `grad-mode-leak` (GL301).
- `with torch.no_grad(): y = h`, which computes nothing: `y` still has the graph of `h`. Nor
  `.contiguous()`, `.float()` or `.to(…)` that change nothing.

## Limits
A view of a parameter taken under `no_grad` (`weight.T`, a slice) requires grad and has no graph: it
is treated as cut, as torch treats it. `enable_grad` inside `no_grad` restores recording; inside
`inference_mode` it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Cut
from gradlint_rules.freezes import is_trained_by
from gradlint_rules.leaks import leak
from gradlint_rules.modes import grad_mode_on
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.uncut import computed_from, unsafe
from gradlint_rules.words import backward, loss_of, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Compute the loss with grad mode on; keep this for evaluation, targets and sampling."


def check(paths: Paths) -> Iterator[Report]:
    """What switched grad mode off for all that flows into a loss."""
    for found in starved(paths, Why.GRAD_MODE):
        if leak(found) is not None:  # GL301
            continue
        hints = {**_lines(found), **found.denied}
        yield Report(found.at, _message(found), _HELP, found.related, found.severity, hints=hints)


def _message(found: Starved) -> str:
    sink = found.arrival.sink
    cut = f"grad mode is off here for all that flows into {loss_of(sink)}"
    effect = "reaches no parameter" if sink.value.requires_grad else "finds no graph and raises"
    return f"{cut}{when(found.decisions)}: {backward(sink)} {effect}"


def _lines(found: Starved) -> dict[str, str]:
    """The lines that compute the loss of what grad mode has cut, or of what an optimizer is to
    train, if that is known.

    What is computed of a cut value has no gradient to lose any more, and has to be computed with
    grad mode on, too.
    """
    tape, at, ancestors = found.arrival.tape, found.at, found.arrival.sink.ancestors
    cut = [value for value in ancestors if value.cut is Cut.GRAD_MODE and value.cut_at == at]
    trained = [
        value
        for value in cut
        if any(is_trained_by(optimizer, value) for optimizer in tape.optimizers())
    ]
    places = {
        place
        for value in computed_from(trained or cut, ancestors)
        for place in (value.at, *value.stack)
    }
    return {"lines": " ".join(str(place.line) for place in sorted(places) if place.path == at.path)}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the decorator or the `with` away from what computes the loss."""
    lines = map(int, finding.hints["lines"].split())
    return unsafe(
        "Compute the loss with grad mode on",
        grad_mode_on(source.expression(finding.at), source, lines),
    )
