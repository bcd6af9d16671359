"""# collective-without-gradient (GL903)

Features go through a collective that autograd knows nothing of, on their way to the loss.

## What it does
Reports `all_gather` and its like where the result flows into a loss and this rank's own part is not
put back, and `all_reduce` or `broadcast` in place on a value that the loss then depends on.

## Why it matters
`torch.distributed` moves data and no gradients. What `all_gather` fills has no graph, not even
where it holds this rank's own features: a contrastive loss over all ranks trains each side against
a constant. An `all_reduce` in place changes the numbers and leaves the graph as it was, so that the
backward is that of another function.

## Example
```python
import torch
import torch.distributed as dist
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 4)
features = F.normalize(model(x), dim=-1)
parts = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
dist.all_gather(parts, features)  # expect: GL903
loss = F.cross_entropy(features @ torch.cat(parts).t() / 0.1, torch.arange(8))
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
Put this rank's own part back, or use the collectives of `torch.distributed.nn`, which know their
gradients:

```python
import torch
import torch.distributed as dist
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 4)
features = F.normalize(model(x), dim=-1)
parts = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
dist.all_gather(parts, features)
parts[dist.get_rank()] = features
loss = F.cross_entropy(features @ torch.cat(parts).t() / 0.1, torch.arange(8))
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- Collectives under `no_grad`, of detached values, of labels and metrics.
- `all_reduce` of the loss itself (or of what is only summed and scaled to give it), whose gradient
  stays right up to a factor.
- Collectives inside custom autograd functions, and those on gradients.

## Limits
Tensor parallelism by hand, where an `all_reduce` without gradient is right, is not told apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import PREDICTED, Cut, Fact, Kind, Value, ancestors, as_far_as_leaves
from gradlint_rules.arrivals import Arrival
from gradlint_rules.cuts import cut_short, is_cut
from gradlint_rules.encounters import encountered
from gradlint_rules.functions import own_shard_put_back, reduced_with_gradient
from gradlint_rules.numbers import origin, unchanged
from gradlint_rules.order import called_name
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import visited
from gradlint_rules.words import loss_of, operation

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_LINEAR = (Trait.ADDS, Trait.SCALES, Trait.SUMS, Trait.MEANS, Trait.JOINS)
_HELP = {
    True: "Put this rank's own part back (`parts[rank] = features`), or use "
    "`torch.distributed.nn.all_gather`.",
    False: "Use `torch.distributed.nn.functional`, or do this under `no_grad` on a detached copy.",
}


def check(paths: Paths) -> Iterator[Report]:
    """The collectives that cut or falsify a route to a loss."""
    for found in encountered(paths, _gathered):
        cause = f"{operation(found.value.op)} fills tensors without a graph{found.condition}"
        message = f"{cause}: {loss_of(found.sink)} gives no gradient to what was sent"
        yield Report(found.at, message, _HELP[True], found.related())
    for found in encountered(
        paths, lambda arrival: _reduced(arrival, arrival.tape.facts("collective"))
    ):
        change = f"this changes a value of {loss_of(found.sink)} in place{found.condition}"
        message = f"{change}, and its gradient stays that of this rank alone"
        yield Report(found.at, message, _HELP[False], found.related())


def _gathered(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    found = [
        cut
        for cut in cut_short(arrival.sink, arrival.tape)
        if cut.cut is Cut.COLLECTIVE and is_cut(cut)
    ]
    near = set(map(id, as_far_as_leaves(arrival.sink.value))) if found else set()
    for cut in found:
        if id(cut) in near and not _is_put_back(cut, arrival.sink.ancestors):
            yield cut.at, cut


def _is_put_back(cut: Value, values: Sequence[Value]) -> bool:
    """Whether what was sent is joined with what came back."""
    sent = {id(part) for source in cut.inputs for part in unchanged(source, selected=False)}
    joins = [value for value in values if _joins(value)]
    shown = [join for join in joins if any(_shows(source, cut) for source in join.inputs)]
    # and not `own.detach()`
    joined = [source for join in shown for source in join.inputs if source.requires_grad]
    return any(id(part) in sent for source in joined for part in unchanged(source, selected=False))


def _joins(value: Value) -> bool:
    """Whether it holds the numbers of several tensors, or the sums of them."""
    return canonical(value.op) in ("add", "copy", "where") or has(
        value.op, Trait.JOINS, Trait.WRITES_PART
    )


def _shows(value: Value, cut: Value) -> bool:
    """Whether `value` holds what the same collective gave: one of its outputs, or a part of one,
    joined or not.
    """
    found = origin(value)
    parts = [found, *map(origin, found.inputs)] if _joins(found) else [found]
    return any(part.cut is Cut.COLLECTIVE and part.at == cut.at for part in parts)


def _reduced(arrival: Arrival, collectives: Sequence[Fact]) -> Iterator[tuple[Span, Value]]:
    if not collectives:
        return
    graph = {id(value) for value in visited(arrival.sink)} - set(_linear(arrival.loss))
    for fact in collectives:
        value = fact.value
        if (
            value is not None
            and fact.order < arrival.sink.order
            and value.kind is Kind.OPERATION
            and (not value.assumed or _is_predicted(value, arrival))
            and id(value) in graph
        ):
            yield fact.at, value


def _is_predicted(value: Value, arrival: Arrival) -> bool:
    """Whether a loss that nothing in view calls computes it from its prediction."""
    return arrival.sink.assumed and any(PREDICTED in each.flags for each in ancestors(value))


def _linear(loss: Value) -> Iterator[int]:
    """The terms of a loss, by id: what is only summed and scaled to give it."""
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        yield id(value)
        scaled = (
            has(value.op, Trait.SCALES) and sum(source.requires_grad for source in value.inputs) > 1
        )
        is_linear = canonical(value.op) in ("neg", "part", "output") or has(value.op, *_LINEAR)
        if (is_linear and not scaled) or origin(value) is not value:
            for source in value.inputs:
                if id(source) not in seen:
                    seen.add(id(source))
                    pending.append(source)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts the own shard back, or reduces with a backward."""
    node = source.expression(finding.at)
    if isinstance(node, ast.Call) and called_name(node) == "all_reduce":
        return unsafe("Reduce with a gradient", reduced_with_gradient(finding, source))
    return unsafe("Put the own shard back", own_shard_put_back(finding, source))
