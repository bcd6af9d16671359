"""# accumulate-not-entered (GL521)

An `Accelerator` is told to accumulate gradients, and the loop never enters `accumulate`.

## What it does
Reports `Accelerator(gradient_accumulation_steps=N)` with N above 1 where a loop back-propagates by
it, the optimizer steps for every backward, and no path enters `accelerator.accumulate(model)` for a
round: not at all, or around the loop.

## Why it matters
`accelerator.backward` divides the loss by N all the same, and outside of `accumulate` the prepared
optimizer steps every time: each update is made of one batch, with a gradient that is N times too
small. Around the whole loop, `accumulate` counts one round.

## Example
```python
import torch
from accelerate import Accelerator

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)  # expect: GL521
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for x in torch.randn(8, 16, 4):
    loss = model(x).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead
```python
import torch
from accelerate import Accelerator

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for x in torch.randn(8, 16, 4):
    with accelerator.accumulate(model):
        loss = model(x).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
```

## What it does not report
- A window that the program counts itself, `if (i + 1) % 4 == 0: optimizer.step()`: that is divided
  as it should be.
- A number that is 1, or not known: an option without a default.

## Limits
A `GradientAccumulationPlugin` is not looked into.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Fact, May, OptimizerStep, Tape
from gradlint_rules.accounts import accounts_on
from gradlint_rules.order import called_name, calls_of, loop_around, related_statement
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_MADE, _BACKWARD, _ENTERED = (
    "accelerator-divides",
    "accelerator-backward",
    "accelerator-accumulates",
)
_BACKPROPAGATED = "back-propagated here"
_HELP = (
    "Put the round into `with accelerator.accumulate(model):`, or leave out "
    "`gradient_accumulation_steps`."
)


def check(paths: Paths) -> Iterator[Report]:
    """Every accelerator that divides, and whose loop accumulates on no path."""
    reported: set[Span] = set()
    for made, backward in paths.some(_divided):
        accumulates = functools.partial(_accumulates, at=made.at)
        if made.at not in reported and paths.never(accumulates, May.SYNC):
            reported.add(made.at)
            yield _report(made, backward)


def _divided(tape: Tape) -> Iterator[tuple[Fact, Fact]]:
    """The accelerators of a path, each with a backward by it in a loop, that no window of the
    program's own follows.
    """
    made = tape.facts(_MADE)
    steps_each_time = bool(made) and _steps_each_time(tape)
    for fact in made:
        own = [each for each in tape.facts(_BACKWARD) if _is_of(each, fact.at)]
        if steps_each_time or _waits_for_ever(tape, fact, own):
            yield from ((fact, backward) for backward in own if backward.iteration)


def _steps_each_time(tape: Tape) -> bool:
    """Whether each step of a path uses the gradients of one backward."""
    updates = [update for account in accounts_on(tape) for update in account.updates]
    return bool(updates) and all(len(update.fresh) <= 1 for update in updates)


def _waits_for_ever(tape: Tape, made: Fact, backwards: Sequence[Fact]) -> bool:
    """Whether a run had enough micro-batches for a step, and none came: `accumulate` was entered
    once, around the loop, and takes all of them for the first of a window.
    """
    is_run = tape.traced and tape.complete and not tape.of(OptimizerStep)
    return is_run and len(backwards) > int(made.detail)


def _accumulates(tape: Tape, at: Span) -> bool:
    """Whether a round of a path with a backward by this accelerator is one of `accumulate`."""
    rounds = {fact.iteration for fact in tape.facts(_ENTERED) if _is_of(fact, at)}
    return any(fact.iteration in rounds for fact in tape.facts(_BACKWARD) if _is_of(fact, at))


def _is_of(fact: Fact, at: Span) -> bool:
    return any(place == at for place, _ in fact.related)


def _report(made: Fact, backward: Fact) -> Report:
    message = (
        f"`accelerator.backward` divides the loss by {made.detail}, and no round enters "
        "`accumulate`: no update is "
        f"that of {made.detail} batches"
    )
    related = places(made.at, Related(backward.at, _BACKPROPAGATED, Role.BACKWARD))
    return Report(made.at, message, _HELP, related, hints={"models": backward.detail})


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts what a round does under `accumulate`, which is taken away where it stands around the
    loop.
    """
    models = finding.hints["models"]
    if not models:
        raise NoFixError("no prepared model is in view where the loss is back-propagated")
    statement = related_statement(finding, Role.BACKWARD, source)
    backward = next(calls_of(statement, "backward"), None)
    if backward is None or not isinstance(backward.func, ast.Attribute):
        raise NoFixError("no call of `backward`")
    loop = loop_around(statement, source)
    for outer in source.around(loop):
        if isinstance(outer, ast.With):
            for item in outer.items:
                if _accumulates_over(item.context_expr):
                    moved = source.unwrap(outer, item.context_expr, kept=loop.body)
                    return unsafe("Accumulate round by round", moved)
    header = f"with {source.text(backward.func.value)}.accumulate({models}):"
    return unsafe("Accumulate over the rounds", source.wrap(loop.body, header))


def _accumulates_over(node: ast.expr) -> bool:
    """Whether it is a call of `accumulate`."""
    return isinstance(node, ast.Call) and called_name(node) == "accumulate"
