"""# backward-under-autocast (GL407)

The backward runs inside the autocast region.

## What it does
Reports a backward inside `with torch.autocast(…):`, as a note. It is a warning where a matrix product or a convolution
of its graph was computed outside of autocast, or with autocast switched off.

## Why it matters
The backward of an operation runs in the precision that autocast chose for its forward, so nothing is gained. But an
operation that was computed in float32 on purpose has its backward computed in low precision inside the region: its
gradient changes.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 1)
prediction = model(torch.randn(8, 64))
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = prediction.pow(2).mean()
    loss.backward(retain_graph=True)  # expect: GL407
rough = model.weight.grad.clone()
model.zero_grad()
loss.backward()
assert not torch.equal(rough, model.weight.grad)
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 1)
prediction = model(torch.randn(8, 64))
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = prediction.pow(2).mean()
loss.backward(retain_graph=True)
exact = model.weight.grad.clone()
model.zero_grad()
loss.backward()
assert torch.equal(exact, model.weight.grad)
```

## What it does not report
- A region that is disabled on this path.

## Limits
Operations of modules that are not in view are taken to run where they are called.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import FRAMEWORK, Backward, Kind, Tape, Value
from gradlint_rules.visited import visited
from gradlint_rules.words import backward, bare, calls, maker, places

SEVERITY = Severity.NOTE
AT_RUN_TIME = True
_HELP = "End the region before the backward."
_LOWERED = {"linear", "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "einsum", "bilinear", "lstm", "gru", "rnn"}
_LOWERED |= {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "chain_matmul"}
_LOWERED |= {"scaled_dot_product_attention", "lstmcell", "grucell", "rnncell", "multiheadattention", "mv", "addmv"}
_LOWERED |= {"convtranspose1d", "convtranspose2d", "convtranspose3d"}


def check(paths: Paths) -> Iterator[Report]:
    """Every backward inside autocast, those first whose graph has parts from outside of it."""
    found: dict[Span, tuple[Backward, Value | None]] = {}
    for sink in paths.some(Tape.backwards):
        if sink.autocast is not None and not sink.by_framework:
            outside = _computed_outside(sink)
            if sink.at not in found or (outside is not None and found[sink.at][1] is None):
                found[sink.at] = (sink, outside)
    for at in sorted(found):
        yield _report(*found[at])


def _computed_outside(sink: Backward) -> Value | None:
    """A product or convolution of the graph that was computed in full precision.

    What a framework prepared is computed in its autocast wherever it is called.
    """
    if sink.autocast == FRAMEWORK:
        return None
    values = (value for value in visited(sink) if value.kind is Kind.OPERATION and value.autocast is None)
    return next((value for value in values if bare(value.op).lower() in _LOWERED and not value.assumed), None)


def _report(sink: Backward, outside: Value | None) -> Report:
    if outside is None:
        message = f"{backward(sink)} runs inside autocast, where it gains nothing"
        return Report(sink.at, message, _HELP, places(sink.at, *calls(sink.stack, ())))
    message = f"{backward(sink)} runs inside autocast: the backward of {maker(outside)} loses its full precision"
    related = places(sink.at, Related(outside.at, "computed in full precision here"))
    return Report(sink.at, message, _HELP, related, Severity.WARNING)
