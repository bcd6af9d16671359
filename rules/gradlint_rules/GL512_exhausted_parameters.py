"""# exhausted-parameters (GL512)

One `parameters()` generator is consumed twice: the second user gets nothing.

## What it does
Reports the second use of a generator that held parameters and has been used up.

## Why it matters
An optimizer raises "got an empty parameter list", but `clip_grad_norm_`, a loop that freezes, a sum
or a penalty silently do nothing.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
parameters = model.parameters()
optimizer = torch.optim.SGD(parameters, lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = 50 * model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)  # expect: GL512
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = 50 * model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
```

## What it does not report
- Lists and tuples of parameters, and a new call of `parameters()` for each user.
- Generators of anything but parameters.

## Limits
A generator that is used up in code out of view counts as fresh.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Tape
from gradlint_rules.structure import as_list
from gradlint_rules.uncut import safe
from gradlint_rules.words import places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Keep the parameters in a list: `list(model.parameters())`."


def check(paths: Paths) -> Iterator[Report]:
    """The first use of each generator of parameters that is empty by then."""
    for fact in paths.some(_first_uses):
        before = [Related(at, message) for at, message in fact.related]
        yield Report(fact.at, _message(fact), _HELP, places(fact.at, *before))


def _first_uses(tape: Tape) -> Iterator[Fact]:
    """The uses that find a generator empty, but for those that come after another one: a list mends
    them all.
    """
    known: set[tuple[Span | None, Span]] = set()
    for fact in tape.facts("exhausted"):
        used_up = fact.related[0][0] if fact.related else None
        held = fact.value.at if fact.value is not None else fact.at
        if (used_up, held) not in known:
            known.add((used_up, held))
            yield fact


def _message(fact: Fact) -> str:
    if fact.related and fact.related[0][0] == fact.at:  # zip(parameters, parameters)
        return (
            f"`{fact.text}` is given one generator of parameters twice: each takes what the "
            "other does not get"
        )
    line = f" on line {fact.related[0][0].line}" if fact.related else ""
    return f"the generator of parameters is used up{line}: `{fact.text}` gets none"


def fix(finding: Finding, source: FixSource) -> Fix:
    """Keeps the parameters in a list."""
    return safe("Keep the parameters in a list", as_list(finding, source))
