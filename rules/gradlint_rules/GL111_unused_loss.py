"""# unused-loss (GL111)

A loss is computed with its graph, at most logged, and never back-propagated.

## What it does
Reports a loss of a training step that no backward runs through, although an optimizer steps on what
it would train: where it alone reaches some of these parameters, or is another loss than those that
are back-propagated and not a measure of the same prediction, or is overwritten before the backward.
What a framework back-propagates (the result of `training_step`) counts as well.

## Why it matters
The term shows in the log and falls or rises by chance. What only it would train stays as it was
initialised.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
body, price, kind = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*body.parameters(), *price.parameters(), *kind.parameters()], lr=0.1)
before = kind.weight.detach().clone()
for x, y, label in zip(torch.randn(3, 8, 4), torch.randn(3, 8, 1), torch.randint(0, 3, (3, 8))):
    features = body(x).relu()
    price_loss = F.mse_loss(price(features), y)
    kind_loss = F.cross_entropy(kind(features), label)  # expect: GL111
    optimizer.zero_grad()
    price_loss.backward()
    optimizer.step()
    print(price_loss.item(), kind_loss.item())
assert torch.equal(kind.weight, before)
```

## Use instead
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
body, price, kind = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*body.parameters(), *price.parameters(), *kind.parameters()], lr=0.1)
before = kind.weight.detach().clone()
for x, y, label in zip(torch.randn(3, 8, 4), torch.randn(3, 8, 1), torch.randint(0, 3, (3, 8))):
    features = body(x).relu()
    price_loss = F.mse_loss(price(features), y)
    kind_loss = F.cross_entropy(kind(features), label)
    optimizer.zero_grad()
    (price_loss + 0.1 * kind_loss).backward()
    optimizer.step()
    print(price_loss.item(), kind_loss.item())
assert not torch.equal(kind.weight, before)
```

## What it does not report
- A loss that is back-propagated on another path, or in another round: a term that a setting
  switches off.
- Measures of the prediction that is trained anyway: the absolute error beside the squared one.
- Losses of an evaluation, and losses that are handed to other code, or kept under a key that is not
  known, which can be used anywhere.

## Limits
A loss is what a loss function of torch gives, or a single number that is called one. What only a
function makes one, and no name, is reported where it is computed from a forward that is trained.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from gradlint import evidence
from gradlint.dataclass import dataclass
from gradlint.finding import Denied, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import (
    Backward,
    Fact,
    Kind,
    May,
    OptimizerStep,
    Parameter,
    Tape,
    TrainMode,
    Value,
    graph,
)  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.computed import losses, used
from gradlint_rules.held import distinct, identities, overlap, reached
from gradlint_rules.scalars import is_scalar
from gradlint_rules.words import calls, listed, places, to_sink

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_Key = tuple[Span, tuple[Span, ...]]
_HELP = (
    "Add it to what is back-propagated, or compute it under `torch.no_grad()` if it is only for "
    "the log."
)


@dataclass(frozen=True, slots=True)
class _Unused:
    """A loss that no backward runs through, and the one that was back-propagated beside it."""

    fact: Fact
    loss: Value
    sink: Backward
    sinks: Sequence[Backward]  # all that there are


def check(paths: Paths) -> Iterator[Report]:
    """Every loss of a training step that is never part of what is back-propagated."""
    found = [each for each in paths.some(_unused) if _is_never_used(_key(each[1].fact), paths)]
    needed = {_key(fact) for fact in paths.some(used)}
    sinks = paths.some(Tape.backwards) if found else ()
    trained = distinct(leaf for sink in sinks for leaf in sink.leaves)
    found = _outermost(found, trained)
    reported: set[_Key] = set()
    shared = {at for at, _ in needed}
    # in one round, and so in all
    measures = {_key(unused.fact) for _, unused in found if _is_measure(unused)}
    for tape, unused in found:
        only = _trained_by_it_alone(unused, tape, trained)
        key = _key(unused.fact)
        if key not in reported and (only or _is_left(unused, tape, measures, shared)):
            reported.add(key)
            yield _report(unused, tape, only, needed)


def _is_left(
    unused: _Unused, tape: Tape, measures: AbstractSet[_Key], shared: AbstractSet[Span]
) -> bool:
    """Whether it is a loss that was forgotten; none of a helper that computes what is
    back-propagated elsewhere.
    """
    if unused.fact.at in shared:
        return False
    return _is_forgotten(unused, measures) and not _looks_back(unused, tape)


def _report(unused: _Unused, tape: Tape, only: Sequence[str], needed: AbstractSet[_Key]) -> Report:
    fact = unused.fact
    name = (
        f"`{fact.detail or unused.loss.name}`" if fact.detail or unused.loss.name else "this loss"
    )
    verb = "is" if len(only) == 1 else "are"
    effect = f", and {listed(list(only[:3]))} {verb} trained by nothing else" if only else ""
    message = f"{name} is never back-propagated{effect}"
    at = _place(unused, tape, needed)
    related = (*calls(fact.stack, unused.sink.stack), to_sink(unused.sink))
    return Report(at, message, _HELP, places(at, *related), hints=Denied.USE.hint)


def _key(fact: Fact) -> _Key:
    """What tells the losses that one helper computes apart: the calls of it."""
    return fact.at, fact.value.stack if fact.value is not None else ()


def _place(unused: _Unused, tape: Tape, needed: AbstractSet[_Key]) -> Span:
    """Where a loss is computed: the first call on the way to it that no backward, no step and no
    loss that is back-propagated goes through.
    """
    at, stack = _key(unused.fact)
    others = [event.stack for event in (*unused.sinks, *tape.of(OptimizerStep))]
    others += [other for _, other in needed]
    known = max(len(_prefix(stack, other)) for other in others)
    return stack[known] if known < len(stack) else at


def _prefix(stack: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The calls that two stacks begin with."""
    pairs = zip(stack, other, strict=False)
    return [at for at, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _beside(tape: Tape) -> list[_Unused]:
    """The losses of training steps, each with what is back-propagated in its round: all of them can
    be used.
    """
    sinks = [sink for sink in tape.backwards() if sink.sink != "autograd.grad"]
    first: dict[tuple[tuple[int, int], ...], Backward] = {}
    for sink in sinks if tape.of(OptimizerStep) or any(map(_is_stepped, sinks)) else ():
        first.setdefault(sink.iteration, sink)
    return [
        _Unused(fact, value, first[fact.iteration], sinks)
        for fact, value in losses(tape)
        if fact.iteration in first
    ]


def _unused(tape: Tape) -> Iterator[tuple[Tape, _Unused]]:
    """Those that the path does not use."""
    needed = _used_on(tape)
    given = {id(value) for fact, value in losses(tape) if not fact.detail}
    left = [
        each for each in _beside(tape) if _key(each.fact) not in needed and _is_trained(each, tape)
    ]
    return ((tape, each) for each in left if not each.fact.detail or is_scalar(each.loss, given))


@of_tape
def _used_on(tape: Tape) -> AbstractSet[_Key]:
    return {_key(fact) for fact in used(tape)}


def _is_never_used(key: _Key, paths: Paths) -> bool:
    """Whether no path uses a loss, whatever was not run."""
    return bool(paths.never(lambda tape: key in _used_on(tape), May.BIND | May.BACKWARD))


def _outermost(
    found: Sequence[tuple[Tape, _Unused]], trained: Sequence[Parameter]
) -> list[tuple[Tape, _Unused]]:
    """Of one loss within another, the outer one, unless it is named as a sum for the log."""
    inner = {
        id(value)
        for tape, outer in found
        if not _is_for_the_log(outer) or _trained_by_it_alone(outer, tape, trained)
        for value in graph(outer.loss)
        if _is_within(value, outer.loss)
    }
    return [(tape, each) for tape, each in found if id(each.loss) not in inner]


def _is_within(loss: Value, other: Value) -> bool:
    return loss is not other and loss.iteration == other.iteration


def _is_trained(beside: _Unused, tape: Tape) -> bool:
    """Whether a loss is computed in train mode, and a step follows what is back-propagated beside
    it.
    """
    before = [mode for mode in tape.of(TrainMode) if mode.order < beside.fact.order]
    if before and before[-1].training is False:
        return False
    steps = _steps_after(tape, beside.sink)
    return _is_stepped(beside.sink) or any(_is_around(step, beside.fact) for step in steps)


def _is_stepped(sink: Backward) -> bool:
    """Whether a framework back-propagates, which steps an optimizer of its own afterwards."""
    return sink.by_framework


def _is_around(step: OptimizerStep, fact: Fact) -> bool:
    """Whether a step is in the loops that a loss is in, and in none within them: it is part of the
    same training.
    """
    return dict(step.iteration).keys() <= dict(fact.iteration).keys()


def _steps_after(tape: Tape, sink: Backward) -> list[OptimizerStep]:
    return [step for step in tape.of(OptimizerStep) if step.order > sink.order]


def _trained_by_it_alone(unused: _Unused, tape: Tape, trained: Sequence[Parameter]) -> list[str]:
    """The parameters of optimizers that step, which this loss reaches and no backward does."""
    held = [
        one
        for step in _steps_after(tape, unused.sink)
        for one in identities(step.optimizer.parameters)
    ]
    known = {id(parameter) for parameter in trained}
    found: dict[str, None] = {}
    for value in graph(unused.loss):
        parameter = value.parameter
        if parameter is None or not value.is_leaf or id(parameter) in known or value.assumed:
            continue
        if any(overlap(parameter, one) for one in held) and not any(
            overlap(parameter, one) for one in trained
        ):
            owner = parameter.path if parameter.module is None else parameter.module.path
            found.setdefault(f"`{owner}`")
    return list(found)


def _is_forgotten(unused: _Unused, measures: AbstractSet[_Key]) -> bool:
    """Whether it is no loss for the log by its name, and not a measure of what the other one is
    computed from at last.

    What nothing but a function calls a loss can be an evaluation, unless it is computed from a
    forward that is trained.
    """
    name = unused.fact.detail
    if _is_for_the_log(unused) or not (name or _is_beside(unused)):
        return False
    if all(leaf.assumed for leaf in graph(unused.loss) if leaf.is_leaf):
        return False
    if unused.fact.order < unused.sink.order and unused.sink.value.name == name:
        return unused.sink.value is not unused.loss
    return _key(unused.fact) not in measures


def _is_beside(unused: _Unused) -> bool:
    """Whether something that carries gradient goes into it and into what is back-propagated."""
    trained = {id(value) for sink in unused.sinks for value in sink.graph if not value.is_leaf}
    return any(id(value) in trained for value in graph(unused.loss))


def _is_for_the_log(unused: _Unused) -> bool:
    name = unused.fact.detail or unused.loss.name
    return bool(name) and evidence.is_measured(name)


def _looks_back(unused: _Unused, tape: Tape) -> bool:
    """Whether nothing steps behind it in its round, and it has a forward of its own: it measures
    what was trained.

    Beside that forward it may meet the one that was back-propagated, to compare the two, if both
    are of one model.
    """
    fact, sink = unused.fact, unused.sink
    steps = (step for step in _steps_after(tape, sink) if step.iteration == sink.iteration)
    if fact.order <= max((step.order for step in steps), default=fact.order):
        return False
    earlier = [each for each in unused.sinks if each.order < fact.order]
    before = {id(value) for each in earlier for value in each.graph}
    made = [value for value in graph(unused.loss) if not value.is_leaf]
    own = [value for value in made if id(value) not in before]
    return len(own) == len(made) or _runs_what_is_trained(own, earlier)


def _runs_what_is_trained(values: Sequence[Value], sinks: Sequence[Backward]) -> bool:
    """Whether all the parameters that some values are computed with are trained by these
    backwards.
    """
    trained = [parameter for sink in sinks for parameter in reached(sink)]
    inputs = (source for value in values for source in value.inputs)
    run = [source.parameter for source in inputs if source.parameter is not None]
    return bool(run) and all(any(overlap(one, other) for other in trained) for one in run)


def _is_measure(unused: _Unused) -> bool:
    return _measures(unused.loss, [sink.value for sink in unused.sinks])


def _measures(loss: Value, others: Sequence[Value]) -> bool:
    """Whether all that `loss` is computed from is what the others are computed from without
    parameters in between.
    """
    direct = {id(value) for other in others for value in _without_parameters(other)}
    shared = {id(value) for other in others for value in graph(other)}
    frontier: list[Value] = []
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        if id(value) in shared:
            frontier.append(value)
            continue
        for source in value.inputs:
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return all(id(value) in direct for value in frontier)


def _without_parameters(loss: Value) -> Iterator[Value]:
    """The end of a loss's computation: its graph as far as the first operations that take a
    parameter.
    """
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        yield value
        if any(source.kind is Kind.PARAMETER for source in value.inputs):
            continue
        for source in value.inputs:
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
