"""# non-leaf-parameter (GL515)

What is meant to be optimised is the result of an operation, and not a leaf.

## What it does
Reports a tensor that was computed from a leaf (`torch.randn(…, requires_grad=True) * s`,
`nn.Parameter(…).cuda()`), where it is handed to an optimizer, kept in a module in the place of a
parameter (`self.w = nn.Parameter(…).cuda()`, `self.s = nn.Parameter(…) * 0.5`,
`self.g = torch.ones(n, requires_grad=True) / 8`, `self.w = self.w.to(device)`), or its `.grad` is
read.

## Why it matters
Gradients are collected in leaves. An optimizer refuses with "can't optimize a non-leaf Tensor";
`.grad` is None; a module does not register it, and it is never trained, or raises where the name is
a parameter's ("cannot assign … as parameter").

## Example
```python
import torch

torch.manual_seed(0)
weight = torch.randn(4, 1, requires_grad=True) * 0.1  # expect: GL515
optimizer = torch.optim.SGD([weight], lr=0.1)  # ValueError: can't optimize a non-leaf Tensor
for x in torch.randn(5, 8, 4):
    loss = (x @ weight).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
weight = (torch.randn(4, 1) * 0.1).requires_grad_()
optimizer = torch.optim.SGD([weight], lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = (x @ weight).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- `nn.Parameter(x).to(device)` where nothing changes: the same device and dtype give the same
  parameter, so that `.cpu()`, `.float()` and what the program moves to the CPU are left alone.
- Tensors whose gradient is kept by `retain_grad()`.
- Attributes by which a module asks for a derivative (`autograd.grad(u, self.t)`), and views of
  leaves that are no parameters: the points of a grid.

## Limits
Where and in which precision a tensor was made is not looked at: it is taken to be made on the CPU,
in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Kind, Value
from gradlint_rules.held import STAYS, is_meant_as_leaf
from gradlint_rules.structure import made_leaf
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import maker, places, quoted

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Compute the tensor first, and make the result a leaf: `nn.Parameter(x * s)`, `(x * "
    "s).requires_grad_()`."
)
_WHAT = {
    "non-leaf-parameter": "an optimizer cannot update it",
    "non-leaf-grad": "its `.grad` stays None",
    "non-leaf-attribute": "no module can register it as a parameter",
}


def check(paths: Paths) -> Iterator[Report]:
    """Every non-leaf in the place of a leaf."""
    for fact in paths.some(lambda tape: tape.facts(*_WHAT)):
        value = fact.value
        if value is not None and _is_meant_as_leaf(fact, value):
            yield _report(fact, value)


def _is_meant_as_leaf(fact: Fact, value: Value) -> bool:
    """Whether a leaf should stand in its place; of an attribute the fact says so."""
    if fact.what != "non-leaf-attribute":
        return is_meant_as_leaf(value)
    return value.kind is Kind.OPERATION and STAYS not in value.flags


def _report(fact: Fact, value: Value) -> Report:
    message = f"{quoted(value)} is the result of {maker(value)}, no leaf: {_WHAT[fact.what]}"
    used = [Related(at, said) for at, said in fact.related]
    if fact.at != value.at:
        used.append(Related(fact.at, "used as a parameter here"))
    return Report(value.at, message, _HELP, places(value.at, *used))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes the result the leaf."""
    return unsafe("Make the result a leaf", made_leaf(finding, source))
