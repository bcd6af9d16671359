"""# not-parameters (GL518)

An optimizer or a clip is given something else than parameters: it raises.

## What it does
Reports an optimizer of torch, or `clip_grad_norm_` and `clip_grad_value_`, that is given a module itself, a list with
modules, generators or other lists in it, a method that is not called, or (a clip) the pairs of `named_parameters()`.

## Why it matters
torch takes tensors one by one: "optimizer can only optimize Tensors, but one of the params is Module.parameters". A
clip that stands behind a condition raises in the middle of a run.

## Example
```python
import torch

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
# TypeError: optimizer can only optimize Tensors
optimizer = torch.optim.SGD([encoder.parameters(), head.parameters()], lr=0.1)  # expect: GL518
for x in torch.randn(5, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_([*encoder.parameters(), *head.parameters()], 1.0)
    optimizer.step()
```

## What it does not report
- Groups, `[{"params": model.parameters()}]`, and `named_parameters()` for an optimizer, which newer versions take.
- `nn.ParameterList`, whose items are parameters, and modules that define `__iter__`.

## Limits
Optimizers and clips of other libraries take what they like.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Fact, Tape
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
_HELP = "Hand over the parameters one by one: `model.parameters()`, `[*a.parameters(), *b.parameters()]`."


def check(paths: Paths) -> Iterator[Report]:
    """Everything that is given to an optimizer or a clip and holds no parameters where torch looks for them."""
    reported: set[Span] = set()
    for fact in paths.some(_refused):
        if fact.at not in reported:
            reported.add(fact.at)
            message = f"`{fact.text}` is given {fact.detail}, and takes parameters alone: it raises"
            yield Report(fact.at, message, _HELP, places(fact.at, *calls(fact.stack, ())))


def _refused(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("not-parameters")
