"""# hook-argument (GL805)

A hook of `register_post_accumulate_grad_hook` takes its argument for the gradient: it is the parameter.

## What it does
Reports where such a hook writes to its argument, adds it to a gradient, sums it over processes or returns what it
computes from it, and nowhere reads the argument's `.grad`.

## Why it matters
`Tensor.register_hook` calls its hook with the gradient, `register_post_accumulate_grad_hook` with the parameter, whose
`.grad` is there by then; what it returns is ignored. A hook that was written for the one adds up weights in place of
gradients, or scales the weights themselves. Nothing is raised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)


def clip(gradient):
    gradient.data.clamp_(-0.1, 0.1)  # expect: GL805


model.weight.register_post_accumulate_grad_hook(clip)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert model.weight.abs().max() < 0.4
```

## Use instead
The `.grad` of the argument:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)


def clip(parameter):
    parameter.grad.clamp_(-0.1, 0.1)


model.weight.register_post_accumulate_grad_hook(clip)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Hooks that read the `.grad` of their argument, whatever else they do with it: weight decay in the backward.
- Hooks that hand their argument on, or look something up by it: `optimizers[parameter].step()`.
- Hooks of `Tensor.register_hook`, which are given the gradient.

## Limits
A hook is judged where its function is in view; what `functools.partial` makes is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Fact, Tape
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_MESSAGE = "the hook takes its argument for the gradient: `register_post_accumulate_grad_hook` gives it the parameter"
_HELP = "Use the `.grad` of the argument."


def check(paths: Paths) -> Iterator[Report]:
    """Every place where a hook takes the parameter for its gradient."""
    reported: set[Span] = set()
    for fact in paths.some(_mistaken):
        if fact.at not in reported:
            reported.add(fact.at)
            yield Report(fact.at, _MESSAGE, _HELP, places(fact.at, *calls(fact.stack, ())))


def _mistaken(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("parameter-for-gradient")
