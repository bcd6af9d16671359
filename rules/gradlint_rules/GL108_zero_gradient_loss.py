"""# zero-gradient-loss (GL108)

Every route to the loss passes an operation whose derivative is zero wherever it exists: the
backward runs, and every gradient is zero.

## What it does
Reports `round`, `floor`, `ceil`, `trunc`, `sign`, `sgn`, division with a `rounding_mode`,
`torch.bernoulli`, `torch.poisson`, and `torch.normal` by its mean, where no route from the loss to
the parameters goes around them.

## Why it matters
Nothing raises, and `.grad` is a tensor like any other, full of zeros. The loss stays where it is,
but for what momentum and weight decay do.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, counts = torch.randn(8, 4), torch.randint(0, 9, (8, 1)).float()
predicted = model(x).exp().round()  # expect: GL108
loss = F.mse_loss(predicted, counts)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.grad.abs().sum() == 0
```

## Use instead
Round what is reported, not what is trained:

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, counts = torch.randn(8, 4), torch.randint(0, 9, (8, 1)).float()
expected = model(x).exp()
loss = F.mse_loss(expected, counts)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.grad.abs().sum() > 0
```

Or, where the rounding belongs to the model, let the gradient pass straight through:

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, counts = torch.randn(8, 4), torch.randint(0, 9, (8, 1)).float()
expected = model(x).exp()
predicted = expected + (expected.round() - expected).detach()
loss = F.mse_loss(predicted, counts)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.grad.abs().sum() > 0
```

## What it does not report
- Straight-through estimators, as above, and custom autograd functions that define a gradient of
  their own.
- `%`, `frac` and `fmod`, whose gradient is 1.
- A rounded term beside others that carry a gradient. Parameters that only such a term uses are
  `untrained-parameters` (GL106).

## Limits
Operations without any derivative, such as `argmax`, are `non-differentiable-loss` (GL104): their
backward raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Value, graph
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.cuts import is_bypassed
from gradlint_rules.rounding import straight_through
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, calls, loss_of, maker, places, to_sink, when

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = (
    "Keep this for what is reported, or pass the gradient straight through: `x + (x.round() - "
    "x).detach()`."
)


def check(paths: Paths) -> Iterator[Report]:
    """The operation of zero gradient that every route of a loss passes."""
    reported: set[Span] = set()
    for sink in arrivals(paths):
        blocked = [
            (arrival, value) for arrival in sink if (value := _obstacle(arrival.loss)) is not None
        ]
        for arrival, value in blocked:
            if value.at not in reported and not is_bypassed(value, arrival.tape):
                reported.add(value.at)
                rivals = [
                    rival for rival in sink if all(rival is not other for other, _ in blocked)
                ]
                yield _report(arrival, value, rivals)


def _report(arrival: Arrival, value: Value, rivals: Sequence[Arrival]) -> Report:
    condition = when(conditions(arrival, rivals, value.at))
    cause = (
        f"the gradient of {maker(value)} is zero, and every route to {loss_of(arrival.sink)} "
        "passes it"
    )
    message = (
        f"{cause}{condition}: {backward(arrival.sink)} gives every parameter a gradient of zero"
    )
    related = places(value.at, *calls(value.stack, arrival.sink.stack), to_sink(arrival.sink))
    return Report(value.at, message, _HELP, related)


def _obstacle(loss: Value) -> Value | None:
    """The first operation of zero gradient after the leaves, where every route passes one."""
    if not loss.requires_grad or _reaches_leaf(loss):
        return None
    obstacles = (value for value in graph(loss) if value.zero_gradient)
    nearest = [
        value for value in obstacles if any(_reaches_leaf(source) for source in value.inputs)
    ]
    return min(nearest, key=lambda value: value.at, default=None)


def _reaches_leaf(value: Value) -> bool:
    """Whether a gradient other than zero comes back to a leaf from here."""
    seen, pending = {id(value)}, [value]
    for current in pending:
        if not current.requires_grad or current.zero_gradient:
            continue
        if current.is_leaf:
            return True
        for source in current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def fix(finding: Finding, source: FixSource) -> Fix:
    """Passes the gradient straight through the operation, whose value stays."""
    return unsafe(
        "Pass the gradient straight through",
        straight_through(source.expression(finding.at), source),
    )
