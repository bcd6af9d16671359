"""# doubly-owned-parameters (GL520)

Two optimizers step with the same gradient of one parameter.

## What it does
Reports an optimizer that steps on gradients on which another one has stepped already, without a
clearing or another backward between the two.

## Why it matters
Each of them moves the parameter by its own rate and its own averages: it takes two steps where one
was meant, and neither knows of the other's.

## Example
```python
import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
slow = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
fast = torch.optim.SGD(head.parameters(), lr=0.1)  # expect: GL520
for x in torch.randn(5, 8, 4):
    loss = head(body(x).tanh()).square().mean()
    slow.zero_grad()
    loss.backward()
    slow.step()
    fast.step()
```

## Use instead
Each parameter in one optimizer:

```python
import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
slow = torch.optim.SGD(body.parameters(), lr=0.01)
fast = torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(body(x).tanh()).square().mean()
    slow.zero_grad()
    fast.zero_grad()
    loss.backward()
    slow.step()
    fast.step()
```

## What it does not report
- Optimizers that take turns: phases, tasks of which each has its backward and its step.
- An optimizer that steps another one inside of its own step.

## Limits
Two parameters that share their memory are two.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, Fact, Optimizer, OptimizerStep, Parameter, Tape, ZeroGrad
from gradlint_rules.held import identities
from gradlint_rules.sharing import left_to_one
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import owners, places, shortly

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Leave each parameter to one optimizer."


@dataclass(frozen=True, slots=True)
class _Double:
    """Two steps on the same gradients, and whose these are."""

    first: OptimizerStep
    second: OptimizerStep
    parameters: tuple[Parameter, ...]


def check(paths: Paths) -> Iterator[Report]:
    """Every optimizer that steps on what another one has stepped on."""
    for found in paths.some(_doubles):
        yield _report(found)


def _doubles(tape: Tape) -> Iterator[_Double]:
    fresh, spent = set[int](), dict[int, OptimizerStep]()
    kinds = (Backward, ZeroGrad, OptimizerStep, "gradient-set", "gradient-beside")
    for event in tape.among(*kinds) if len(tape.optimizers()) > 1 else ():
        match event:
            case Fact():  # another gradient is put in by hand
                fresh, spent = set[int](), {}
            case Backward():
                fresh |= set(map(id, identities(event.leaves)))
                spent = {key: step for key, step in spent.items() if key not in fresh}
            case ZeroGrad():
                cleared = (
                    set(map(id, identities(event.parameters)))
                    if event.complete
                    else {*fresh, *spent}
                )
                fresh -= cleared
                spent = {key: step for key, step in spent.items() if key not in cleared}
            case OptimizerStep() if _is_known(event.optimizer):
                yield from _stepped_twice(event, fresh, spent)


def _stepped_twice(
    event: OptimizerStep, fresh: set[int], spent: dict[int, OptimizerStep]
) -> Iterator[_Double]:
    """Takes the fresh gradients of what an optimizer holds; finds those that another one has taken
    before.
    """
    found: dict[int, tuple[OptimizerStep, list[Parameter]]] = {}
    for one in identities(
        value for value in event.optimizer.held_at(event.order) if value.requires_grad
    ):
        if id(one) in fresh:
            fresh.discard(id(one))
            spent[id(one)] = event
        first = spent.get(id(one), event)
        if first.optimizer is not event.optimizer:
            found.setdefault(id(first), (first, []))[1].append(one)
    yield from (_Double(first, event, tuple(parameters)) for first, parameters in found.values())


def _is_known(optimizer: Optimizer) -> bool:
    return (
        optimizer.complete
        and not optimizer.escapes
        and not any(value.assumed for value in optimizer.parameters)
    )


def _report(found: _Double) -> Report:
    known = (*found.first.optimizer.parameters, *found.second.optimizer.parameters)
    shown = shortly(owners(found.parameters, known))
    first, second = (
        step.optimizer.name or step.optimizer.cls for step in (found.first, found.second)
    )
    message = (
        f"`{second}` steps on the gradients of {shown}, on which `{first}` has stepped already"
    )
    at = found.second.optimizer.at
    other = Related(found.first.optimizer.at, f"`{first}` takes the same parameters here")
    return Report(
        at, message, _HELP, places(at, other, Related(found.second.at, "the second step"))
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Leaves to one optimizer what both hold."""
    return unsafe("Leave them to one optimizer", left_to_one(finding, source))
