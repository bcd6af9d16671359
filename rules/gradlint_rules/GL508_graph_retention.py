"""# graph-retention (GL508)

A value with gradient is kept beyond its iteration, and its graph with it: memory grows with every
step.

## What it does
Reports the accumulation, `total += loss`, `losses.append(loss)`, a replay buffer of outputs, a
state carried along with `retain_graph=True`, where the kept value still has its graph; in
Lightning's `training_step` and a Trainer's `compute_loss`, what their objects keep from one batch
to the next; in a module, running statistics in a buffer that are not detached. A state that is
carried along is one finding, where the loop gets it; what is computed anew from it in each round is
none.

## Why it matters
A tensor keeps the graph it came from, and the graph keeps activations and outputs. A running total
of losses holds every graph of the epoch. Memory grows slowly, and the crash comes late and
elsewhere.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for x, y in zip(torch.randn(5, 2, 4), torch.randn(5, 2, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # expect: GL508
assert total.grad_fn is not None
```

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for x, y in zip(torch.randn(5, 2, 4), torch.randn(5, 2, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)  # expect: GL508
assert all(loss.grad_fn is not None for loss in losses)
```

## Use instead
`loss.item()` for a number, `loss.detach()` where waiting for the device in every step costs too
much:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total, losses = 0.0, []
for x, y in zip(torch.randn(5, 2, 4), torch.randn(5, 2, 1)):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    losses.append(loss.detach())
assert all(loss.grad_fn is None for loss in losses)
```

## What it does not report
- What a later backward needs: log-probabilities of an episode, the terms of a loss that is summed
  in a loop and back-propagated after it.
- What is detached, or made under `no_grad`.
- A sum of losses that were computed before the loop, and what is written once:
  `if norm < 0: norm[0] = scores.mean()`.
- What is kept of the backwards of one step, and given up with it: a sum over a few scales of one
  image.
- In a module with no trainer in view, all that is no buffer of it: whoever calls it puts that back.
- Lists that end with the iteration. A deque with a bound below 1000, `deque(maxlen=20)`, is a note.

## Limits
Only in what trains: where no backward is in view, keeping outputs with their graphs can be what is
wanted. The exception is a buffer of a module that gets the graph of each batch: nobody takes that
back. Where it takes that graph of an argument alone, the message says so: the argument of a first
layer has no gradient. What arguments alone put into parts of a buffer, as they are, is taken for a
cache that fills while something is generated, where nothing is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Iteration, Kept, Kind, May, OptimizerStep, Tape, Value
from gradlint_rules.arrivals import telling_apart
from gradlint_rules.cached import of_tape
from gradlint_rules.devices import is_below
from gradlint_rules.keeping import kept_detached
from gradlint_rules.uncut import safe
from gradlint_rules.visited import OF_A_BUFFER, Freed, backwards, driven, surely_visited
from gradlint_rules.words import calls, places, quoted, when, where_given

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_Keeping = tuple[Span, str]  # where something is kept, and how
_HOW = {
    "append": "puts {} into a list",
    "sum": "adds to {}",
    "state": "carries {} into the next iteration",
}
_HELP = "Keep `.item()` or `.detach()` of it."
_OF_BUFFER = "Detach what is written into it, or write it under `torch.no_grad()`."
_BETWEEN = "Detach it behind the backward, before the next iteration begins."


def check(paths: Paths) -> Iterator[Report]:
    """Everything kept with its graph that no later backward needs."""
    found: dict[Span, list[tuple[Tape, Kept]]] = {}
    is_part = any(sink.assumed for sink in paths.some(Tape.backwards))
    for tape, event in paths.some(_of_parts if is_part else _retained):
        found.setdefault(event.at, []).append((tape, event))
    for events in found.values():
        sound = (each for each in events if _is_never_needed((each[1].at, each[1].how), paths))
        if first := next(sound, None):
            tape, event = first
            condition = _condition(event, tape, paths) if is_part else ""
            yield _report(event, tape, {other.value.title for _, other in events}, condition)


def _condition(event: Kept, tape: Tape, paths: Paths) -> str:
    """What has to hold of a part for it to keep something, in words."""

    def keeps(other: Tape) -> bool:
        return any(each.at == event.at for each in other.of(Kept))

    return when(telling_apart(tape, paths, keeps, event.at))


def _is_never_needed(keeping: _Keeping, paths: Paths) -> bool:
    """Whether no later backward needs what is kept there on any path, whatever was not run."""

    def kept(tape: Tape) -> range:
        begins = (
            _begun(event, tape) for event in tape.of(Kept) if (event.at, event.how) == keeping
        )
        return range(min(begins, default=0), sys.maxsize)

    return bool(paths.never(lambda tape: keeping in _needed_on(tape), May.BACKWARD, between=kept))


def _begun(event: Kept, tape: Tape) -> int:
    """When the loop began that keeps something."""
    loop = event.iteration[-1][0] if event.iteration else None
    return next((each.order for each in tape.of(Iteration) if each.loop == loop and each.begins), 0)


@of_tape
def _needed_on(tape: Tape) -> set[_Keeping]:
    return {(event.at, event.how) for event in tape.of(Kept) if _is_needed(event, tape)}


def _retained(tape: Tape) -> Iterator[tuple[Tape, Kept]]:
    """What is kept on a path with a graph that is more than assumed."""
    kept = tape.of(Kept)
    needed = _needed_on(tape)
    vague = {id(event) for event in _vague(kept)}
    sinks = tape.backwards() if kept else ()
    graphs = {
        id(value) for sink in sinks for value in surely_visited(sink, tape) if not value.is_leaf
    }
    for event in kept:
        if (event.at, event.how) in needed or id(event) in vague or _is_written_once(event, tape):
            continue
        if _is_part_of_a_step(event, tape):
            continue
        if event.how in ("sum", "state") and _is_refused(event, tape):
            continue
        if event.value.requires_grad and _is_certain(event, graphs):
            yield tape, event


def _of_parts(tape: Tape) -> Iterator[tuple[Tape, Kept]]:
    """The buffers of a part that hold the graph of more than one batch, where no backward meets
    what an earlier one has freed.
    """
    for event in tape.of(Kept):
        if event.how == OF_A_BUFFER and not _is_freed(event.value, driven(tape)):
            yield tape, event


def _report(event: Kept, tape: Tape, kept: Iterable[str], condition: str) -> Report:
    is_used = _is_trained(event, tape)
    is_trained = event.how in ("sum", "state") and is_used
    found = {"trained": is_trained, "used": is_used}
    is_so = {name: "yes" for name, holds in found.items() if holds}
    hints = {"kept": "\n".join(sorted(kept)), **is_so}
    severity = Severity.NOTE if event.how == "window" else None
    where = places(event.at, *calls(event.stack, ()))
    help_ = _OF_BUFFER if event.how == OF_A_BUFFER else _BETWEEN if is_trained else _HELP
    return Report(
        event.at, _message(event, condition), help_, where, severity=severity, hints=hints
    )


def _is_trained(event: Kept, tape: Tape) -> bool:
    """Whether a loss of the round is computed from it, too: without its graph there, that would
    lose its gradient.
    """
    return any(value is event.value for sink in tape.backwards() for value in sink.graph)


def _message(event: Kept, condition: str) -> str:
    if event.how == "window":
        return (
            f"this puts {quoted(event.value)} into a deque together with its graph: so many "
            "graphs stay in memory"
        )
    if event.how == OF_A_BUFFER:
        return (
            f"the buffer `{event.text}` keeps the graph of each batch{where_given(event.value)}"
            f"{condition}: memory grows with every call"
        )
    deed = _HOW.get(event.how, "keeps {}").format(quoted(event.value))
    return f"this {deed} together with its graph: memory grows with every iteration"


def _is_written_once(event: Kept, tape: Tape) -> bool:
    """Whether it is written where the memory that it is written into was asked first:
    `if total < 0: total = …`.
    """
    asked = (decision for decision in tape.decisions if is_below(event, decision))
    storage = event.value.storage
    return storage is not None and any(
        value.storage is storage for decision in asked for value in decision.about
    )


def _is_part_of_a_step(event: Kept, tape: Tape) -> bool:
    """Whether each step comes after all rounds of the loop, for the next of which it starts anew:
    they are but few.
    """
    loops = [loop for loop, _ in event.iteration]
    steps = [{loop for loop, _ in step.iteration} for step in tape.of(OptimizerStep)]
    return (
        bool(steps)
        and bool(loops)
        and not any(loops[-1] in around for around in steps)
        and set(loops[:-1]) in steps
    )


def _vague(events: Sequence[Kept]) -> Iterator[Kept]:
    """What is said to be kept where it was made, although the place that keeps it is known as
    well.
    """
    placed = {id(event.value) for event in events if event.at != event.value.at}
    return (event for event in events if event.at == event.value.at and id(event.value) in placed)


def _is_needed(event: Kept, tape: Tape) -> bool:
    """Whether a backward of a later round, or after the loop, runs through what was kept, and is
    done with it then.
    """
    around = {loop for loop, _ in event.iteration[-1:]}
    later = (
        sink
        for sink in tape.backwards()
        if sink.order > event.order
        and not (sink.retain_graph and around <= {loop for loop, _ in sink.iteration})
    )
    elsewhere = (
        sink for sink in later if sink.iteration[: len(event.iteration)] != event.iteration
    )
    return any(value is event.value for sink in elsewhere for value in sink.graph)


def _is_refused(event: Kept, tape: Tape) -> bool:
    """Whether the backward through what is carried along meets what an earlier one has freed: it
    raises (GL507).
    """
    return _is_freed(event.value, backwards(tape))


def _is_freed(kept: Value, sinks: Sequence[Freed]) -> bool:
    """Whether a backward that runs through what is kept meets what an earlier one has freed."""
    return any(
        any(value is kept for value in sink.graph)
        and any(id(value) in freed_by for value in values)
        for sink, values, freed_by in sinks
    )


def _is_certain(event: Kept, graphs: set[int]) -> bool:
    """Whether the gradient is more than assumed: a backward runs through the same operations, or it
    comes from known parameters and is seen to be put into a list.

    That one part of a result carries gradient (the loss) says nothing of another (how many samples
    there were), nor of what code out of view makes of it (an accuracy).
    """
    is_placed = event.how in ("append", "window") and event.at != event.value.at
    pending, seen = [event.value], {id(event.value)}
    for source in pending:
        if id(source) in graphs or (is_placed and _is_trainable(source)):
            return True
        for below in source.inputs if source.op not in ("part", "call") else ():
            if below.requires_grad and id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return False


def _is_trainable(value: Value) -> bool:
    return value.kind is Kind.PARAMETER and value.requires_grad and not value.assumed


def fix(finding: Finding, source: FixSource) -> Fix:
    """Keeps the value without its graph; where a loss of the round needs that, it is to be dropped
    between rounds.
    """
    if "trained" in finding.hints:
        raise NoFixError("the loss of this round is computed from it")
    return safe("Keep it without its graph", kept_detached(finding, source))
