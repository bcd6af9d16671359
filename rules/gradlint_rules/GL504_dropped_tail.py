"""# dropped-tail (GL504)

The step runs on every N-th micro-batch, and nothing steps for the remainder.

## What it does
Runs the loop over a number of batches that N does not divide, and looks what becomes of the
gradients that are left at its end. Reports the condition of the step.

## Why it matters
What is left is either cleared, so that these batches never train the model, or it leaks into the
first update of the next epoch, which is then made of more than N micro-batches.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
for epoch in range(2):
    for i, x in enumerate(torch.randn(10, 8, 4)):
        loss = model(x).square().mean() / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:  # expect: GL504
            optimizer.step()
            optimizer.zero_grad()
```

So it is where the losses are gathered:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for x in torch.randn(10, 8, 4):
    losses.append(model(x).square().mean())
    if len(losses) == 4:  # expect: GL504
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
        losses.clear()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
for epoch in range(2):
    batches = torch.randn(10, 8, 4)
    for i, x in enumerate(batches):
        loss = model(x).square().mean() / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
```

## What it does not report
- A remainder that cannot exist: a number of batches that is cut to a multiple of N, a known length
  that N divides (of a tensor, or of a `DataLoader` whose dataset, batch size and `drop_last` are
  written down), or one that the program rules out itself (`assert len(loader) % n == 0`).
- A step behind the loop that uses what is left.
- Loops without an end, and loops that are left by `break`.
- Losses of a sequence whose state is carried on: what is left is shorter than a window.

## Limits
Dividing the shorter last window by N is not reported: it is what Lightning and Accelerate do, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from gradlint.finding import NOT_SHOWN, Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, End, May, Tape
from gradlint_rules.accounts import Key, key
from gradlint_rules.cached import of_tape
from gradlint_rules.gathered import Lost, flushed_on, lost_on
from gradlint_rules.remainders import with_the_rest
from gradlint_rules.uncut import unsafe
from gradlint_rules.windows import (
    Accumulation,
    Leftover,
    accumulations_on,
    continues,
    is_counted,
    leftover,
)
from gradlint_rules.words import places, to_sink

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Step for the last batch, too: `if (i + 1) % n == 0 or i + 1 == len(loader):`."


def check(paths: Paths) -> Iterator[Report]:
    """Every condition of a step behind which gradients are left over, on every path that comes to
    it.
    """
    found: dict[Span, Report] = {}
    for left in paths.some(_left_over):
        found.setdefault(left.accumulation.gate.at, _report(left))
    yield from (found[at] for at in sorted(found) if _is_never_flushed(at, paths))
    yield from _gathered(paths, set(found))


def _gathered(paths: Paths, reported: AbstractSet[Span]) -> Iterator[Report]:
    """Every condition behind which losses are left that are gathered for one backward."""
    found: dict[Key, Lost] = {}
    for lost in paths.some(lambda tape: () if _comes_out_even(tape) else lost_on(tape)):
        found.setdefault(key(lost.gathered.gate), lost)
    for place in sorted(found):
        if place[0] not in reported and _is_never_used(place, paths):
            yield _report_gathered(found[place])


def _is_never_used(gate: Key, paths: Paths) -> bool:
    """Whether no path back-propagates the losses that are left, whatever was not run."""
    return bool(paths.never(lambda tape: gate in flushed_on(tape), May.BACKWARD))


def _report_gathered(lost: Lost) -> Report:
    gate, sink = lost.gathered.gate, lost.gathered.sinks[-1]
    fails = "does not hold" if gate.detail == "true" else "holds"
    message = (
        f"the losses of the last rounds are not back-propagated when `{gate.text}` {fails} at the "
        "end of the loop: they are lost"
    )
    help_ = "Back-propagate what is left behind the loop, too."
    return Report(gate.at, message, help_, places(gate.at, to_sink(sink)), hints={NOT_SHOWN: "yes"})


def _left_over(tape: Tape) -> Iterator[Leftover]:
    left = (leftover(accumulation) for accumulation in _uneven(tape))
    return (each for each in left if each is not None)


def _is_never_flushed(gate: Span, paths: Paths) -> bool:
    """Whether no path uses what is left over at the end of a loop, whatever was not run."""
    return bool(paths.never(lambda tape: gate in _flushed_on(tape), May.STEP))


@of_tape
def _flushed_on(tape: Tape) -> set[Span]:
    """The conditions of steps behind which nothing is left over: it is used behind the loop, or in
    the next one.
    """
    flushed = (
        each
        for each in _uneven(tape)
        if continues(each) or (leftover(each) is None and _was_run_out(each))
    )
    return {accumulation.gate.at for accumulation in flushed}


def _uneven(tape: Tape) -> Iterator[Accumulation]:
    """The accumulations whose last window can be left open."""
    found = accumulations_on(tape) if not _comes_out_even(tape) else ()
    return (each for each in found if is_counted(each) and max(each.sizes) > 1)


def _comes_out_even(tape: Tape) -> bool:
    """Whether the program makes sure that there is no remainder: it asserts so, or goes another
    way.
    """
    asserted = any(fact.detail == "even" for fact in tape.facts("asserted"))
    return asserted or any(decision.even for decision in tape.decisions)


def _was_run_out(accumulation: Accumulation) -> bool:
    """Whether gradients were left over at the end of the loop, and a step behind it used them, or a
    last one in it.
    """
    return accumulation.sizes[-1] < max(accumulation.sizes)


def _report(left: Leftover) -> Report:
    gate = left.accumulation.gate
    sink = left.sinks[0]
    if isinstance(left.then, Backward):
        fate = "they leak into the first update of the next epoch"
    elif isinstance(left.then, End):
        fate = "they are lost"
    else:
        fate = "they are cleared unused"
    fails = "does not hold" if gate.detail == "true" else "holds"
    message = (
        f"no step follows the last micro-batches when `{gate.text}` {fails} at the end of the "
        f"loop: {fate}"
    )
    then = (
        [Related(left.then.at, "cleared here", Role.CLEARING)]
        if not isinstance(left.then, Backward | End)
        else []
    )
    hints = {"early": "yes"} if left.accumulation.is_early else {}
    return Report(gate.at, message, _HELP, places(gate.at, *then, to_sink(sink)), hints=hints)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Lets the step through at the end of the data, too."""
    return unsafe("Step for the rest, too", with_the_rest(finding, source))
