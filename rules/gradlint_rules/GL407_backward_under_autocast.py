"""# backward-under-autocast (GL407)

The backward runs inside the autocast region.

## What it does
Reports a backward inside `with torch.autocast(…):`, as a note. It is a warning where a matrix
product or a convolution of its graph was computed outside of autocast, or with autocast switched
off.

## Why it matters
The backward of an operation runs in the precision that autocast chose for its forward, so nothing
is gained. But an operation that was computed in float32 on purpose has its backward computed in low
precision inside the region: its gradient changes.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 1)
prediction = model(torch.randn(8, 64))
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = prediction.pow(2).mean()
    loss.backward(retain_graph=True)  # expect: GL407
rough = model.weight.grad.clone()
model.zero_grad()
loss.backward()
assert not torch.equal(rough, model.weight.grad)
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 1)
prediction = model(torch.randn(8, 64))
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = prediction.pow(2).mean()
loss.backward(retain_graph=True)
exact = model.weight.grad.clone()
model.zero_grad()
loss.backward()
assert torch.equal(exact, model.weight.grad)
```

## What it does not report
- A region that is disabled on this path.

## Limits
Operations of modules that are not in view are taken to run where they are called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradlint.finding import Edit, Finding, Fix, Related, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import FRAMEWORK, Autocast, Backward, Kind, Tape, Value
from gradlint_rules.order import calls_of, nested
from gradlint_rules.uncut import unsafe, values_of
from gradlint_rules.visited import visited
from gradlint_rules.words import backward, calls, maker, places

SEVERITY = Severity.NOTE
AT_RUN_TIME = True
_HELP = "End the region before the backward."


def check(paths: Paths) -> Iterator[Report]:
    """Every backward inside autocast, those first whose graph has parts from outside of it."""
    found: dict[Span, tuple[Backward, Value | None]] = {}
    regions: dict[Span, Span] = {}
    for sink, region in paths.some(_in_regions):
        regions.setdefault(sink.at, region)
        if sink.autocast is not None and not sink.by_framework:
            outside = _computed_outside(sink)
            if sink.at not in found or (outside is not None and found[sink.at][1] is None):
                found[sink.at] = (sink, outside)
    for at in sorted(found):
        yield replace(_report(*found[at]), hints={"region": str(regions[at].line)})


def _in_regions(tape: Tape) -> Iterator[tuple[Backward, Span]]:
    """Each backward within an autocast, and where that is made."""
    entered: list[Span] = []
    for event in tape.events:
        if isinstance(event, Autocast):
            entered = [*entered, event.at] if event.entered else entered[:-1]
        elif isinstance(event, Backward) and event.autocast is not None:
            yield event, entered[-1] if entered else event.at


def _computed_outside(sink: Backward) -> Value | None:
    """A product or convolution of the graph that was computed in full precision.

    What a framework prepared is computed in its autocast wherever it is called.
    """
    if sink.autocast == FRAMEWORK:
        return None
    values = (
        value for value in visited(sink) if value.kind is Kind.OPERATION and value.autocast is None
    )
    return next(
        (value for value in values if _is_lowered(value) and not value.assumed),
        None,
    )


def _is_lowered(value: Value) -> bool:
    """Whether autocast computes it in lower precision."""
    attends = ("scaled_dot_product_attention", "multi_head_attention_forward")
    return canonical(value.op) in attends or has(
        value.op, Trait.CONTRACTS, Trait.CONVOLVES, Trait.RECURS
    )


def _report(sink: Backward, outside: Value | None) -> Report:
    if outside is None:
        message = f"{backward(sink)} runs inside autocast, where it gains nothing"
        return Report(sink.at, message, _HELP, places(sink.at, *calls(sink.stack, ())))
    message = (
        f"{backward(sink)} runs inside autocast: the backward of {maker(outside)} loses its full "
        "precision"
    )
    related = places(sink.at, Related(outside.at, "computed in full precision here"))
    return Report(sink.at, message, _HELP, related, Severity.WARNING)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Ends the region before the backward, and before the clearing right above it."""
    backward = source.statement(finding.at)
    for region in (outer for outer in nested(backward, source) if isinstance(outer, ast.With)):
        for item in region.items:
            if _is_made_on(int(finding.hints["region"]), item.context_expr, source):
                return unsafe(
                    "End the region before it", _ended(region, item.context_expr, backward, source)
                )
    raise NoFixError("the region begins out of view")


def _is_made_on(line: int, context: ast.expr, source: FixSource) -> bool:
    """Whether a context is made on a line, or stands for what is."""
    made = (
        values_of(context, source, context)
        if isinstance(context, ast.Name | ast.Attribute)
        else [context]
    )
    return any(each.lineno <= line <= (each.end_lineno or 0) for each in made)


def _ended(
    region: ast.With, context: ast.expr, backward: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """The backward and all behind it out of a region; what comes before it in a block within stays
    under one.
    """
    block = source.block(backward)
    before = block[: _begin(block, block.index(backward))]
    if block is region.body:
        return source.unwrap(region, context, block[len(before) :])
    around = nested(backward, source)
    first = next(place for place, each in enumerate(region.body) if each in around)
    return source.unwrap(region, context, region.body[first:], before)


def _begin(block: Sequence[ast.stmt], place: int) -> int:
    """The place of the first statement right before a backward that only clears gradients; else its
    own.
    """
    while (
        place
        and next(calls_of(block[place - 1], "zero_grad"), None)
        and isinstance(block[place - 1], ast.Expr)
    ):
        place -= 1
    return place
