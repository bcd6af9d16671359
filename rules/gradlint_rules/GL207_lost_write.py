"""# lost-write (GL207)

A write in place into a tensor that is computed anew each time that it is asked for.

## What it does
Reports a write in place, `nn.init` included, into the `weight` of a layer that
`torch.nn.utils.parametrizations` computes, into what a property computes, and into rows that a mask
or a list has picked: `x[mask][0] = 1`, and `x[mask].zero_()` as a statement.

## Why it matters
The write goes into a copy that nobody keeps, and nothing is raised: the weights are not clipped,
the initialisation is not that of the paper, the rows stay what they were.

## Example
```python
import torch
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(0)
critic = weight_norm(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = -critic(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        critic.weight.clamp_(-0.01, 0.01)  # expect: GL207
assert critic.weight.abs().max() > 0.01
```

## Use instead
An assignment, which finds its way to the parameters:

```python
import torch
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(0)
critic = weight_norm(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = -critic(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        critic.weight = critic.weight.clamp(-0.01, 0.01)
assert critic.weight.abs().max() < 0.011
```

## What it does not report
- A copy that gets a name: `w = layer.weight`, and then `w.clamp_(0, 1)`; one that a loss is
  computed from.
- `x[mask] = 0` and `x[mask] += 1`, which write into `x`; rows that a slice picks, which are a view.

## Limits
The older `torch.nn.utils.weight_norm` and `spectral_norm`, which compute the weight before each
forward, are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import COMPUTED_ANEW, Event, InPlace, Tape, Value
from gradlint_rules.keeping_writes import assigned
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
PARAMETRIZE = "torch.nn.utils.parametrize"
_HELP = "Assign the whole: `layer.weight = layer.weight.clamp(…)`, `x[rows] = …`."


def check(paths: Paths) -> Iterator[Report]:
    """Every write into a copy that nobody keeps."""
    for event in paths.some(_lost):
        message = (
            f"`{event.text}` writes into a copy that is computed for this access alone: the "
            "write is lost"
        )
        written = event.before if isinstance(event, InPlace) else getattr(event, "value", None)
        related = places(event.at, *calls(event.stack, ()))
        hints = {} if written is None or _takes(written) else {"refuses": "an assignment"}
        yield Report(event.at, message, _HELP, related, hints=hints)


def _takes(written: Value) -> bool:
    """Whether what is written can be assigned: rows, and what is parametrized, but no property."""
    return "selection" in written.flags or _shown(written).op == PARAMETRIZE


def fix(finding: Finding, source: FixSource) -> Fix:
    """Assigns what was written."""
    if "refuses" in finding.hints:
        raise NoFixError("it cannot be assigned")
    return unsafe("Assign it", assigned(finding, source))


def _lost(tape: Tape) -> Iterator[Event]:
    yield from tape.facts("lost-write")
    written = [
        event
        for event in tape.of(InPlace)
        if _is_attribute(_shown(event.before)) and not event.after.name
    ]
    used = (
        {id(value) for sink in tape.backwards() for value in sink.ancestors} if written else set()
    )
    yield from (event for event in written if id(event.after) not in used)


def _is_attribute(value: Value) -> bool:
    """Whether an access to an attribute has computed it, and no name holds it."""
    is_picked = "selection" in value.flags
    return COMPUTED_ANEW in value.flags and not value.name and not is_picked


def _shown(value: Value) -> Value:
    """The tensor whose memory a value shows: `layer.weight` of `layer.weight.data`."""
    while (
        COMPUTED_ANEW not in value.flags
        and value.inputs
        and value.inputs[0].storage is value.storage
    ):
        value = value.inputs[0]
    return value
