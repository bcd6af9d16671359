"""# ctx-tensor (GL801)

What a custom function keeps for its backward is kept in the wrong place: a tensor as an attribute
of `ctx`, or what is no tensor with `save_for_backward`.

## What it does
Reports `ctx.name = tensor` in the `forward` of a `torch.autograd.Function` where the tensor is what
`forward` returns, or an input through which a gradient flows. Reports, as an error, a number,
string, list or dict that `save_for_backward` is given; as a warning, a parameter that is a number
by its default or annotation.

## Why it matters
An output kept so holds the graph that holds it: the cycle keeps every activation of the step alive
until the garbage collector comes by, and memory grows. An input kept so may be overwritten before
the backward, and nothing notices: the check that raises in such a case knows only of what
`save_for_backward` was given. That takes tensors and `None` alone, and raises where it is given
anything else.

## Example
```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x  # expect: GL801
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.x * grad


weight = torch.ones(3, requires_grad=True)
hidden = weight * 2
loss = Square.apply(hidden).sum()
hidden.add_(1)
loss.backward()
assert weight.grad.tolist() == [12, 12, 12]  # and not 8
```

## Use instead
```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.power * x ** (ctx.power - 1) * grad, None


weight = torch.ones(3, requires_grad=True)
loss = Square.apply(weight * 2, 2).sum()
loss.backward()
assert weight.grad.tolist() == [8, 8, 8]
```

## What it does not report
- Numbers, shapes and flags.
- Tensors made inside `forward` that are neither input nor output, and inputs without gradient, such
  as indices.

## Limits
An input of unknown code is taken to carry a gradient where every `return` of `backward` gives one
for it, as a tuple of as many as there are inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint_rules.saved_numbers import kept_beside
from gradlint_rules.saving import saved_for_backward
from gradlint_rules.uncut import unsafe

SEVERITY = Severity.WARNING
_HELP = "Use `ctx.save_for_backward(…)`, and `ctx.saved_tensors` in the backward."
_HELP_NUMBER = "Keep it as an attribute: `ctx.name = value`."
_BY_DEFAULT = "by its default or annotation"  # else somebody passes a tensor
_NUMBER = {"saved": "number"}
_EFFECT = {
    "output": "holds the graph that holds it: its memory is not freed",
    "input": (
        "is not guarded: where it is overwritten before the backward, the gradient is silently "
        "wrong"
    ),
}


def check(paths: Paths) -> Iterator[Report]:
    """The inputs and outputs that a `forward` keeps on `ctx`."""
    for fact in paths.some(lambda tape: tape.facts("ctx-tensor")):
        kept = f"an {fact.detail} of the function kept as `{fact.text}`"
        yield Report(fact.at, f"{kept} {_EFFECT[fact.detail]}", _HELP)
    for fact in paths.some(lambda tape: tape.facts("saved-no-tensor")):
        message = (
            f"`save_for_backward` is given `{fact.text}`, {fact.detail}, and takes tensors "
            "alone: it raises"
        )
        severity = Severity.WARNING if fact.detail.endswith(_BY_DEFAULT) else Severity.ERROR
        yield Report(fact.at, message, _HELP_NUMBER, severity=severity, hints=_NUMBER)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Saves the tensor for the backward."""
    if finding.hints == _NUMBER:
        return unsafe("Keep it beside what is saved", kept_beside(finding, source))
    return unsafe("Save it for the backward", saved_for_backward(finding, source))
