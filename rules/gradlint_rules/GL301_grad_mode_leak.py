"""# grad-mode-leak (GL301)

Grad mode is switched off by a call, and is still off when the training step comes.

## What it does
Reports `torch.set_grad_enabled(False)` as a statement (or `no_grad().__enter__()` by hand) that
nothing restores before a backward whose loss it leaves without a graph, also where only an early
return skips the restoring.

## Why it matters
The call changes the mode of the thread until the next call. What was meant for an evaluation, or
for a cell of a notebook, then covers the training: the backward raises, or a loss that another term
keeps alive trains next to nothing.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def evaluate(x, y):
    torch.set_grad_enabled(False)  # expect: GL301
    error = (model(x) - y).abs().mean()
    if error.isnan():
        torch.set_grad_enabled(True)
    return error.item()


for x, y in zip(torch.randn(3, 8, 4), torch.randn(3, 8, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # RuntimeError: does not require grad
    optimizer.step()
    evaluate(x, y)
```

## Use instead
A context ends by itself, however it is left:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.no_grad()
def evaluate(x, y):
    return (model(x) - y).abs().mean().item()


for x, y in zip(torch.randn(3, 8, 4), torch.randn(3, 8, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    evaluate(x, y)
```

## What it does not report
- `torch.set_grad_enabled(…)` as a context manager or decorator.
- Scripts that switch grad mode off and never train.
- A mode that is on again when the loss is back-propagated, although the loss was computed without:
  see `no-grad-loss` (GL103).

## Limits
Grad mode belongs to a thread: what another thread switches off is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Cut
from gradlint_rules.leaks import leak
from gradlint_rules.order import calls_of, nested
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Use `with torch.no_grad():`, which ends by itself, or switch grad mode on again on every "
    "way out."
)


def check(paths: Paths) -> Iterator[Report]:
    """Every call that leaves grad mode off for a loss that is back-propagated."""
    for found in starved(paths, Why.GRAD_MODE):
        if leak(found) is not None:
            sink = backward(found.arrival.sink).rstrip(",")
            where = f"still off{when(found.decisions)} at {sink}"
            message = f"grad mode is switched off here and {where}: the loss has no graph"
            yield Report(found.at, message, _HELP, found.related, hints=_needed(found))


def _needed(found: Starved) -> dict[str, str]:
    """The lines of this file that compute or back-propagate the loss while grad mode is off."""
    sink = found.arrival.sink
    cut = [
        value for value in sink.ancestors if value.cut is Cut.GRAD_MODE and value.cut_at == found.at
    ]
    places = [sink.at, *sink.stack, *(place for value in cut for place in (value.at, *value.stack))]
    return {
        "lines": " ".join(
            str(line) for line in sorted({p.line for p in places if p.path == found.at.path})
        )
    }


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes a function that leaks one that runs under `no_grad`, or switches grad mode on before
    the training.
    """
    call = source.statement(finding.at)
    lines = [int(line) for line in finding.hints["lines"].split()]
    for later in (other for outer in nested(call, source) for other in _behind(outer, source)):
        if any(later.lineno <= line <= (later.end_lineno or 0) for line in lines):
            name, imports = source.reference("torch.set_grad_enabled")
            return unsafe("Switch it on again", (*source.before(later, f"{name}(True)"), *imports))
    scope = source.scope(call)
    if isinstance(scope, ast.Module):
        return unsafe("Do not switch it off for all that follows", source.remove(call))
    no_grad, imports = source.reference("torch.no_grad")
    switches = [source.statement(each) for each in calls_of(scope, "set_grad_enabled")]
    removed = [
        edit for each in switches if isinstance(each, ast.Expr) for edit in source.remove(each)
    ]
    return unsafe(
        "Run it under `no_grad`", (*source.decorate(scope, f"@{no_grad}()"), *removed, *imports)
    )


def _behind(statement: ast.stmt, source: FixSource) -> list[ast.stmt]:
    block = source.block(statement)
    return block[block.index(statement) + 1 :]
