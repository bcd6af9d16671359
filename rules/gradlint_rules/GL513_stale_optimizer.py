"""# stale-optimizer (GL513)

Parameters are replaced or added after the optimizer was built from the old ones.

## What it does
Reports the statement that puts a new parameter into a model whose parameters an optimizer took before, where a loss
then
trains the new one and no optimizer holds it.

## Why it matters
The optimizer goes on updating tensors that the model no longer uses. The new layer, adapter or head gets gradients, and
stays as it was initialised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[2] = torch.nn.Linear(8, 2)  # expect: GL513
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
model[2] = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Or hand the new parameters over: `optimizer.add_param_group({"params": new.parameters()})`.

## What it does not report
- Parameters that any optimizer holds in the end, or that get no gradient.
- `model.cuda()` and `model.to(device)`, which keep the parameters.
- Parts of another model.

## Limits
Layers that an unknown function adds are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Related, Severity, Span
from gradlint.rule import Report
from gradlint.tape import Fact, Module, Optimizer, OptimizerStep, Parameter, Tape, leaves
from gradlint_rules.words import calls, listed, places

SEVERITY = Severity.ERROR
_HELP = "Change the model first, then build the optimizer; or hand the new parameters over with `add_param_group`."


def check(paths: Sequence[Tape]) -> Iterator[Report]:
    """Every late part of a model that is trained by a loss and held by no optimizer, on any path."""
    found: dict[Span, tuple[Fact, Optimizer, list[Parameter]]] = {}
    kept: set[tuple[Span, str]] = set()
    for tape in paths:
        optimizers = _optimizers(tape)
        if not optimizers or not all(optimizer.complete for optimizer in optimizers):
            continue
        trained = {id(leaf.parameter) for sink in tape.backwards() for leaf in leaves(sink.value) if leaf.parameter}
        for fact, parameter in _late(tape):
            holder = _holder_of_rest(parameter, optimizers)
            if any(optimizer.holds(parameter) for optimizer in optimizers):
                kept.add((fact.at, parameter.path))
            elif id(parameter) in trained and holder is not None:
                found.setdefault(fact.at, (fact, holder, []))[2].append(parameter)
    for at in sorted(found):
        fact, optimizer, parameters = found[at]
        lost = [parameter for parameter in parameters if (at, parameter.path) not in kept]
        if lost:
            yield _report(fact, optimizer, lost)


def _optimizers(tape: Tape) -> list[Optimizer]:
    found = {id(event.optimizer): event.optimizer for event in tape.events if isinstance(event, OptimizerStep)}
    return list(found.values())


def _late(tape: Tape) -> Iterator[tuple[Fact, Parameter]]:
    """The last place at which each parameter was put into a model after an optimizer was made."""
    last: dict[int, tuple[Fact, Parameter]] = {}
    for event in tape.events:
        if isinstance(event, Fact) and event.what == "attached" and event.value is not None and event.value.parameter:
            last[id(event.value.parameter)] = (event, event.value.parameter)
    yield from last.values()


def _holder_of_rest(parameter: Parameter, optimizers: Sequence[Optimizer]) -> Optimizer | None:
    """The optimizer that holds other parameters of the same model."""
    root = _root(parameter.module)
    for optimizer in optimizers:
        for held in optimizer.parameters:
            if held.parameter is not None and root is not None and _root(held.parameter.module) is root:
                return optimizer
    return None


def _root(module: Module | None) -> Module | None:
    while module is not None and module.parent is not None:
        module = module.parent
    return module


def _report(fact: Fact, optimizer: Optimizer, parameters: Sequence[Parameter]) -> Report:
    names = list(dict.fromkeys(f"`{parameter.path}`" for parameter in parameters))
    name = f"`{optimizer.name or optimizer.cls}`"
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    message = f"{listed(names[:3])} {are} put in after {name} took the parameters: no optimizer trains {them}"
    made = Related(optimizer.at, f"{name} takes the parameters here")
    return Report(fact.at, message, _HELP, places(fact.at, *calls(fact.stack, ()), made))
