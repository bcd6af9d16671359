"""# backward-arity (GL802)

The `backward` of a custom function returns other gradients than its `forward` takes inputs.

## What it does
Counts what each `return` of `backward` gives and what `apply` is called with, and reports too few
gradients, more that are not `None`, a list in the place of a tuple, and a missing or empty return.

## Why it matters
`backward` must return one gradient for each input of `forward` (`ctx` apart), in order, and `None`
for those that have none. Too few or too many raise; a list counts as one value; and a function of
one input that returns nothing gives `None`, which raises nothing and trains nothing.

## Example
```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor  # expect: GL802


weight = torch.ones(3, requires_grad=True)
loss = Scale.apply(weight, 2.0).sum()
loss.backward()  # RuntimeError: incorrect number of gradients
```

## Use instead
```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


weight = torch.ones(3, requires_grad=True)
loss = Scale.apply(weight, 2.0).sum()
loss.backward()
assert weight.grad.tolist() == [2, 2, 2]
```

## What it does not report
- Further `None`s behind the last gradient, which PyTorch drops.
- Returns whose number of gradients the source leaves open: `(*grads, None)`, `tuple(grads)`,
  another function's result.

## Limits
The inputs are those of the calls of `apply` in view; optional ones that a call leaves out do not
count for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint_rules.functions import as_many_gradients
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import places

SEVERITY = Severity.ERROR
_HELP = (
    "Return a tuple with one gradient for each input of `forward`, and `None` for those that "
    "have none."
)


def check(paths: Paths) -> Iterator[Report]:
    """The returns of `backward` that do not fit the inputs."""
    for fact in paths.some(lambda tape: tape.facts("gradients")):
        given, inputs, kind = fact.detail.split()
        applied = [Related(at, message) for at, message in fact.related]
        message = _message(fact.text, int(given), int(inputs), kind)
        yield Report(fact.at, message, _HELP, places(fact.at, *applied), hints={"given": given})


def _message(name: str, given: int, inputs: int, kind: str) -> str:
    match kind:
        case "nothing":
            return (
                f"`{name}.backward` returns no gradient: what comes before gets none, and "
                "nothing raises"
            )
        case "list":
            return (
                f"`{name}.backward` returns a list, which counts as one value: the backward raises"
            )
    needed = f"{inputs} input{'s' if inputs != 1 else ''}"
    return (
        f"`{name}.backward` returns {given} gradient{'s' if given != 1 else ''} for {needed}: "
        "the backward raises"
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Returns as many gradients as there are inputs."""
    return unsafe(
        "Return as many gradients as there are inputs", as_many_gradients(finding, source)
    )
