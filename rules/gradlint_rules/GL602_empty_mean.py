"""# empty-mean (GL602)

A mean is taken over a boolean selection that can be empty.

## What it does
Reports a mean, or a loss that is one, of `x[mask]` or `masked_select`, and a masked sum divided by
the mask's own sum, in what a backward comes to, unless something keeps the selection from being
empty; and sums by class divided by how many samples each class has, of one-hot labels.

## Why it matters
The mean of nothing is NaN. For `x[mask].mean()` the loss is NaN and the gradient zero: logs,
schedulers and checkpoints go by a NaN. For `(x * mask).sum() / mask.sum()`, or where the NaN is
multiplied by something learned, the gradient is NaN, too, and one step destroys the model. This is
a warning where the program is seen to make an empty selection: elements that are drawn and mostly
rejected (`torch.randn(8) > 3`), a row set to `False`; else a note.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, depth in zip(torch.randn(5, 8, 4), torch.randn(5, 8)):
    valid = depth > 3
    error = (model(x).squeeze(1) - depth).abs()
    loss = (error * valid).sum() / valid.sum()  # expect: GL602
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, depth in zip(torch.randn(5, 8, 4), torch.randn(5, 8)):
    valid = depth > 0
    error = (model(x).squeeze(1) - depth).abs()
    loss = (error * valid).sum() / valid.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Selections behind `if mask.any():` or `if len(x[mask]) > 0:`, whatever the count is called.
- Selections among so many drawn elements that one is always there: `torch.rand(40, 50) < 0.5`.
- Batches that are skipped when their loss is not finite.
- Sums divided by something that cannot be zero: `mask.sum().clamp(min=1)`, `mask.sum() + 1e-6`.
- Means over everything, weighted by a mask.
- Pairs of one class, each sample with itself: `y[:, None] == y[None, :]`.

## Limits
Of data from elsewhere it is not known what a mask selects: padding, lengths and labels that a
dataset gives are a note. A traced run takes a mask whose count was asked for, or taken out, for
guarded, and one that was made before the loop, and selected something, for never empty; what it
reports is a note, unless it met the NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, Fact, Kind, Tape, Value, graph
from gradlint_rules.numeric import at_least_one
from gradlint_rules.selections import (
    Mean,
    empty_means,
    is_same,
    is_selection,
    unsigned,
)
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import places, quoted, to_sink

SEVERITY = Severity.NOTE
AT_RUN_TIME = True


def check(paths: Paths) -> Iterator[Report]:
    """Every mean of a selection on a loss path that nothing guards."""
    found: dict[Span, Report] = {}
    for report in paths.some(_unguarded):
        known = found.get(report.at)
        if known is None or (known.severity or Severity.NOTE) < (report.severity or Severity.NOTE):
            found[report.at] = report
    yield from found.values()


def _unguarded(tape: Tape) -> Iterator[Report]:
    empty = {id(fact.value): fact.detail for fact in tape.facts("empty-selection")}
    for sink in tape.backwards():
        for mean in empty_means(sink.graph):
            seen = empty.get(id(mean.selection), "")
            if seen != "never" and not _is_guarded(tape, sink, mean):
                yield _judged(tape, sink, mean, is_seen=seen == "seen")


def _judged(tape: Tape, sink: Backward, mean: Mean, *, is_seen: bool) -> Report:
    """A warning where an empty selection is seen and makes the gradient NaN; where a run has met
    the NaN; else a note.

    A run shows whether a selection was empty: its first gradient that is not finite came from
    there.
    """
    spoils = _spoils(sink, mean)
    spoilt = any(
        fact.value is not None and fact.value.at == mean.value.at
        for fact in tape.facts("not-finite")
    )
    severity = Severity.WARNING if spoilt or (is_seen and spoils) else Severity.NOTE
    return _report(sink, mean, severity, spoils or spoilt)


def _is_guarded(tape: Tape, sink: Backward, mean: Mean) -> bool:
    """Whether the program asks how much the mask selects, or whether the loss is a number, before
    the backward.
    """
    around = dict(sink.iteration)
    for decision in tape.decisions:
        is_of_now = (
            decision.loop is None or around.get(decision.loop, decision.round) == decision.round
        )
        if is_of_now and (
            _ask(decision.about, mean.mask) or any(map(_asks_for_a_number, decision.about))
        ):
            return True
    asserted = [fact for fact in tape.facts("asserted") if fact.value is not None]
    read = [fact for fact in tape.facts("read-out") if _is_before(fact, mean.value)]
    return any(
        fact.value is not None and _ask([fact.value], mean.mask) for fact in (*asserted, *read)
    )


def _is_before(fact: Fact, mean: Value) -> bool:
    """Whether something was read in the round in which a mean is computed, and before that."""
    rounds = min(len(fact.iteration), len(mean.iteration))
    return fact.order <= mean.order and fact.iteration[:rounds] == mean.iteration[:rounds]


def _asks_for_a_number(asked: Value) -> bool:
    """Whether it is asked if something is finite, or no number: it is equal to itself where it is
    one.
    """
    left, right = asked.argument(0), asked.argument(1, "other")
    is_with_itself = isinstance(left, Value) and left is right
    return has(asked.op, Trait.ASKS_FINITE) or (
        is_with_itself and canonical(asked.op) in ("eq", "ne")
    )


def _ask(asked: Iterable[Value], mask: Value) -> bool:
    """Whether tensors hang on how much a mask selects: on what was counted from it, or on the
    selection.
    """
    pending = list(asked)
    seen = {id(value) for value in pending}
    for value in pending:
        if value is mask:
            return True
        inner = (
            value.inputs[1:] if is_selection(value) else () if value.requires_grad else value.inputs
        )
        for source in inner:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def _spoils(sink: Backward, mean: Mean) -> bool:
    """Whether the gradient of a mean of nothing is NaN, too."""
    if mean.is_ratio:
        return canonical(_reshaped(mean.value.inputs[0]).op) == "mul"
    return _meets_learned(sink.value, mean.value)


def _reshaped(summed: Value) -> Value:
    """What a sum is taken of, before it was cast or brought into another shape."""
    value = unsigned(summed).inputs[0]
    while is_same(value) and value.inputs:
        value = value.inputs[0]
    return value


def _meets_learned(loss: Value, mean: Value) -> bool:
    """Whether the mean is multiplied by something else that carries a gradient on its way into the
    loss.
    """
    users: dict[int, list[Value]] = {}
    for value in graph(loss):
        for source in value.inputs:
            users.setdefault(id(source), []).append(value)
    above, pending = {id(mean)}, [mean]
    for value in pending:
        for user in users.get(id(value), []):
            others = [
                source for source in user.inputs if id(source) not in above and _is_learned(source)
            ]
            if others and canonical(user.op) in ("mul", "div"):
                return True
            if id(user) not in above:
                above.add(id(user))
                pending.append(user)
    return False


def _is_learned(value: Value) -> bool:
    """Whether it comes from parameters in view: what something unknown gives
    (`settings.weight * loss`) can be data.
    """
    return any(
        source.is_leaf and source.kind is not Kind.UNKNOWN and not source.assumed
        for source in graph(value)
    )


def _report(sink: Backward, mean: Mean, severity: Severity, spoils: bool) -> Report:
    value = mean.value
    gradient = "and so is its gradient" if spoils else "although its gradient is not"
    mask, is_by_class = quoted(mean.mask), canonical(mean.mask.op) == "one_hot"
    nothing = f"a class of {mask} has no members" if is_by_class else f"{mask} selects nothing"
    message = f"if {nothing}, `{value.text or value.title}` is NaN, {gradient}"
    help_ = (
        "Skip the term when the selection is empty, or divide the sum by `mask.sum().clamp(min=1)`."
    )
    return Report(value.at, message, help_, places(value.at, to_sink(sink)), severity)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Divides by at least one."""
    return unsafe("Divide by at least one", at_least_one(finding, source))
