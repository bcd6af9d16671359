"""# deprecated-cuda-amp (GL402)

Mixed precision is taken from `torch.cuda.amp` or `torch.cpu.amp`.

## What it does
Reports each use of `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` from `torch.cuda.amp`,
and of `autocast` and `GradScaler` from `torch.cpu.amp`.

## Why it matters
Since torch 2.4 each of them warns that it is deprecated. The forms in `torch.amp` (`autocast` since
1.12, and as `torch.autocast` since 1.10; `GradScaler` since 2.3; `custom_fwd` and `custom_bwd`
since 2.4) do the same, and take the device as an argument, so that the code runs on others than
CUDA. There is no fix where the project supports an older torch, by its requirements
(`pyproject.toml`, `setup.cfg`, `setup.py`, `requirements*.txt`) or by its oldest Python.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)  # expect: GL402
with torch.cuda.amp.autocast(enabled=False):  # expect: GL402
    loss = model(torch.randn(8, 4)).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=False)
with torch.amp.autocast("cuda", enabled=False):
    loss = model(torch.randn(8, 4)).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## What it does not report
- A fallback for older versions: in `except ImportError` or `except AttributeError`, or where the
  other side of a branch uses the new name.
- The names in annotations and in `isinstance`, which do not warn.

## Limits
Other uses of `torch.cuda.amp` in code that is never reached are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint_rules.devices import AMP, Amp
from gradlint_rules.portable import up_to_date
from gradlint_rules.uncut import safe
from gradlint_rules.words import calls, places

SEVERITY = Severity.WARNING
_OLD = ("torch.cuda.amp.", "torch.cpu.amp.")


def check(paths: Paths) -> Iterator[Report]:
    """Every use of the old names that is not the other side of a branch that uses the new one."""
    reported: set[Span] = set()
    for fact in paths.some(lambda tape: tape.facts(AMP)):
        amp = Amp.read(fact)
        if not amp.name.startswith(_OLD) or amp.is_beside_the_new or fact.at in reported:
            continue
        reported.add(fact.at)
        yield Report(fact.at, *_words(amp), places(fact.at, *calls(fact.stack, ())))


def _words(amp: Amp) -> tuple[str, str]:
    home, _, name = amp.name.rpartition(".")
    device = home.split(".")[1]
    given = f'…, device_type="{device}"' if name.startswith("custom") else f'"{device}", …'
    new = f"torch.amp.{name}({given})"
    return (
        f"`{amp.name}` is deprecated since torch 2.4",
        f"Write `{new}`, or give it the device that the code runs on.",
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes it from `torch.amp`."""
    return safe("Use `torch.amp`", up_to_date(finding, source))
