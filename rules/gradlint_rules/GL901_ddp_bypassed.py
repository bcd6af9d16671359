"""# ddp-bypassed (GL901)

The training forward goes around DistributedDataParallel, through `ddp.module`: the ranks do not exchange gradients.

## What it does
Reports the call of `ddp.module(…)` (or of a method or part of it) whose result is back-propagated, where the wrapper
itself was not called for that backward.

## Why it matters
It is the wrapper's forward that prepares the reduction of the gradients. Without it each rank steps on the gradients
of its own data: the replicas drift apart, without an error, and what is saved at the end is rank 0's share alone.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
loss = (model.module(x) - y).pow(2).mean()  # expect: GL901
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
loss = (model(x) - y).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
state = model.module.state_dict()
```

A loss that is a method of the model is reached by letting `forward` call it.

## What it does not report
- `ddp.module` for saving, for evaluation and generation without gradient, for moving averages.
- A forward through `ddp.module` beside one through the wrapper before the same backward.
- Gradients that the program reduces by hand.

## Limits
Wrappers that are chosen in code outside of the project are not known to be any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.rule import FixSource, Report
from gradlint.tape import Event, Fact, Module, ModuleCall, Tape
from gradlint_rules.functions import through_the_wrapper
from gradlint_rules.replicas import Pass, passes, replicas
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import visited
from gradlint_rules.words import calls, loss_of, places, to_sink

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Call the wrapper, `ddp(…)`; keep `ddp.module` for saving and evaluation."


def check(paths: Sequence[Tape]) -> Iterator[Report]:
    """The calls of a wrapped module whose gradients are not reduced."""
    told: set[Span] = set()
    for tape in paths:
        if tape.facts("gradients-reduced"):
            continue
        for replica in replicas(tape, "ddp-made"):
            for run in passes(tape, replica):
                call = _bypass(run, replica)
                if call is not None and call.at not in told:
                    told.add(call.at)
                    yield _report(run, call)


def _bypass(run: Pass, replica: Module) -> Event | None:
    """Where the backward goes around the wrapper, if the wrapper was not called for it."""
    facts = [event for event in run.since if isinstance(event, Fact) and event.module is replica]
    taken = [fact for fact in facts if fact.what == "ddp-module"]
    if any(fact.what == "ddp-forward" for fact in facts) or (not taken and run.forward is not None):
        return None
    graph = {id(value) for value in visited(run.sink)}
    inner = [event for event in run.since if isinstance(event, ModuleCall) and event.module.is_within(replica)]
    met = [event for event in inner if event.result is not None and id(event.result) in graph]
    call = next((event for event in reversed(met) if event.module is replica), met[0] if met else None)
    made = [fact for fact in facts if fact.what == "ddp-made"]
    if call is not None and made and call.order < made[0].order:
        return None  # computed before there was a wrapper
    return call and _taken_around(call, taken)


def _taken_around(call: ModuleCall, taken: Sequence[Fact]) -> Event:
    """The `ddp.module` in whose method (`ddp.module.loss(x)`) the module was called, or the call itself."""
    around = (fact for fact in reversed(taken) if fact.order < call.order and _is_within(call, fact))
    return next(around, call)


def _is_within(call: ModuleCall, fact: Fact) -> bool:
    depth = len(fact.stack)
    return depth < len(call.stack) and call.stack[:depth] == fact.stack and call.stack[depth].line == fact.at.line


def _report(run: Pass, call: Event) -> Report:
    cause = "this forward goes around the wrapper that reduces gradients"
    message = f"{cause}: each rank steps on what {loss_of(run.sink)} gives it alone"
    return Report(call.at, message, _HELP, places(call.at, *calls(call.stack, run.sink.stack), to_sink(run.sink)))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Calls the wrapper."""
    return unsafe("Call the wrapper", through_the_wrapper(finding, source))
