"""# non-differentiable-loss (GL104)

Every route to the loss passes an operation that has no derivative.

## What it does
Reports the first such operation after the parameters: `argmax`, a comparison, a cast to integers or
booleans, `topk(…).indices`, `sort(…).indices`, `bincount`, `histc`, `nonzero`, `multinomial`,
`Distribution.sample()`, `one_hot`. It also reports operations that autograd records although torch
implements no derivative for them: `heaviside`, floor division of floats, `unique`, `histogram`.
Their backward raises, even where other routes are whole.

## Why it matters
An accuracy, an IoU or a rank changes in jumps: there is no direction in which a small step makes it
better. The backward raises.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
correct = model(x).argmax(dim=-1) == labels  # expect: GL104
loss = 1.0 - correct.float().mean()
optimizer.zero_grad()
loss.backward()  # RuntimeError: does not require grad
optimizer.step()
```

A derivative that torch does not implement:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
score = model(torch.randn(8, 4))
gate = torch.heaviside(score, torch.zeros(()))  # expect: GL104
loss = (gate * score).mean()
optimizer.zero_grad()
loss.backward()  # RuntimeError: is not implemented
optimizer.step()
```

## Use instead
A smooth stand-in for the training; the figure itself for the report.

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
logits = model(x)
loss = F.cross_entropy(logits, labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
accuracy = (logits.argmax(dim=-1) == labels).float().mean().item()
```

For a soft overlap: `(probability * mask).sum()` in place of counts. For a sample: `rsample()`, or
the score function, `-(log_prob(action) * advantage).mean()`. For a gate:
`torch.sigmoid(score / temperature)`, or a straight-through estimator.

## What it does not report
- Indices used only to choose values that carry a gradient: `values.gather(1, actions)`,
  `x[x.argmax()]`.
- `log_prob(sample)` and `rsample()`, which are differentiable.
- As an error: what is a loss by its name alone and counts how often a prediction is near enough to
  what is given beside it (`(predicted - wanted).abs() < 0.5`). It is a note.
- Masks and pseudo-labels from comparisons or `argmax` beside a route that is whole.

## Limits
Operations that have a derivative which is zero everywhere, such as `round`, are
`zero-gradient-loss` (GL108).
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Value
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.uncut import hint_of_sample, resampled, unsafe
from gradlint_rules.visited import surely_visited
from gradlint_rules.words import backward, calls, loss_of, maker, places, to_sink, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Train on a differentiable stand-in (a cross entropy, a soft overlap, `rsample()`); keep "
    "this for the report."
)


def check(paths: Paths) -> Iterator[Report]:
    """Operations without a derivative that leave a loss without routes, or make its backward
    raise.
    """
    for found in starved(paths, Why.NON_DIFFERENTIABLE):
        hints = {**hint_of_sample(found.culprit), **found.denied}
        yield Report(found.at, _message(found), _HELP, found.related, found.severity, hints=hints)
    yield from _not_implemented(paths)


def _message(found: Starved) -> str:
    sink = found.arrival.sink
    cut = f"{maker(found.culprit)} has no derivative, and every route to {loss_of(sink)} passes it"
    return f"{cut}{when(found.decisions)}: {backward(sink)} raises"


def _not_implemented(paths: Paths) -> Iterator[Report]:
    reported: set[Span] = set()
    for sink in arrivals(paths):
        met = [(arrival, value) for arrival in sink if (value := _missing(arrival)) is not None]
        for arrival, value in met:
            if value.at in reported:
                continue
            reported.add(value.at)
            rivals = [rival for rival in sink if all(rival is not other for other, _ in met)]
            decisions = conditions(arrival, rivals, value.at)
            lack = f"torch implements no derivative of {maker(value)}"
            message = f"{lack}: {backward(arrival.sink)} raises{when(decisions)}"
            related = places(
                value.at, *calls(value.stack, arrival.sink.stack), to_sink(arrival.sink)
            )
            yield Report(value.at, message, _HELP, related)


def _missing(arrival: Arrival) -> Value | None:
    if not any(value.missing_derivative for value in arrival.sink.graph):
        return None
    missing = [
        value for value in surely_visited(arrival.sink, arrival.tape) if value.missing_derivative
    ]
    return min(missing, key=lambda value: value.at, default=None)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Draws with `rsample()`, through which a gradient flows; no other operation has a stand-in of
    the same meaning.
    """
    return unsafe(
        "Draw with `rsample()`", resampled(source.expression(finding.at), source, finding.hints)
    )
