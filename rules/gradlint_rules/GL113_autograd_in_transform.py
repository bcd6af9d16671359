"""# autograd-in-transform (GL113)

A function that is given to `vmap`, `torch.func.grad` or another transform asks autograd for
something: it raises.

## What it does
Reports `requires_grad_()` and `backward()` in what runs inside of a function that a transform of
`torch.func` calls: `vmap`, `grad`, `grad_and_value`, `jacrev`, `jacfwd`, `hessian`, `linearize`,
`vjp`, `jvp`, `functionalize`. `autograd.grad` of what is computed from the arguments, too: inside
of `vmap`, `jvp` and `jacfwd` alone, which record no graph of these, whatever the gradient is asked
for; inside of `grad`, `jacrev`, `hessian` and `vjp` for what the function was not given.

## Why it matters
The transforms differentiate and batch by themselves, and refuse both, whichever tensor they are
asked for: "you are attempting to call Tensor.requires_grad_() inside of a function being
transformed by a functorch transform". Code that computed derivatives for one sample raises as soon
as it is mapped over a batch.

## Example
```python
import torch
from torch.func import vmap

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def slope(t):
    # RuntimeError: You are attempting to call Tensor.requires_grad_()
    t.requires_grad_()  # expect: GL113
    return torch.autograd.grad(model(t.reshape(1)).sum(), t, create_graph=True)[0]


loss = (vmap(slope)(torch.rand(16)) - 1).square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
`torch.func.grad` in the function, which can be mapped:

```python
import torch
from torch.func import grad, vmap

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def height(t):
    return model(t.reshape(1)).sum()


loss = (vmap(grad(height))(torch.rand(16)) - 1).square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- `t.requires_grad = True` and `torch.ones(3, requires_grad=True)`, which the transforms let pass.
- `autograd.grad` of what the arguments have no part in (`in_dims=(None, 0)` leaves the first as it
  is), and inside of `grad`, `jacrev`, `hessian` and `vjp` for the arguments.

## Limits
Functions that are handed to a transform out of view are not seen to run in one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Fact, Tape
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Take the derivative by `torch.func.grad`, or call this outside of the transform."


def check(paths: Paths) -> Iterator[Report]:
    """Every request to autograd that a transform refuses."""
    for fact in paths.some(_refused):
        what = f"`{fact.detail}` is called inside of a function that `torch.func` transforms"
        yield Report(fact.at, f"{what}: it raises", _HELP, places(fact.at, *calls(fact.stack, ())))


def _refused(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("autograd-in-transform")
