"""# unnormalized-accumulation (GL503)

Gradients are accumulated over N micro-batches, and the loss, a mean, is not divided by N.

## What it does
Runs the loop until the step comes, and looks at the loss of each micro-batch that it uses: a mean
over the micro-batch, divided by nothing, in a window of more than one.

## Why it matters
The gradient is N times as large as that of one large batch. With SGD the learning rate is in effect
N times higher; with clipping, the threshold is. With Adam and its like the scale cancels (then this
is a note).

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
for i, x in enumerate(batches):
    loss = model(x).square().mean()
    loss.backward()  # expect: GL503
    if (i + 1) % accumulate == 0 or i + 1 == len(batches):
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 4
batches = torch.randn(12, 8, 4)
for i, x in enumerate(batches):
    loss = model(x).square().mean() / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(batches):
        optimizer.step()
        optimizer.zero_grad()
```

## What it does not report
- A division anywhere on the way: in the criterion, in a helper, by `scaler.scale(loss / n)`, of the
  gradients before the step.
- Losses that are sums: their gradients are meant to add up.
- A sum over a part that is divided by a count of the whole batch, which all parts share: they add
  up to one mean.
- Losses of all micro-batches, of which each round's alone carries a gradient:
  `kept[:j] + [model(x[j])] + kept[j + 1:]` where `kept` was computed without gradients. Their
  gradients add up to the whole one.
- A loss of which nothing is known but that a function out of view gave it there:
  `sum(criterion(**kept).values())`
- Several different losses for one step; the losses of tasks that are learned within the loop.

## Limits
A mean is known by its operation (`mean`, a loss of torch with its default reduction), an unknown
function by its name. An inner loop counts as accumulation where each of its rounds gets another
part of one tensor (`x.chunk(n)`, `x[start : start + n]`), another batch of one loader
(`next(batches)`, batches that were gathered before; a run does not show these), the next few items
of a stream or a list (`islice(batches, n)`, what `batched` gives, `batches[start : start + n]` of
each `start`), or where the words of what it runs over say so (`range(accumulate)`,
`micro_batches`). A loop that goes through a whole loader is none, nor one in whose rounds something
else is trained (the tasks of meta-learning). `batch.split(n)` is not
among them where nothing is known of `batch` and `n`: strings are split, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from gradlint.finding import NOT_SHOWN, Finding, Fix, Related, Role, Severity, Span
from gradlint.operations import Trait, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Backward,
    Clip,
    Cut,
    InPlace,
    Iteration,
    Kind,
    OptimizerStep,
    Tape,
    Value,
    ancestors,
)
from gradlint_rules.accounts import Account, Update, accounts, is_gradient, key
from gradlint_rules.dividing import divided
from gradlint_rules.means import is_whole_mean
from gradlint_rules.uncut import unsafe
from gradlint_rules.windows import accumulations, is_counted
from gradlint_rules.words import backward, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Divide the loss by the number of micro-batches in the window before its backward."
_INDIFFERENT = (
    "Adam",
    "Adagrad",
    "RMSprop",
    "Adadelta",
    "NAdam",
    "RAdam",
    "Adafactor",
    "Lion",
    "Rprop",
    "LAMB",
)
_SAYS_PARTS = re.compile(
    r"(?<![a-z])(micro(_?(batch(es)?|steps?))?|(grad_?)?acc(um[a-z]*)?|sub_?batch(es)?"
    r"|mini_?batches)(?![a-z])"
    r"|\.(chunk|tensor_split)\("  # of something unknown, which only a tensor has
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def check(paths: Paths) -> Iterator[Report]:
    """Every loss that is back-propagated whole in several rounds before one step."""
    reported: set[Span] = set()
    for account, update, sinks, count, hints in _windows(paths):
        sink = sinks[0]
        if sink.at in reported or not is_whole_mean(sinks):
            continue
        if any(map(_is_of_all, sinks)) or any(map(_is_out_of_view, sinks[1:])):
            continue
        if _is_divided(account.tape, sinks, update.step):
            continue
        reported.add(sink.at)
        yield _report(account, update, sink, count, hints)


_Found = tuple[Account, Update, tuple[Backward, ...], str, Mapping[str, str]]  # the last: hints


def _windows(paths: Paths) -> Iterator[_Found]:
    yield from _counted(paths)
    yield from _inner(paths)
    yield from _of_accelerators(paths)


def _of_accelerators(paths: Paths) -> Iterator[_Found]:
    """Windows that Accelerate's `accumulate` closes, of losses that its `backward` did not divide;
    as only a run shows them.
    """
    for account in accounts(paths):
        facts = account.tape.facts("accelerator-divides") if account.tape.traced else ()
        sizes = {int(fact.detail) for fact in facts}
        shares = {id(fact.value) for fact in account.tape.facts("share-of-window")}
        for update in account.updates if account.tape.facts("accelerator-accumulates") else ():
            of_window = len(update.fresh) in sizes and len({*map(key, update.fresh)}) == 1
            given = (value for sink in update.fresh for value in sink.graph)
            if of_window and not any(id(value) in shares for value in given):
                said = f"once in {len(update.fresh)} rounds of `accumulate`"
                yield account, update, update.fresh, said, {}
                break


def _counted(paths: Paths) -> Iterator[_Found]:
    """Windows that a counter closes."""
    for accumulation in accumulations(paths):
        if not is_counted(accumulation):
            continue
        for window, size in zip(accumulation.windows, accumulation.sizes, strict=True):
            if size > 1 and len(window.fresh) > 1 and not window.lost:
                said = f"only when {accumulation.condition}"
                yield accumulation.account, window.update, window.fresh, said, {}
                break


def _inner(paths: Paths) -> Iterator[_Found]:
    """Windows that are a loop of their own over micro-batches."""
    for account in accounts(paths):
        for update in account.updates:
            for sink in update.fresh:
                inner = [
                    loop for loop, _ in sink.iteration if loop not in dict(update.step.iteration)
                ]
                same = tuple(other for other in update.fresh if key(other) == key(sink))
                loop = _loop(inner[-1], account.tape) if inner and len(same) > 1 else None
                if loop is None or _learns_within(loop, account.tape):
                    continue
                is_shown = _is_over_parts(loop, same)
                if is_shown or _is_over_a_stream(loop, same):
                    yield account, update, same, _after(loop), _hints(loop, is_shown=is_shown)
                    break


def _hints(loop: Iteration, *, is_shown: bool) -> Mapping[str, str]:
    """Whether a run shows it as well, and whether `len` tells how many rounds there are."""
    found = {NOT_SHOWN: not is_shown, "sized": loop.is_sized}
    return {name: "yes" for name, holds in found.items() if holds}


def _loop(number: int, tape: Tape) -> Iteration | None:
    return next((event for event in reversed(tape.of(Iteration)) if event.loop == number), None)


def _is_over_parts(loop: Iteration, sinks: Sequence[Backward]) -> bool:
    """Whether the rounds of a loop get parts of a batch: by what is handed to them, or by its
    words.
    """
    return bool(_SAYS_PARTS.search(_HUMP.sub("_", loop.text).lower())) or _differ(
        loop, sinks, _parts
    )


def _is_over_a_stream(loop: Iteration, sinks: Sequence[Backward]) -> bool:
    """Whether the rounds of a loop get the next few items of a stream."""
    return loop.over == "window" or _differ(loop, sinks, _batches)


# by where they are made and, where that is known, of what
_Parts = dict[tuple[Span, object], set[object]]


def _differ(
    loop: Iteration, sinks: Sequence[Backward], parts: Callable[[Iteration, Backward], _Parts]
) -> bool:
    handed = [parts(loop, sink) for sink in sinks if loop.loop in dict(sink.iteration)]
    return any(
        handed[0].get(key, part) != part for other in handed[1:] for key, part in other.items()
    )


def _learns_within(loop: Iteration, tape: Tape) -> bool:
    """Whether the rounds of a loop hold steps of their own: tasks of meta-learning, whose losses
    are added up.
    """
    steps = (
        *tape.of(OptimizerStep),
        *(sink for sink in tape.backwards() if sink.sink == "autograd.grad"),
    )
    return any(loop.loop in dict(event.iteration) for event in steps)


def _parts(loop: Iteration, sink: Backward) -> _Parts:
    """The parts of tensors that this loss is computed from: of `x.chunk(4)`,
    `x[start : start + 8]`.
    """
    found: _Parts = {}
    for value in sink.ancestors:
        is_before = loop.loop not in dict(value.iteration)
        if is_before and has(value.op.removesuffix(".output"), Trait.SPLITS):
            found.setdefault((value.at, None), set()).add(id(value))
        elif (part := _slice(value)) is not None:
            found.setdefault((value.at, None), set()).add(part)
    return found


def _slice(value: Value) -> tuple[object, object] | None:
    match value.argument(1):
        case (slice(start=start, stop=stop), *_) | slice(start=start, stop=stop):
            # `x[start : start + 8, :-1]`
            is_one = isinstance(start, int) and isinstance(stop, int) and stop - start == 1
            return (start, stop) if start is not None and stop is not None and not is_one else None
    return None


def _batches(loop: Iteration, sink: Backward) -> _Parts:
    """The batches of loaders that this loss is computed from, but for those that the loop itself
    goes through.
    """
    found: _Parts = {}
    for value in sink.ancestors:
        match value.argument(1):
            case "batch", number, turn if number != loop.loop:
                found.setdefault((value.at, value.argument(0)), set()).add((number, turn))
    return found


def _after(loop: Iteration) -> str:
    return (
        f"after the loop over `{loop.text}`"
        if loop.text
        else f"after the loop in line {loop.at.line}"
    )


def _is_of_all(sink: Backward) -> bool:
    """Whether a loss is of all micro-batches, of which this round's alone has a gradient.

    features = torch.cat(kept[:j] + [model(x[j])] + kept[j + 1 :])  # kept: model(x) of all, under
    no_grad
    """
    trained = {id(leaf.parameter) for leaf in sink.leaves if leaf.parameter is not None}
    return any(
        _is_older(given, sink) and _is_kept_result(given, trained)
        for value in sink.graph
        if sum(given.requires_grad for given in value.inputs) < len(value.inputs)
        for given in value.inputs
    )


def _is_out_of_view(sink: Backward) -> bool:
    """Whether all that a loss hangs on was first met in its own round:
    `sum(criterion(**kept).values())`.

    A model, or a criterion that is given what it made, was there in the round before.
    """
    return bool(sink.leaves) and all(
        leaf.assumed and leaf.iteration == sink.iteration for leaf in sink.leaves
    )


def _is_older(value: Value, sink: Backward) -> bool:
    """Whether it was there before the round of a loss."""
    return value.iteration[: len(sink.iteration)] != sink.iteration


def _is_kept_result(value: Value, trained: AbstractSet[int]) -> bool:
    """Whether it was computed from these parameters and something else, with grad mode off: not
    what a parametrization keeps, which is of the parameters alone.
    """
    if value.requires_grad:
        return False
    below = list(ancestors(value))
    is_of_parameters = any(
        each.cut is Cut.GRAD_MODE
        and any(given.parameter and id(given.parameter) in trained for given in each.inputs)
        for each in below
    )
    return is_of_parameters and any(
        not each.inputs and each.parameter is None and each.kind is not Kind.CONSTANT
        for each in below
    )


def _is_divided(tape: Tape, sinks: Sequence[Backward], step: OptimizerStep) -> bool:
    """Whether the gradients themselves are changed between the first of these backwards and the
    step.
    """
    between = range(sinks[0].order, step.order)
    if any(event.order in between and is_gradient(event.before) for event in tape.of(InPlace)):
        return True
    reads = (clip for clip in tape.of(Clip) if clip.reads_only and not clip.by_library)
    return any(clip.order in between for clip in reads)


def _report(
    account: Account, update: Update, sink: Backward, count: str, hints: Mapping[str, str]
) -> Report:
    optimizer = account.optimizer
    name = optimizer.name or optimizer.cls or "optimizer"
    clips = any(clipped.clip.order < update.step.order for clipped in account.clips)
    scale_cancels = any(word in optimizer.cls for word in _INDIFFERENT) and not clips
    message = (
        f"{backward(sink)} adds the whole loss of each micro-batch, but `{name}` steps {count}: "
        "the gradient is as many times too large as the window has micro-batches"
    )
    severity = Severity.NOTE if scale_cancels else None
    step = Related(update.step.at, "the step that uses their sum", Role.STEP)
    return Report(sink.at, message, _HELP, places(sink.at, step), severity, hints=hints)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Divides the loss by the number of micro-batches."""
    return unsafe("Divide the loss by the window", divided(finding, source))
