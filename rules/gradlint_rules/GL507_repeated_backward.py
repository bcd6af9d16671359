"""# repeated-backward (GL507)

A graph that a backward has already freed is back-propagated again.

## What it does
Reports the second backward through a part of a graph that saved tensors, where the first one did
not retain it: two losses that share a forward and are back-propagated one after the other, one loss
twice, or a state that is carried from one iteration into the next without `detach()`.

## Why it matters
A backward frees what the graph saved, and the next one raises: "Trying to backward through the
graph a second time".

## Example
```python
import torch

torch.manual_seed(0)
body, depth, normal = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*body.parameters(), *depth.parameters(), *normal.parameters()], lr=0.1)
features = body(torch.randn(16, 4)).relu()
depth_loss = depth(features).pow(2).mean()
normal_loss = normal(features).pow(2).mean()
optimizer.zero_grad()
depth_loss.backward()
normal_loss.backward()  # expect: GL507
# RuntimeError: backward through the graph a second time
optimizer.step()
```

A recurrent state that takes its history along:

```python
import torch

torch.manual_seed(0)
cell = torch.nn.GRUCell(4, 8)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for chunk in torch.randn(3, 2, 4):
    state = cell(chunk, state)
    loss = state.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # expect: GL507
    # RuntimeError: backward through the graph a second time
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
body, depth, normal = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*body.parameters(), *depth.parameters(), *normal.parameters()], lr=0.1)
features = body(torch.randn(16, 4)).relu()
depth_loss = depth(features).pow(2).mean()
normal_loss = normal(features).pow(2).mean()
optimizer.zero_grad()
(depth_loss + normal_loss).backward()
optimizer.step()
```

```python
import torch

torch.manual_seed(0)
cell = torch.nn.GRUCell(4, 8)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for chunk in torch.randn(3, 2, 4):
    state = cell(chunk, state.detach())
    loss = state.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Backwards with `retain_graph=True` or `create_graph=True` before.
- A shared part that saved nothing, such as `add`, `view`, `cat`, `sum`: nothing was freed.
- Losses that share parameters and no activations.
- In a module with no trainer in view, a state that is no buffer: whoever calls it puts that back
  (`net.state = None`). A buffer that is kept with its graph is told where it is set. Where an
  argument alone can carry a gradient into it, it is a warning, and none where that may be a number.
  A buffer that a method other than the constructor sets to None is let go of by whoever calls that.

## Limits
`retain_graph=True` makes the carried state run, but then its graph grows with every step: see
`graph-retention` (GL508). Code out of view that is given a module (`functional.reset_net(net)`) is
taken to reset what the module keeps of earlier calls: where it is given one in each round, nothing
that is kept is reported. What arguments alone put into parts of a buffer, as they are, is taken for
a cache that fills while something is generated, where nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, Fact, Tape, Value, ancestors
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.carrying import carried_detached
from gradlint_rules.held import is_meant_as_leaf
from gradlint_rules.training import joined_backwards
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import backwards, driven
from gradlint_rules.words import (
    backward,
    maker,
    places,
    severity_in,
    when,
    where_given,
)

SEVERITY = Severity.ERROR
AT_RUN_TIME = True

_REFUSED = ("non-leaf-grad", "non-leaf-parameter", "non-leaf-attribute")
_Freed = tuple[Arrival, Value, Backward]


def check(paths: Paths) -> Iterator[Report]:
    """Every backward through what an earlier one freed."""
    freed = {id(sink): (value, first) for sink, value, first in paths.some(_repeated)}
    reported: set[Span] = set()
    for at_sink in arrivals(paths):
        again = [
            (arrival, *freed[id(arrival.sink)]) for arrival in at_sink if id(arrival.sink) in freed
        ]
        if again and again[0][0].sink.at not in reported:
            reported.add(again[0][0].sink.at)
            rivals = [arrival for arrival in at_sink if id(arrival.sink) not in freed]
            yield _report(again[0], rivals)


def _report(freed: _Freed, rivals: Sequence[Arrival]) -> Report:
    arrival, value, first = freed
    sink = arrival.sink
    condition = when(
        conditions(arrival, [rival for rival in rivals if rival.tape is not arrival.tape], sink.at)
    )
    if sink.assumed:
        condition += where_given(value)
    shared = f"through {maker(value)} on line {value.at.line}, which"
    if first.at == sink.at:
        message = (
            f"{backward(sink)} runs {shared} the same backward freed in the round "
            f"before{condition}: it raises"
        )
        advice = "Detach what is carried from one round into the next: `state = state.detach()`."
    else:
        message = (
            f"{backward(sink)} runs {shared} {backward(first)} has freed{condition}: it raises"
        )
        advice = (
            "Add the losses and run one backward, or keep the graph of the first with "
            "`retain_graph=True`."
        )
    met = [
        Related(value.at, "computed here, and part of both graphs", Role.COMPUTED),
        Related(first.at, "freed by this backward", Role.BACKWARD),
    ]
    # nobody has written what drives a part
    at = _kept(arrival.tape, sink, value) if sink.assumed else sink.at
    return Report(
        at,
        message,
        advice,
        places(at, *met),
        severity=severity_in(sink, value),
        hints=_carried(sink, first),
    )


def _repeated(tape: Tape) -> Iterator[tuple[Backward, Value, Backward]]:
    """Each backward that meets freed values: it, the latest of these, and the backward that freed
    it.

    A non-leaf in the place of a leaf is what GL515 tells, which ends the program before: an
    optimizer refuses it, and its `grad` is None.
    """
    refused = {
        id(value)
        for fact in tape.facts(*_REFUSED)
        if fact.value is not None and _is_refused(fact)
        for value in ancestors(fact.value)
    }
    written = [each for each in backwards(tape) if not each[0].assumed]
    for sink, values, freed_by in [*written, *driven(tape)]:
        again = next(
            (value for value in values if id(value) in freed_by and id(value) not in refused), None
        )
        if again is not None:
            yield sink, again, freed_by[id(again)]


def _kept(tape: Tape, sink: Backward, value: Value) -> Span:
    """Where a part has kept what the round before computed: where a buffer got it, else where it
    was computed.
    """
    now, met = dict(sink.iteration), {id(each) for each in sink.graph}
    carried = (
        fact
        for fact in tape.facts("buffer-set")
        if fact.value is not None and id(fact.value) in met
    )
    return next(
        (fact.at for fact in carried if fact.value is not None and _is_earlier(fact.value, now)),
        value.at,
    )


def _is_refused(fact: Fact) -> bool:
    if fact.what == "non-leaf-grad":
        return fact.value is not None and is_meant_as_leaf(fact.value)
    return True


def _carried(sink: Backward, first: Backward) -> dict[str, str]:
    """The names of what one round took over from an earlier one, where the same backward runs in
    both.
    """
    if sink.at != first.at:
        return {"carried": "", "again": ""}
    now = dict(sink.iteration)
    names = {
        source.name.rpartition(".")[2]
        for value in sink.graph
        for source in value.inputs
        if source.requires_grad
        and not source.is_leaf
        and _is_earlier(source, now)
        and not _is_earlier(value, now)
    }
    return {"carried": " ".join(sorted(names - {""})), "again": "yes"}


def _is_earlier(value: Value, now: dict[int, int]) -> bool:
    return (
        any(loop in now and number < now[loop] for loop, number in value.iteration)
        or not value.iteration
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Detaches what is carried from round to round, or runs one backward for both losses."""
    if finding.hints["again"]:
        return unsafe("Detach what is carried on", carried_detached(finding, source))
    return unsafe("Run one backward", joined_backwards(finding, source))
