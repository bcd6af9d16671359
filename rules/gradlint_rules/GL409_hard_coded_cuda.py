"""# hard-coded-cuda (GL409)

Something is put on CUDA by name in code that elsewhere chooses its device.

## What it does
Reports `.cuda()`, `.to("cuda")` and `device="cuda"` on a path on which the program has put other
things on the CPU or on MPS.

## Why it matters
Without CUDA the line raises; with it, the operands lie on two devices. It works on the machine of
whoever wrote it.

## Example
```python
import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4).to(device), torch.randn(8, 1).cuda()  # expect: GL409
# AssertionError: Torch not compiled with CUDA enabled
loss = (model(x) - y).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4).to(device), torch.randn(8, 1).to(device)
loss = (model(x) - y).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- What stands under a check of the device: `if torch.cuda.is_available():`, `if args.gpu:`.
- Code that is written for CUDA alone.
- A device by another name, `.to(self.device)`: what is CUDA there by default can be set, and
  follows the rest.
- Autocasts and scalers: see `cuda-only-amp` (GL401).

## Limits
The other device has to be seen on the same path.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Tape
from gradlint_rules.devices import (
    CUDA,
    Choices,
    choices,
    chosen_here,
    is_checked,
    placed,
    placed_by_name,
)
from gradlint_rules.portable import put_on_device
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.WARNING
_HELP = "Put it where the rest is: `.to(device)`."


def check(paths: Paths) -> Iterator[Report]:
    """Every place that is CUDA on all paths, on a path that runs elsewhere."""
    found = choices(paths)
    named = {fact.at: fact.detail for fact in paths.some(placed_by_name)}
    reported: set[Span] = set()
    for fact, elsewhere in paths.some(lambda tape: _on_cuda(tape, found)):
        if fact.at in named.keys() - reported and not is_checked(fact, paths):
            reported.add(fact.at)
            yield _report(fact, elsewhere, named[fact.at])


def _on_cuda(tape: Tape, found: Choices) -> Iterator[tuple[Fact, Fact]]:
    """What a path puts on CUDA and chooses nowhere, with a place where it puts something on another
    device.
    """
    elsewhere = found.without_cuda(tape) if found.places else None
    for fact in placed(tape) if elsewhere is not None else ():
        if elsewhere is not None and fact.detail == CUDA and not found.made_at(fact.at):
            yield fact, elsewhere


def _report(fact: Fact, elsewhere: Fact, beside: str) -> Report:
    others = " or ".join(
        word.upper() for word in elsewhere.detail.split(" ") if word not in (CUDA, "unknown")
    )
    message = f"`{fact.text}` is on CUDA whatever the device is, and the code can run on {others}"
    related = places(fact.at, *calls(fact.stack, ()), chosen_here(elsewhere))
    return Report(fact.at, message, _HELP, related, hints={"beside": beside} if beside else {})


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts it where the rest is."""
    return unsafe("Put it on the device", put_on_device(finding, source))
