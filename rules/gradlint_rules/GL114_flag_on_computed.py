"""# flag-on-computed (GL114)

`requires_grad` is assigned to a tensor that was computed from one that requires grad: it raises.

## What it does
Reports `x.requires_grad = True`, `x.requires_grad = False` and `x.requires_grad_(False)` where `x`
is the result of an operation that autograd records.

## Why it matters
The flag belongs to leaves. What is computed from a leaf requires grad by itself, and the assignment
raises "you can only change requires_grad flags of leaf variables". It works as long as what `x` is
computed from is data, and raises as soon as that is trained or differentiated, too.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
t = torch.rand(8, requires_grad=True)
x = torch.exp(-t)
# RuntimeError: you can only change requires_grad flags of leaf variables
x.requires_grad = True  # expect: GL114
u = model(torch.stack((x, t), dim=1))
slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
loss = slope.square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
Nothing: the gradient with respect to a computed tensor can be asked for as it is.

```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
t = torch.rand(8, requires_grad=True)
x = torch.exp(-t)
u = model(torch.stack((x, t), dim=1))
slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
loss = slope.square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

Where the gradient is to end there, `detach()` comes first: `x = x.detach().requires_grad_()`.

## What it does not report
- `x.requires_grad_()`, which does nothing where `x` requires grad by itself.
- Leaves, and results of what no gradient comes to: data, `detach()`, what is made under `no_grad`.

## Limits
What comes from a model or a function out of view is not known to require grad.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Edit, Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Fact, Tape
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, maker, places, quoted

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Leave it out: the gradient of a computed tensor can be asked for. Or detach it first."


def check(paths: Paths) -> Iterator[Report]:
    """Every flag that torch refuses to set."""
    for fact in paths.some(_refused):
        value = fact.value
        if value is not None:
            what = f"{quoted(value)} is the result of {maker(value)}, no leaf"
            message = f"{what}: setting its `requires_grad` raises"
            yield Report(fact.at, message, _HELP, places(fact.at, *calls(fact.stack, ())))


def _refused(tape: Tape) -> Iterator[Fact]:
    for fact in tape.facts("flag-refused"):
        if fact.detail != "rows":  # frozen in vain: GL516
            yield fact


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes it a leaf of its own: what was assigned the flag begins anew there."""
    return unsafe("Make it a leaf first", (_as_leaf(finding, source),))


def _as_leaf(finding: Finding, source: FixSource) -> Edit:
    """`x = x.detach().requires_grad_()` in the place of `x.requires_grad = True`."""
    statement = source.statement(finding.at)
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(attr="requires_grad", value=ast.Name(id=name))],
            value=ast.Constant(value=bool(flag)),
        ) | ast.Expr(
            ast.Call(
                func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=name)),
                args=[ast.Constant(value=bool(flag))],
            )
        ):
            leaf = f"{name} = {name}.detach()"
            return source.rewrite(statement, f"{leaf}.requires_grad_()" if flag else leaf)
    raise NoFixError("what is meant is not clear")
