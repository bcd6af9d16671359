"""# detached-loss (GL102)

Every route from the parameters to the loss is cut: values are detached, or copied out of the graph
into Python or NumPy.

## What it does
Follows the loss back to the parameters on every path and reports the first cut after the parameters
where no route is left whole: `.detach()`, `.detach_()`, `.data`, `.item()`, `.tolist()`,
`.numpy()`, `np.asarray(…)`, `float(…)`, `int(…)`, a new tensor made of copied values
(`torch.tensor(x)`, `torch.FloatTensor(…)`, `torch.as_tensor` of a list of tensors), or gradients
taken without `create_graph=True` (`torch.autograd.grad(u, x)` in a residual).

## Why it matters
The values are right, so the loss prints as it should; but autograd knows nothing of where they came
from, and the backward raises.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.zeros(())
for x, y in zip(torch.randn(3, 2, 4), torch.randn(3, 2, 1)):
    loss = loss + (model(x) - y).pow(2).mean().item()  # expect: GL102
optimizer.zero_grad()
loss.backward()  # RuntimeError: does not require grad
optimizer.step()
```

A list of losses made into a tensor is a copy of their values:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
predicted, wanted = model(torch.randn(8, 4)), torch.randn(8, 2)
terms = [(predicted[:, i] - wanted[:, i]).abs().mean() for i in range(2)]
loss = torch.tensor(terms).mean()  # expect: GL102
optimizer.zero_grad()
loss.backward()  # RuntimeError: does not require grad
optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
predicted, wanted = model(torch.randn(8, 4)), torch.randn(8, 2)
terms = [(predicted[:, i] - wanted[:, i]).abs().mean() for i in range(2)]
loss = torch.stack(terms).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
print(loss.item())
```

## What it does not report
- A stop-gradient on one of several routes: a detached target, a teacher, a bootstrap value (see
  `partial-detach`, GL109, for those that look like an accident).
- Gradients of `torch.autograd.grad` in a step that is not back-propagated, such as an adversarial
  example's.
- Copies for logging: what does not flow into a loss is nobody's concern.
- `torch.as_tensor(t)` of one tensor, `torch.stack`, `torch.cat`, `.cpu()`, `.to(…)`, `.float()`:
  they keep the graph.
- A number that scales what is detached: `loss.detach() * (bound / loss.item())` is reported at the
  `detach`.

## Limits
Where each of several routes has a cut of its own, the first in the source is the finding and the
others are related places: all of them have to go.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Cut
from gradlint_rules.averages import averaged
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.uncut import mend_cut, uncut, unsafe
from gradlint_rules.words import backward, loss_of, maker, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL507", "GL508"])  # what was cut is part of the graphs of several rounds


def check(paths: Paths) -> Iterator[Report]:
    """The first detaching or copying on the way to every loss that has no other route."""
    for found in starved(paths, Why.COPIED):
        hints = {"others": " ".join(_written(other) for other in _copied(found)), **found.denied}
        yield Report(
            found.at, _message(found), _help(found), found.related, found.severity, hints=hints
        )


def _copied(found: Starved) -> Iterator[Span]:
    """Where the other routes into the loss are detached or copied in the same file."""
    cuts = (other for other in found.others if other.cut in (Cut.DETACH, Cut.COPY))
    return (other.at for other in cuts if other.at.path == found.at.path and other.at != found.at)


def _written(place: Span) -> str:
    return f"{place.line}:{place.column}:{place.end_line}:{place.end_column}:{place.cell}"


def _message(found: Starved) -> str:
    sink = found.arrival.sink
    verb = "takes" if found.culprit.cut is Cut.DETACH else "copies"
    cut = f"{maker(found.culprit)} {verb} what flows into {loss_of(sink)}"
    return (
        f"{cut} out of the graph{when(found.decisions)}: {backward(sink)} reaches no parameter "
        "and raises"
    )


def _help(found: Starved) -> str:
    if found.culprit.op == "torch.autograd.grad":
        return "`create_graph=True` gives gradients that can be differentiated again."
    if found.culprit.op in ("torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.Tensor"):
        return "Join tensors with `torch.stack` or `torch.cat`, which keep the graph."
    return (
        f"Compute the loss from the tensor itself; keep {maker(found.culprit)} for what is logged."
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the detaching or copying away, on every route; a list of terms is stacked."""
    if edits := averaged(source.expression(finding.at), source):
        return unsafe("Keep the graph", edits)
    others = finding.hints.get("others", "").split()
    places = (Span(finding.at.path, *map(int, other.split(":"))) for other in others)
    routes = (edit for place in places for edit in uncut(source.expression(place), source))
    return unsafe("Keep the graph", (*mend_cut(finding, source), *routes))
