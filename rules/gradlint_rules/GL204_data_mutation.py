"""# data-mutation (GL204)

A tensor that was saved for the backward is written through `.data` or a NumPy array: no error, and
a wrong gradient.

## What it does
Reports writes that autograd cannot see, `x.data.op_()`, `x.data[i] = …`, `array[i] = …` where the
array shares the memory of a tensor, between the operation that saved the tensor and the backward
that needs it.

## Why it matters
Autograd protects what it saved by a version counter. `.data` and NumPy do not touch it: the
backward computes with the new values and gives a gradient that belongs to no function anyone wrote.

## Example
```python
import torch

torch.manual_seed(0)
head = torch.nn.Linear(4, 3)
x = torch.randn(8, 4, requires_grad=True)
loss = head(x).logsumexp(dim=-1).mean()
right = torch.autograd.grad(loss, x, retain_graph=True)[0]
head.weight.data.mul_(3.0)  # expect: GL204
loss.backward()
assert not torch.allclose(x.grad, right)
```

## Use instead
Write after the backward, and under `no_grad`, where a mistake raises:

```python
import torch

torch.manual_seed(0)
head = torch.nn.Linear(4, 3)
x = torch.randn(8, 4, requires_grad=True)
loss = head(x).logsumexp(dim=-1).mean()
right = torch.autograd.grad(loss, x, retain_graph=True)[0]
loss.backward()
with torch.no_grad():
    head.weight.mul_(3.0)
assert torch.allclose(x.grad, right)
```

## What it does not report
- Initialisation, weight clipping and moving averages that run while no graph waits for its
  backward.
- `p.data = new`: it binds the parameter to other memory, and what was saved stays as it was.
- Writes under `no_grad` or through `.detach()`. They count, so that the backward raises: GL201 and
  GL203.

## Limits
A NumPy array is followed from `.numpy()` and `torch.from_numpy`, not through unknown functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint_rules.keeping_writes import rebound
from gradlint_rules.overwritten import Overwritten, overwritten
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = (
    "Write after the backward; under `torch.no_grad()` and without `.data`, PyTorch notices such "
    "a mistake."
)


def check(paths: Paths) -> Iterator[Report]:
    """Every unseen write to something saved."""
    for found in overwritten(paths, counted=False):
        yield Report(found.at, _message(found), _HELP, found.related)


def _message(found: Overwritten) -> str:
    write = f"{found.saving}, and this overwrites it unseen{found.condition}"
    return f"{write}: {backward(found.sink)} gives a wrong gradient and no error"


def fix(finding: Finding, source: FixSource) -> Fix:
    """Binds the parameter to new memory: what was saved stays as it was."""
    return unsafe("Write into new memory", rebound(finding, source))
