"""# function-not-applied (GL804)

A custom autograd function is called, or its `forward` is, and not its `apply`.

## What it does
Reports calls of an instance, `MyFunction()(x)`, which was the way before PyTorch 0.4, of the class
itself with tensors that carry a gradient, `MyFunction(x)`, and direct calls of
`MyFunction.forward(…)` with inputs that carry one.

## Why it matters
A call of an instance raises. A call of the class makes an object, which no operation takes. A
direct call of `forward` runs, and its operations are recorded like any other: the `backward` that
was written for it is never used.

## Example
```python
import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


weight = torch.ones(3, requires_grad=True)
loss = Step.forward(None, weight * 2).sum()  # expect: GL804
loss.backward()
assert weight.grad.tolist() == [0, 0, 0]
```

```python
import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


weight = torch.ones(3, requires_grad=True)
loss = Step()(weight * 2).sum()  # expect: GL804
loss.backward()  # RuntimeError: Legacy autograd function
```

## Use instead
```python
import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


weight = torch.ones(3, requires_grad=True)
loss = Step.apply(weight * 2).sum()
loss.backward()
assert weight.grad.tolist() == [2, 2, 2]
```

## What it does not report
- A `forward` without `@staticmethod` that is only ever applied: it works.
- A `forward` called inside the `forward` of another function, or under `no_grad`.
- A function whose `forward` and `backward` are both called by hand, to compare them.

## Limits
Functions without a `backward` of their own are of no interest here.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Tape
from gradlint_rules.functions import applied
from gradlint_rules.uncut import unsafe

SEVERITY = Severity.ERROR


def check(paths: Paths) -> Iterator[Report]:
    """The calls that go around `apply`."""
    for event in paths.some(_around_apply):
        yield _report(event)


def _around_apply(tape: Tape) -> Iterator[Fact]:
    """The calls of functions whose `backward` the program does not call itself."""
    calls = tape.facts("function-not-applied")
    by_hand = {_name(call) for call in calls if call.detail == "backward"}
    yield from (call for call in calls if _name(call) not in by_hand)


def _name(call: Fact) -> str:
    return call.related[0][1]


def _report(fact: Fact) -> Report:
    name = _name(fact)
    remedy = f"Call `{name}.apply(…)`."
    if fact.detail == "instance":
        return Report(
            fact.at,
            f"an instance of the autograd function `{name}` is called, which raises",
            remedy,
        )
    if fact.detail == "made":
        return Report(
            fact.at,
            f"this makes an object of the autograd function `{name}` and computes nothing",
            remedy,
            hints={"function": name},
        )
    return Report(
        fact.at, f"`{name}.forward` is called directly: `{name}.backward` is never used", remedy
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Applies the function."""
    return unsafe("Apply the function", applied(finding, source))
