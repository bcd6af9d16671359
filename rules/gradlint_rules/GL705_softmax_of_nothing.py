"""# softmax-of-nothing (GL705)

A softmax over a row of which a mask can fill every number with minus infinity: its result is NaN,
and so are gradients.

## What it does
Reports a softmax (and its logarithm) whose logits a mask fills with minus infinity, where

- the mask is made of a side of queries and a side of keys, `mask[:, :, None] & mask[:, None, :]`: a
  query that is padding is left without any key;
- or what the softmax gives is cleaned behind it (`nan_to_num`, `masked_fill(…, 0)`), and the
  infinity was added to the logits: cleaning the result does not clean the gradient, which is NaN.

## Why it matters
The softmax of nothing but minus infinity is `0 / 0`. That the loss leaves these rows out does not
help: the NaN is multiplied by the zero gradient of the row in the products that follow, and every
weight behind them becomes NaN.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, True, True]])
h = model(x)
pairs = mask[:, :, None] & mask[:, None, :]
scores = (h @ h.transpose(1, 2)).masked_fill(~pairs, float("-inf"))
mixed = scores.softmax(dim=-1) @ h  # expect: GL705
loss = mixed[mask].square().mean()
assert loss.isfinite()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isnan().any()
```

## Use instead
A mask of keys alone, which leaves each query some; or a large finite number:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, True, True]])
h = model(x)
scores = (h @ h.transpose(1, 2)).masked_fill(~mask[:, None, :], float("-inf"))
mixed = scores.softmax(dim=-1) @ h
loss = mixed[mask].square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isfinite().all()
```

## What it does not report
- Masks of keys alone and causal masks, whose result is not cleaned: each row has a key.
- Finite numbers in the place of infinity, `-1e9` and `torch.finfo(x.dtype).min`: such a row is
  uniform.
- Logits that `masked_fill` or `where` fills itself, where the result is cleaned before it is used:
  both directions are finite.
- `scaled_dot_product_attention`, which gives zeros there.

## Limits
Whether a row is left without a key is for the data to say: a traced run reports the softmax where
it was, and where the gradient of a parameter came out as NaN, in the steps that are recorded;
`nn.MultiheadAttention` whose masks leave a query without a key, too, which a check does not see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Edits, FixSource, NoFixError, Report
from gradlint.tape import Value, users_among
from gradlint_rules.arrivals import Arrival
from gradlint_rules.choices import filled
from gradlint_rules.encounters import encountered
from gradlint_rules.masks import Fill, fills, fills_rows, is_cleaned, is_softmax
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import taught
from gradlint_rules.words import maker, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_PUT_IN = "infinity is put in here"
_SMALL = "-1e4"  # in every type of floating-point numbers; its exponential is zero
_HELP = (
    "Mask the keys alone, or fill with a large finite number: `masked_fill(mask, "
    "torch.finfo(x.dtype).min)`."
)


def check(paths: Paths) -> Iterator[Report]:
    """Every softmax on the way to a loss that a row of nothing can come to."""
    for found in encountered(paths, _of_nothing):
        fill = next(fills(found.value))
        cause = (
            f"{maker(fill.choice)} can leave a row of {maker(found.value)} with nothing but "
            "minus infinity"
        )
        message = f"{cause}{found.condition}: its gradient is NaN"
        yield Report(found.at, message, _HELP, found.related(_put_in(fill)), hints=_hints(fill))
    for fact in paths.some(lambda tape: tape.facts("row-of-nothing")):
        if fact.value is not None:
            yield _seen(fact.value)


def _seen(softmax: Value) -> Report:
    """Of a row that a run saw, and the NaN gradients behind it."""
    message = (
        f"a row that {maker(softmax)} was taken of was nothing but minus infinity: its gradient "
        "is NaN"
    )
    found = list(fills(softmax))
    hints = _hints(found[0]) if found else {}
    return Report(softmax.at, message, _HELP, places(softmax.at, *map(_put_in, found)), hints=hints)


def _put_in(fill: Fill) -> Related:
    return Related(fill.choice.at, _PUT_IN, Role.FILLED)


def _hints(fill: Fill) -> dict[str, str]:
    return {"is last": "yes" * filled(fill.choice)[1]}


def _of_nothing(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if arrival.tape.traced:
        return  # a run has seen whether there was one
    values = taught(arrival.sink, arrival.tape)
    softmaxes = [(value, list(fills(value))) for value in values if is_softmax(value)]
    above = users_among(arrival.sink.graph) if any(found for _, found in softmaxes) else {}
    for value, found in softmaxes:
        cleaned = is_cleaned(value, above)
        if any(_is_reached(fill, cleaned=cleaned) for fill in found):
            yield value.at, value


def _is_reached(fill: Fill, *, cleaned: bool) -> bool:
    """Whether a row that is filled whole makes a gradient NaN."""
    return fill.is_added if cleaned else fills_rows(fill)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts a finite number in the place of infinity: the least of its type, where a name tells the
    type.
    """
    at = next((each.at for each in finding.related if each.role is Role.FILLED), None)
    if at is None or at.path != finding.at.path:
        raise NoFixError("infinity is put in elsewhere")
    infinity, logits = _parts(at, is_last=bool(finding.hints["is last"]), source=source)
    least, edits = _SMALL, Edits()
    if isinstance(logits, ast.Name | ast.Attribute):
        finfo, edits = source.reference("torch.finfo")
        least = f"{finfo}({source.text(logits)}.dtype).min"
    return unsafe("Fill with a finite number", (source.replace(infinity, least), *edits))


def _parts(at: Span, *, is_last: bool, source: FixSource) -> tuple[ast.expr, ast.expr]:
    """The infinity in a choice, and the logits that it stands beside, as they are written."""
    match source.statement(at):
        case ast.Assign(targets=[ast.Subscript(value=logits)], value=value) as statement if (
            at.line == statement.lineno
        ):
            return value, logits
    call = source.expression(at)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        raise NoFixError("infinity is not written there")
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not source.called(call.func).startswith("torch."):  # scores.masked_fill(mask, value)
        given = [call.func.value, *given]
    is_function = source.called(call.func) == "torch.where"
    match given:
        case [_, first, last] if is_function:
            return (last, first) if is_last else (first, last)
        case [logits, _, last]:
            return last, logits
    raise NoFixError("infinity is not written there")
