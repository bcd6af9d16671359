"""# unstable-log (GL702)

The logarithm of a softmax, a sigmoid or an exponential is taken in two steps.

## What it does
Reports `log(softmax(x))`, `log(sigmoid(x))`, `log(1 - sigmoid(x))` and `log1p(-sigmoid(x))` on the
way to a loss, through views and selections too: `probabilities.gather(1, label).log()`. Reports
`log(1 + exp(x))` and `log1p(exp(x))`, too.

## Why it matters
In float32 a probability below some 1e-45 is zero, and one above 1 - 6e-8 is one. A confident
mistake, logits some hundred apart, gives `log(0)`: an infinite loss, and a gradient that is NaN. In
float16 a difference of seventeen is enough. The exponential of 89 is infinite in float32, of 12 in
float16, and the gradient of `log(1 + exp(x))` there NaN.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, label = 400 * torch.randn(8, 4), torch.randint(0, 3, (8,))
probability = model(x).softmax(dim=-1)
loss = F.nll_loss(probability.log(), label)  # expect: GL702
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isnan().any()
```

## Use instead
The function that does both at once: `log_softmax`, `logsigmoid` (of `-x` for `1 - sigmoid(x)`),
`cross_entropy`, `binary_cross_entropy_with_logits`.

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, label = 400 * torch.randn(8, 4), torch.randint(0, 3, (8,))
loss = F.nll_loss(model(x).log_softmax(dim=-1), label)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isfinite().all()
```

## What it does not report
- Probabilities of logits that have bounds: `log(sigmoid(F.cosine_similarity(a, b)))`,
  `log(softmax(x.tanh() * 5))`.
- Logarithms of what was made safe: `log(p + eps)`, `log(p.clamp(min=eps))`, `log1p(exp(-x.abs()))`.
- Probabilities through which no gradient flows, and those that are averaged or multiplied before
  the logarithm.
- The probability of what was drawn by it (`multinomial`, `Categorical(p).sample()`): what has none
  is never drawn.

## Limits
Probabilities that come from code outside of the project are not known to be any.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.operations import Trait, canonical, has, having
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Value, ancestors
from gradlint_rules.arrivals import Arrival
from gradlint_rules.encounters import encountered
from gradlint_rules.guards import guarded_in
from gradlint_rules.limits import is_bounded, is_of_small_ones, is_within
from gradlint_rules.numbers import origin, unchanged
from gradlint_rules.numeric import logarithm_at_once, logarithm_of_a_little
from gradlint_rules.uncut import safe, unsafe
from gradlint_rules.visited import operations, taught
from gradlint_rules.words import maker

SEVERITY = Severity.WARNING
_STABLE = {
    ("softmax", False): "`log_softmax`",
    ("sigmoid", False): "`F.logsigmoid(x)`",
    ("sigmoid", True): "`F.logsigmoid(-x)`",
}
_HELP_SOFTPLUS = "Compute both at once with `F.softplus(x)`."
_NEAR_ZERO = 40.0  # the softmax of numbers no further from zero than this is above zero in float32
_NEAR_ONE = 15.0  # their sigmoid is below one


def check(paths: Paths) -> Iterator[Report]:
    """The logarithms of probabilities on the way to a loss."""
    for found in encountered(paths, _logs):
        probability, is_complement = _probability(found.value) or (found.value, False)
        kind = _kind(probability)
        said = f"one minus {maker(probability)}" if is_complement else maker(probability)
        cause = f"the logarithm of {said} is infinite where that underflows to zero"
        message = f"{cause}, and its gradient is NaN{found.condition}"
        stable = _STABLE.get((kind, is_complement), "`log_softmax`")
        related = found.related(
            Related(probability.at, f"the {kind} is computed here", Role.COMPUTED)
        )
        yield Report(
            found.at, message, f"Compute both at once with {stable}, from the logits.", related
        )
    for found in encountered(paths, _softpluses):
        exponential = _exponential(found.value) or found.value
        message = (
            f"{maker(exponential)} is infinite where its argument is large, and the gradient of "
            "the logarithm NaN"
        )
        related = found.related(
            Related(exponential.at, "the exponential is computed here", Role.COMPUTED)
        )
        yield Report(
            found.at,
            f"{message}{found.condition}",
            _HELP_SOFTPLUS,
            related,
            hints={"stable": "softplus"},
        )


def _softpluses(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if having(Trait.LOGARITHMS).isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    for value in taught(arrival.sink, arrival.tape):
        if _exponential(value) is not None:
            yield value.at, value


def _exponential(log: Value) -> Value | None:
    """The exponential of something without a bound that `log` is taken of, with a number added."""
    name = canonical(log.op)
    if not has(name, Trait.LOGARITHMS) or not log.inputs:
        return None
    source = origin(log.inputs[0])
    if name != "log1p":
        if canonical(source.op) != "add" or len(source.inputs) != 1:
            return None
        source = origin(source.inputs[0])
    is_exponential = canonical(source.op) == "exp" and source.inputs and source.requires_grad
    if not is_exponential or is_bounded(source.inputs[0]) or is_of_small_ones(source.inputs[0]):
        return None
    return source


def _logs(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if having(Trait.LOGARITHMS).isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    values = taught(arrival.sink, arrival.tape)
    logs = [value for value in values if value.inputs and _probability(value) is not None]
    # GL701 tells of it
    guarded_in_vain = {id(found.operation) for found in guarded_in(values if logs else ())}
    for value in logs:
        if id(value) not in guarded_in_vain:
            yield value.at, value


def _probability(log: Value) -> tuple[Value, bool] | None:
    """The softmax or sigmoid that `log` is taken of, and whether of one minus it."""
    name = canonical(log.op)
    if not has(name, Trait.LOGARITHMS) or not log.inputs:
        return None
    source = origin(log.inputs[0])
    inner = _negated(source) if name == "log1p" else _complement(source)
    if name == "log1p" and inner is None:
        return None
    probability = source if inner is None else origin(inner)
    if not _kind(probability) or not probability.requires_grad or not probability.inputs:
        return None
    most = _NEAR_ZERO if inner is None else _NEAR_ONE
    if is_within(probability.inputs[0], most) or (
        inner is None and _is_drawn(log.inputs[0], probability)
    ):
        return None
    return probability, inner is not None


def _is_drawn(selected: Value, probability: Value) -> bool:
    """Whether what is selected of a probability was drawn by it: what has none is never drawn."""
    for value in unchanged(selected):
        for index in value.inputs[1:]:
            draws = (source for source in ancestors(index) if has(source.op, Trait.DRAWS))
            if any(source is probability for draw in draws for source in ancestors(draw)):
                return True
    return False


def _kind(value: Value) -> str:
    """Which of the two it is, if it is one."""
    name = canonical(value.op)
    return name if name in ("sigmoid", "softmax") else ""


def _complement(value: Value) -> Value | None:
    """`p` of `1 - p`."""
    name = canonical(value.op)
    first = value.argument(1, "input") if name == "rsub" else value.argument(0)
    return (
        value.inputs[-1]
        if name in ("sub", "rsub") and first == 1 and len(value.inputs) == 1
        else None
    )


def _negated(value: Value) -> Value | None:
    return value.inputs[0] if canonical(value.op) == "neg" and value.inputs else None


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the logarithm together with the activation, or of no less than a little."""
    if "stable" in finding.hints:
        raise NoFixError("the logarithm of an exponential")
    try:
        return safe("Take the logarithm at once", logarithm_at_once(finding, source))
    except NoFixError:
        bounded = logarithm_of_a_little(finding, source)
        return unsafe("Take the logarithm of a little at least", bounded)
