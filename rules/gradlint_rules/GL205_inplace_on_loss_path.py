"""# inplace-on-loss-path (GL205)

An in-place operation on the way to a loss that autograd handles correctly.

## What it does
Notes each modification in place of a tensor that a loss is computed from, where nothing saved what
is overwritten.

## Why it matters
Nothing is wrong: the gradient is right, and memory is saved. But it is right only as long as no
operation before it saves its result: put a ReLU in place of the Linear, and the same line raises
(`inplace-saved-tensor`, GL201). A `note`, for those who look for such lines: texts and editors show
it only where it is selected, `--select GL205` or `select = ["ALL"]`; JSON and SARIF always have it.

## Example
```python
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(2, 4)
hidden = layer(x)
hidden += x  # expect: GL205
loss = hidden.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
There is no need to. Out of place it reads:

```python
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(2, 4)
hidden = layer(x) + x
loss = hidden.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- Buffers, gradients, indices, targets and whatever else carries no gradient, or may carry none.
- Modules with `inplace=True`, which say what they do where they are made.
- What is wrong: GL201 to GL204.
- A write into what can be a copy or the very tensor, as a device, a dtype or the order in memory
  decides that is not known: `x.to(device)`, `x.contiguous()` of data.
- What torch refuses at once: a write to one of several views (`chunk`, `split`, `unbind`), or to
  what `expand` gave.

## Limits
A modification is noted where some path to a backward includes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.operations import Trait, has
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import MAY_SHARE, InPlace, Tape, Value
from gradlint_rules.overwritten import spoilt
from gradlint_rules.visited import surely_visited
from gradlint_rules.words import quoted

SEVERITY = Severity.NOTE
QUIET = True
_HELP = "Nothing needs to change; out of place it would stay right whatever comes before it."


def check(paths: Paths) -> Iterator[Report]:
    """Every harmless write to a value with gradient that a backward runs through."""
    if not any(paths.some(Tape.backwards)):
        return
    reported = {write.at for write in paths.some(spoilt)}
    reported |= {
        event.write.at for event in paths.some(lambda tape: tape.of(InPlace)) if _is_refused(event)
    }
    for event in paths.some(_on_loss_path):
        if event.write.at not in reported:
            reported.add(event.write.at)
            yield Report(event.write.at, _message(event), _HELP)


def _on_loss_path(tape: Tape) -> Iterator[InPlace]:
    """The writes that a backward of the path runs through."""
    writes = [event for event in tape.of(InPlace) if _is_plain(event)]
    sinks = tape.backwards() if writes else ()
    visited = {id(value) for sink in sinks for value in surely_visited(sink, tape)}
    return (event for event in writes if id(event.after) in visited)


def _is_plain(event: InPlace) -> bool:
    write = event.write
    is_module = write.op.startswith("torch.nn.") and not write.op.startswith("torch.nn.functional.")
    is_recorded = event.after is not event.before
    is_known = is_recorded and not _may_share(event.before)
    return is_known and write.counted and not is_module


def _may_share(value: Value) -> bool:
    """Whether it shows the memory of what can be a copy or not: the write can reach a leaf, or what
    was saved.
    """
    while MAY_SHARE not in value.flags:
        if not value.inputs or value.inputs[0].storage is not value.storage:
            return False
        value = value.inputs[0]
    return True


def _is_refused(event: InPlace) -> bool:
    """Whether torch refuses the write at once."""
    # one of several views, or elements that share memory
    return bool(event.raises) or has(event.before.op, Trait.SPLITS, Trait.UNBINDS, Trait.EXPANDS)


def _message(event: InPlace) -> str:
    return f"{quoted(event.before)} is modified in place on the way to a loss: autograd handles it"
