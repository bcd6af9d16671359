"""# double-activation (GL704)

A loss gets what it does not take: probabilities where it applies the softmax or sigmoid itself, or
logits where it takes probabilities.

## What it does
Reports a softmax before `CrossEntropyLoss`, a sigmoid (or softmax) before `BCEWithLogitsLoss`, raw
outputs of a layer or probabilities into `NLLLoss`, and raw outputs into `BCELoss`; for the
functions as for the modules, and for averages of what they give (over time, over a picture, over
the members of an ensemble). Reports a `softmax` or `log_softmax` of a softmax over the same axis,
too: `F.log_softmax(Categorical(logits=x).probs, dim=-1)`, also where the results of several layers
are joined in between, or a temperature of at least one divides them.

## Why it matters
A softmax of a softmax is nearly uniform: with three classes the loss can never fall below 0.55, and
its gradient vanishes where the model is confident. Training goes on and stays bad. Logits in
`NLLLoss` have no lower bound, and `BCELoss` raises as soon as one leaves [0, 1].

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, label = torch.randn(8, 4), torch.randint(0, 3, (8,))
probability = F.softmax(model(x), dim=-1)  # expect: GL704
loss = F.cross_entropy(probability, label)
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
criterion = torch.nn.BCELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, label = torch.randn(8, 4), torch.randint(0, 2, (8, 1)).float()
loss = criterion(model(x), label)  # expect: GL704
optimizer.zero_grad()  # RuntimeError: between 0 and 1
loss.backward()
optimizer.step()
```

## Use instead
Logits and the loss that takes them; the activation for the report:

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, label = torch.randn(8, 4), torch.randint(0, 3, (8,))
logits = model(x)
loss = F.cross_entropy(logits, label)
optimizer.zero_grad()
loss.backward()
optimizer.step()
probability = logits.softmax(dim=-1)
```

## What it does not report
- `log_softmax` before `CrossEntropyLoss`, which changes neither the loss nor the gradient.
- Activations that only the report or a second loss uses.
- Scaled or shifted probabilities: `cross_entropy(scale * p, label)`, `softmax(p / 0.1)`.

## Limits
What a model from outside of the project gives is not known to be logits or probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Value
from gradlint_rules.arrivals import Arrival
from gradlint_rules.encounters import encountered
from gradlint_rules.numbers import origin, unchanged
from gradlint_rules.numeric import activated_once
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import operations, visited
from gradlint_rules.words import maker, operation

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_SOFTMAX, _SIGMOID = ("softmax", "gumbel_softmax"), ("sigmoid",)
_RAW = (Trait.CONTRACTS, Trait.CONVOLVES, Trait.RECTIFIES)  # which give any number, or any above 0
# What each loss takes.
_TAKES = {
    "cross_entropy": "logits",
    "binary_cross_entropy_with_logits": "logits",
    "multilabel_soft_margin_loss": "logits",
    "nll_loss": "log-probabilities",
    "binary_cross_entropy": "probabilities",
}
_OUTER = ("softmax", "log_softmax")
_DEEPEST = 3  # joins of what was joined
_HELP_NESTED = "Take it of the logits."
_HELP = {
    "logits": "Give the loss the logits, and keep the activation for the report.",
    "log-probabilities": "Apply `log_softmax`, or use `cross_entropy`, which does both.",
    "probabilities": "Use `BCEWithLogitsLoss`, which takes logits, or apply a sigmoid.",
}


def check(paths: Paths) -> Iterator[Report]:
    """The losses that are given what they do not take."""
    for found in encountered(paths, _losses):
        loss = found.value
        given, is_average = _given(loss)
        takes = _TAKES[canonical(loss.op)]
        is_activation = _is_activation(given)
        made_by = maker(given) if given.layer or given.layer_at is None else operation(given.op)
        said = f"gets {'an average' if is_average else 'the result'} of {made_by}"
        message = (
            f"{operation(loss.op)} takes {takes} and {said}{found.condition}: "
            f"{_effect(takes, is_activation)}"
        )
        is_loss = loss.at == found.at
        related = (
            Related(given.at, "computed here", Role.COMPUTED)
            if is_loss
            else Related(loss.at, "the loss is computed here", Role.COMPUTED)
        )
        hints = {"takes": takes}
        if is_average and is_activation:
            hints["average"] = "of activations"
        yield Report(found.at, message, _HELP[takes], found.related(related), hints=hints)
    for found in encountered(paths, _nested):
        inner = _softmax_below(found.value) or found.value
        message = (
            f"{maker(found.value)} is taken of the probabilities that {maker(inner)} "
            f"gives{found.condition}"
        )
        places = found.related(Related(inner.at, "these are computed here", Role.COMPUTED))
        yield Report(
            found.at,
            f"{message}: {_effect('logits', True)}",
            _HELP_NESTED,
            places,
            hints={"nested": "yes"},
        )


def _nested(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    for value in visited(arrival.sink):
        if canonical(value.op) in _OUTER and _softmax_below(value) is not None:
            yield value.at, value


def _softmax_below(outer: Value) -> Value | None:
    """The softmax whose very result a softmax or its logarithm is taken of, over the same axis."""
    axis = _axis(outer)
    return _softmax_of(outer.inputs[0], axis) if outer.inputs and axis is not None else None


def _softmax_of(value: Value, axis: int, depth: int = 0) -> Value | None:
    """The softmax over an axis that gave these numbers; the first, where several were joined along
    another axis.
    """
    *steps, inner = unchanged(value, selected=False)
    if any(canonical(step.op) == "output" for step in (*steps, inner)):
        return None
    if _is_drawn_together(inner):
        return _softmax_of(inner.inputs[0], axis, depth)
    if has(inner.op, Trait.JOINS) and inner.inputs and depth < _DEEPEST:
        along = inner.argument(1, "dim") or 0
        joined = [_softmax_of(source, axis, depth + 1) for source in inner.inputs]
        return None if along == axis or None in joined else joined[0]
    own = _axis(inner)
    is_same = own is not None and (own == axis or {own, axis} == {1, -1})
    return inner if canonical(inner.op) == "softmax" and inner.requires_grad and is_same else None


def _is_drawn_together(value: Value) -> bool:
    """Whether it is something divided by a temperature of at least one: probabilities only come
    closer together.
    """
    by = value.argument(1, "other")
    return canonical(value.op) == "div" and isinstance(by, int | float) and by >= 1


def _axis(softmax: Value) -> int | None:
    axis = softmax.argument(1, "dim")
    return axis if isinstance(axis, int) else None


def _effect(takes: str, is_activation: bool) -> str:
    if takes == "logits":
        return "it is applied twice, and the gradient vanishes"
    if takes == "probabilities":
        return "what leaves [0, 1] raises"
    return "the loss is not a likelihood" if is_activation else "the loss has no lower bound"


def _losses(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if _TAKES.keys().isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    for value in visited(arrival.sink):
        if canonical(value.op) in _TAKES and value.inputs and value.op.startswith("torch.nn."):
            given, _ = _given(value)
            if _refuses(canonical(value.op), given) and given.requires_grad:
                is_activation = _is_activation(given)
                yield (given.layer_at or given.at) if is_activation else value.at, value


def _is_activation(given: Value) -> bool:
    return canonical(given.op) in (*_SOFTMAX, *_SIGMOID)


def _refuses(loss: str, given: Value) -> bool:
    """Whether a loss of this name does not take what an operation gives."""
    match _TAKES[loss]:
        case "logits":
            is_of_classes = loss == "cross_entropy"
            activations = _SOFTMAX if is_of_classes else (*_SOFTMAX, *_SIGMOID)
            return canonical(given.op) in (
                _SIGMOID if loss == "multilabel_soft_margin_loss" else activations
            )
        case "log-probabilities":
            return _is_activation(given) or _is_raw(given)
    return _is_raw(given)


def _is_raw(given: Value) -> bool:
    """Whether an operation gives any number; `einsum` can average probabilities."""
    return has(given.op, *_RAW) and canonical(given.op) != "einsum"


def _given(loss: Value) -> tuple[Value, bool]:
    """What the loss is computed from, below views, selections and dropout, and whether averages are
    taken of it.

    An average of probabilities is one; of logits, it is none.
    """
    found = loss.argument(0, "input")
    return _below(found if isinstance(found, Value) else loss.inputs[0])


def _below(value: Value) -> tuple[Value, bool]:
    is_average = False
    while (value := origin(value)).inputs:
        if has(value.op, Trait.JOINS):
            joined = [_below(source) for source in value.inputs]
            if len({source.op for source, _ in joined}) > 1:
                break
            source, is_one = joined[0]
            return source, is_average or is_one
        averages = canonical(value.op) == "mean" or has(value.op, Trait.POOLS_MEANS)
        if not (averages or has(value.op, Trait.DROPS)):
            break
        is_average = is_average or averages
        value = value.inputs[0]
    return value, is_average


def fix(finding: Finding, source: FixSource) -> Fix:
    """Leaves the activation to the loss."""
    if "nested" in finding.hints:
        raise NoFixError("which of the two is meant is not known")
    if "average" in finding.hints:
        raise NoFixError("an average of logits is not that of probabilities")
    return unsafe("Apply the activation once", activated_once(finding, source))
