"""# ddp-bypassed (GL901)

The training forward goes around DistributedDataParallel, through `ddp.module`: the ranks do not
exchange gradients.

## What it does
Reports the call of `ddp.module(…)` (or of a method or part of it) whose result is back-propagated
for a step of the optimizer, where the wrapper itself was not called for that backward.

## Why it matters
It is the wrapper's forward that prepares the reduction of the gradients. Without it each rank steps
on the gradients of its own data: the replicas drift apart, without an error, and what is saved at
the end is rank 0's share alone.

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
- Gradients or parameters that the program exchanges by hand, or in a hook, or may exchange in code
  out of view that is given the model between the backward and the step;
  `ddp.reducer.prepare_for_backward(…)`, which does what a forward of the wrapper does.
- Gradients that no optimizer steps on: a saliency map, a probe that is cleared again.

## Limits
Wrappers that are chosen in code outside of the project are not known to be any. Parameters that the
program updates without an optimizer are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Module, ModuleCall, Tape, Value
from gradlint_rules.functions import through_the_wrapper
from gradlint_rules.replicas import Pass, Update, passes, replicas, updates
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import visited
from gradlint_rules.words import calls, loss_of, places, to_sink

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Call the wrapper, `ddp(…)`; keep `ddp.module` for saving and evaluation."


def check(paths: Paths) -> Iterator[Report]:
    """The calls of a wrapped module whose gradients are not reduced before a step."""
    for at, call, update in paths.some(_bypassing):
        stack = call.stack[: call.stack.index(at)] if at in call.stack else call.stack
        yield _report(at, stack, update)


def _bypassing(tape: Tape) -> Iterator[tuple[Span, ModuleCall, Update]]:
    """The calls around the wrapper before a step, each with where a reader finds it."""
    for replica in replicas(tape, "ddp-made"):
        for update in updates(tape, replica) if not _is_by_hand(tape, replica) else ():
            run = update.passes[-1]
            call = None if update.is_reduced else _bypass(run, replica)
            if call is not None:
                yield _entrance(call, run, replica), call, update


def _is_by_hand(tape: Tape, replica: Module) -> bool:
    """Whether the program exchanges gradients, or the parameters that were stepped on, or hooks the
    gradients.
    """
    sink = next((run.sink for run in passes(tape, replica)), None)
    if sink is None or any(fact.order > sink.order for fact in tape.facts("gradients-reduced")):
        return True
    own = {id(leaf.parameter) for leaf in sink.leaves if _is_within(leaf, replica)}
    shared = [
        fact for fact in tape.facts("parameters-reduced") if fact.order > sink.order and fact.value
    ]
    if own <= {id(fact.value.parameter) for fact in shared if fact.value is not None}:
        return True
    return any(
        fact.value is not None and _is_within(fact.value, replica)
        for fact in tape.facts("parameter-hooked")
    )


def _is_within(value: Value, replica: Module) -> bool:
    owner = value.parameter.module if value.parameter is not None else None
    return owner is not None and owner.is_within(replica)


def _bypass(run: Pass, replica: Module) -> ModuleCall | None:
    """Where the backward goes around the wrapper, if the wrapper was not called for it."""
    facts = [event for event in run.since if isinstance(event, Fact) and event.module is replica]
    if _is_called(run, facts):
        return None
    graph = {id(value) for value in visited(run.sink)}
    inner = [
        event
        for event in run.since
        if isinstance(event, ModuleCall) and event.module.is_within(replica)
    ]
    met = [event for event in inner if event.result is not None and id(event.result) in graph]
    first = met[0] if met else None
    call = next((event for event in reversed(met) if event.module is replica), first)
    made = [fact for fact in facts if fact.what == "ddp-made"]
    if call is not None and made and call.order < made[0].order:
        return None  # computed before there was a wrapper
    return call


def _is_called(run: Pass, facts: Sequence[Fact]) -> bool:
    """Whether the forward of a pass goes through the wrapper, and not around it by `.module`."""
    kinds = {fact.what for fact in facts}
    if kinds & {"ddp-forward", "ddp-prepared"}:
        return True
    # the wrapper's `forward` is what makes its hooks reduce in the next backward
    return "ddp-module" not in kinds and run.forward is not None


def _entrance(call: ModuleCall, run: Pass, replica: Module) -> Span:
    """Where the program goes into the wrapped module: the call of it, or of its method that leads
    to the call.
    """
    methods = ((at, module) for at, module in call.within if at not in run.sink.stack)
    return next((at for at, module in methods if module.is_within(replica)), call.at)


def _report(at: Span, stack: Sequence[Span], update: Update) -> Report:
    sink = update.passes[-1].sink
    cause = "this forward goes around the wrapper that reduces gradients"
    message = f"{cause}: each rank steps on what {loss_of(sink)} gives it alone"
    step = Related(update.step.at, "the step", Role.STEP)
    return Report(at, message, _HELP, places(at, *calls(stack, sink.stack), to_sink(sink), step))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Calls the wrapper."""
    return unsafe("Call the wrapper", through_the_wrapper(finding, source))
