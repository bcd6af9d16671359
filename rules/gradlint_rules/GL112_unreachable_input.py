"""# unreachable-input (GL112)

`autograd.grad` is asked for the gradient of a tensor that its output was not computed from: it
raises.

## What it does
Reports `torch.autograd.grad(output, inputs)` without `allow_unused` and `materialize_grads`, where
one of the inputs stands nowhere in the graph of the output: a slice or a copy that was made
afterwards, a deep copy, a parameter of another network.

## Why it matters
What counts for autograd is the tensor, not its numbers: `w[0]` is a new tensor each time that it is
written, and the loss was computed from `w`. The call raises "one of the differentiated tensors
appears to not have been used in the graph".

## Example
```python
import torch

torch.manual_seed(0)
weights = torch.nn.Parameter(torch.randn(3, 4))
optimizer = torch.optim.SGD([weights], lr=0.1)
x = torch.randn(8, 4)
losses = (x @ weights.T).square().mean(dim=0)
# RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph
gradients = [
    torch.autograd.grad(losses[i], weights[i], retain_graph=True)[0]  # expect: GL112
    for i in range(3)
]
weights.grad = torch.stack(gradients)
optimizer.step()
```

## Use instead
The tensor that the output was computed from; the part of its gradient is a part of the result:

```python
import torch

torch.manual_seed(0)
weights = torch.nn.Parameter(torch.randn(3, 4))
optimizer = torch.optim.SGD([weights], lr=0.1)
x = torch.randn(8, 4)
losses = (x @ weights.T).square().mean(dim=0)
gradients = [torch.autograd.grad(losses[i], weights, retain_graph=True)[0][i] for i in range(3)]
weights.grad = torch.stack(gradients)
optimizer.step()
```

## What it does not report
- Inputs for which `allow_unused` or `materialize_grads` is given.
- Inputs that code out of view can have computed with, and those that are out of view themselves.

## Limits
Gradients of gradients are not judged: what a derivative still hangs on is not known for certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Tape
from gradlint_rules.sources import of_what_was_run, twin
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places, quoted

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Ask for the gradient of the tensor that the output was computed from."


def check(paths: Paths) -> Iterator[Report]:
    """Every input that the graph does not hold."""
    for fact in paths.some(_unmet):
        if fact.value is not None and fact.source is not None:
            message = (
                f"{quoted(fact.source)} is not computed from {quoted(fact.value)}: "
                "`autograd.grad` raises"
            )
            made = Related(fact.value.at, "this tensor is made here")
            related = places(fact.at, *calls(fact.stack, ()), made)
            yield Report(fact.at, message, _HELP, related, hints=twin(fact))


def _unmet(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("unmet-input")


def fix(finding: Finding, source: FixSource) -> Fix:
    """Asks for the gradient of what the output was computed from."""
    return unsafe("Ask for that of what was run", of_what_was_run(finding, source))
