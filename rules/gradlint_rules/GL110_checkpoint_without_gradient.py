"""# checkpoint-without-gradient (GL110)

Reentrant activation checkpointing is given inputs none of which requires grad, so that nothing
inside it is trained.

## What it does
Reports `torch.utils.checkpoint.checkpoint` with `use_reentrant=True` (still the default where
nothing is given) and `checkpoint_sequential`, where the tensors among the arguments are plain data
or come from frozen layers, while parameters inside would train.

## Why it matters
The reentrant variant runs the forward without recording, and asks its *arguments* whether anything
needs a gradient. None does, so its result needs none: the parameters inside get no gradient, with
no more than a warning. If the loss has no other route, the backward raises.

## Example
```python
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
x = torch.randn(16, 4)
loss = checkpoint(block, x, use_reentrant=True).pow(2).mean()  # expect: GL110
optimizer.zero_grad()
loss.backward()  # RuntimeError: does not require grad
optimizer.step()
```

## Use instead
The variant that records as any forward does:

```python
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
x = torch.randn(16, 4)
loss = checkpoint(block, x, use_reentrant=False).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert block[0].weight.grad is not None
```

Where the reentrant variant has to stay, `x.requires_grad_()` before it does
(`enable_input_require_grads()` of transformers does this to the embeddings).

## What it does not report
- `use_reentrant=False`.
- Checkpoints of which an input carries a gradient, or in which nothing is trained.
- Checkpoints under `no_grad`, and those whose result flows into no loss.

## Limits
Tensors inside a list or dict argument do not count, as they do not count for PyTorch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import LOOKUP, Backward, Cut, Value
from gradlint_rules.arrivals import Arrival
from gradlint_rules.cuts import cut_short, is_cut
from gradlint_rules.encounters import encountered
from gradlint_rules.uncut import safe, unsafe, values_of
from gradlint_rules.words import loss_of

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Pass `use_reentrant=False`, or make the input require grad (`x.requires_grad_()`)."


def check(paths: Paths) -> Iterator[Report]:
    """The checkpoints that cut a route to a loss."""
    for found in encountered(paths, _cuts):
        cause = f"no input of this reentrant checkpoint requires grad{found.condition}"
        message = f"{cause}: what is trained inside gets no gradient from {loss_of(found.sink)}"
        yield Report(found.at, message, _HELP, found.related())


def _cuts(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    for value in cut_short(arrival.sink, arrival.tape):
        if value.cut is Cut.CHECKPOINT and is_cut(value) and not _is_given(value, arrival.sink):
            yield value.at, value


def _is_given(value: Value, sink: Backward) -> bool:
    """Whether an input is one of a part, of which its trainer knows whether it requires grad."""
    pending = [source for source in value.inputs if sink.assumed]
    for source in pending:
        if source.assumed:
            return True
        pending += [] if LOOKUP in source.flags else source.inputs
    return False


def fix(finding: Finding, source: FixSource) -> Fix:
    """Checkpoints without re-entrance, which needs no input with gradient."""
    call = source.expression(finding.at)
    if not isinstance(call, ast.Call):
        raise NoFixError("no call")
    given = next(
        (keyword.value for keyword in call.keywords if keyword.arg == "use_reentrant"), None
    )
    options = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if given is None and options:
        (given,) = _said_by(options[0], source)
        return unsafe("Checkpoint without re-entrance", (source.replace(given, "False"),))
    edit = (
        source.replace(given, "False")
        if given
        else source.add_argument(call, "use_reentrant=False")
    )
    return safe("Checkpoint without re-entrance", (edit,))


def _said_by(options: ast.expr, source: FixSource) -> list[ast.expr]:
    """What options that a dict holds say of re-entrance."""
    found = [
        options,
        *(values_of(options, source, options) if isinstance(options, ast.Name) else []),
    ]
    match found[-1]:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            said = [
                value
                for key, value in pairs
                if isinstance(key, ast.Constant) and key.value == "use_reentrant"
            ]
            if len(said) == 1 and len(found) <= 2:
                return said
    raise NoFixError("`**options` can say so as well")
