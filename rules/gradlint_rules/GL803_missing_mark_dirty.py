"""# missing-mark-dirty (GL803)

The `forward` of a custom function modifies an input in place and returns it, and does not say so.

## What it does
Reports the modification where `ctx.mark_dirty` is not called and the input (or what it is a view
of) is read again afterwards. Where it is not read again, this is a note.

## Why it matters
`mark_dirty` tells autograd that the input now is the output: its history goes through the function.
Without it the input keeps its old history with new numbers, so that whoever reads it gets a
gradient that leaves out the function.

## Example
```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(0.5)  # expect: GL803
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5


weight = torch.ones(3, requires_grad=True)
hidden = weight + 1
halved = Halve.apply(hidden)
loss = (halved + hidden).sum()
loss.backward()
assert weight.grad.tolist() == [1.5, 1.5, 1.5]  # and not 1: both are half of what they were
```

## Use instead
```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(0.5)

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5


weight = torch.ones(3, requires_grad=True)
hidden = weight + 1
halved = Halve.apply(hidden)
loss = (halved + hidden).sum()
loss.backward()
assert weight.grad.tolist() == [1, 1, 1]
```

Or leave the input as it is: `return x * 0.5`.

## What it does not report
- Modifications of copies and of tensors made in `forward`.
- Inputs that were marked.

## Limits
A write into a saved tensor is `inplace-saved-tensor` (GL201), with or without `mark_dirty`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, Tape, Value
from gradlint_rules.functions import marked_dirty
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import operation, places, quoted

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Call `ctx.mark_dirty(…)` with the input before returning it, or work on a copy."
_Written = tuple[Fact, Value | None]


def check(paths: Paths) -> Iterator[Report]:
    """The inputs written in place and not marked, those that are read again first."""
    found: dict[Span, _Written] = {}
    for fact, reader in paths.some(_written):
        if reader is not None or fact.at not in found:
            found[fact.at] = fact, reader
    for at in sorted(found):
        yield _report(*found[at])


def _written(tape: Tape) -> Iterator[_Written]:
    facts = tape.facts("input-written")
    if not facts:
        return
    sinks = list(tape.backwards())
    values = {id(value): value for sink in sinks for value in sink.graph}.values()
    for fact in facts:
        yield fact, next((value for value in values if _reads_again(value, fact)), None)


def _reads_again(value: Value, fact: Fact) -> bool:
    """Whether `value` was computed, after the function, from the input that it had written."""
    made = fact.value
    if (
        made is None
        or value is made
        or value.order < made.order
        or (value.op == made.op and value.at == made.at)
    ):
        return False
    return any(
        source.storage is made.storage
        and source.order <= made.order
        and source is not made
        and made not in source.inputs
        for source in value.inputs
    )


def _report(fact: Fact, reader: Value | None) -> Report:
    write = (
        f"{operation(fact.detail)} writes an input of the function in place, and it is not "
        "marked as dirty"
    )
    applied = [Related(at, message) for at, message in fact.related]
    if reader is None:
        return Report(fact.at, write, _HELP, places(fact.at, *applied), Severity.NOTE)
    read = Related(reader.at, f"{quoted(reader)} is computed from the input as it is now")
    message = f"{write}: what reads it again gets a gradient that leaves the function out"
    return Report(fact.at, message, _HELP, places(fact.at, *applied, read))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Marks the input as dirty."""
    return unsafe("Mark the input as dirty", marked_dirty(finding, source))
