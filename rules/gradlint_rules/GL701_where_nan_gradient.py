"""# where-nan-gradient (GL701)

A `torch.where` (or a mask) chooses around a function that is not defined where it is not chosen:
the gradient is NaN, although the value is not.

## What it does
Reports `torch.where(cond, f(x), …)`, `f(x).masked_fill(mask, …)` and `y = f(x); y[mask] = …` where
the condition keeps out the very place at which `f` has no finite derivative: `log` and division at
zero, `sqrt` and roots at zero and below, other fractional powers below zero, `acos` and `asin` at
one and beyond. The condition can be a question after NaN or infinity (`isnan(f(x))`), and
`nan_to_num(f(x))` asks it by itself. Reports, too, what is filled with infinity and then multiplied
or divided by something learned: the gradient of the scale is `0 * inf`.

## Why it matters
The backward runs through both sides. The side that was not chosen gets a gradient of zero, which is
then multiplied by the infinite derivative of `f`: `0 * inf` is NaN. One such element makes the
whole gradient NaN, and with it every parameter.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
energy = model(torch.eye(4)[:2] * torch.tensor([[1.0], [0.0]])).square()
level = torch.where(energy > 0, energy.log(), torch.zeros(()))  # expect: GL701
loss = level.mean()
assert loss.isfinite()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isnan().any()
```

## Use instead
A `where` before the function as well, so that it never sees what it is not defined for; or a bound:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
energy = model(torch.eye(4)[:2] * torch.tensor([[1.0], [0.0]])).square()
safe = torch.where(energy > 0, energy, torch.ones(()))
level = torch.where(energy > 0, safe.log(), torch.zeros(()))
loss = level.mean() + energy.clamp(min=1e-6).log().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isfinite().all()
```

For a few elements, compute only these: `out[mask] = x[mask].log()`.

## What it does not report
- Arguments made safe before: `clamp(min=eps)`, `+ eps`, a `where` or `masked_fill` around the
  argument.
- Arguments that are above zero by what computed them (`exp`, `softplus`, `softmax`, unless a mask
  puts minus infinity among its logits), or behind a ReLU, whose backward makes the NaN a zero.
  `clamp(min=0)`, `maximum(x, 0)` and `abs` do not help, and are reported.
- Conditions about something else than the argument.
- Infinity that is put in behind a learned scale, which is how masks are made; in front of one it is
  reported.

## Limits
Overflow (`exp` of large numbers in the branch not taken) is not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.operations import Trait, canonical, has, having
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Value
from gradlint_rules import GL602_empty_mean
from gradlint_rules.arrivals import Arrival
from gradlint_rules.choices import infinite, is_scaling
from gradlint_rules.encounters import Encounter, encountered
from gradlint_rules.guards import guarded
from gradlint_rules.numeric import harmless_elsewhere
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import operations, taught
from gradlint_rules.words import maker, severity_in

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Choose before the function as well (`safe = torch.where(ok, x, 1.0)`), or bound its "
    "argument: `x.clamp(min=eps)`."
)
_WHERE = {"div": "at zero", "acos": "at one and beyond"}
_CHOOSES_ZERO = {"zero": "chosen"}  # the root of zero is taken, whose derivative is infinite, too


def check(paths: Paths) -> Iterator[Report]:
    """The choices around what is undefined where it is not chosen; and what a run saw to make a
    gradient infinite.
    """
    reported: set[Span] = set()
    for found in encountered(paths, _choices):
        vain = list(guarded(found.value))
        operation = vain[0].operation
        reported |= {found.at, operation.at}
        place = _WHERE.get(canonical(operation.op), "where this does not choose it")
        cause = (
            f"{maker(operation)} has no finite derivative {place}, and only its value is "
            f"discarded{found.condition}"
        )
        related = found.related(
            Related(operation.at, f"{maker(operation)} is computed for all elements", Role.COMPUTED)
        )
        hints = (
            _CHOOSES_ZERO
            if has(operation.op, Trait.ROOTS) and all(each.point < 0 for each in vain)
            else {}
        )
        yield Report(
            found.at,
            f"{cause}: the gradient of what is not chosen is NaN",
            _HELP,
            related,
            severity=severity_in(found.sink, operation),
            hints=hints,
        )
    for found in encountered(paths, _scaled):
        if found.at not in reported:
            reported.add(found.at)
            yield _infinite(found)

    seen = list(paths.some(lambda tape: tape.facts("not-finite")))
    # that says why
    reported |= {report.at for report in GL602_empty_mean.check(paths)} if seen else set()
    for fact in seen:
        if fact.value is not None and fact.value.at not in reported:
            reported.add(fact.value.at)
            yield _seen(fact.value)


def _seen(value: Value) -> Report:
    message = (
        f"the derivative of {maker(value)} is not finite where it was taken: from here on, no "
        "gradient is"
    )
    return Report(
        value.at,
        message,
        "Keep its argument from where it is undefined: `x + eps`, `x.clamp(min=eps)`.",
    )


def _infinite(found: Encounter) -> Report:
    """Of infinity that is multiplied by something learned, whose gradient is `0 * inf`."""
    choice = infinite(found.value)
    assert choice is not None
    message = (
        f"{maker(found.value)} scales by something learned what {maker(choice)} has filled "
        "with infinity"
        f"{found.condition}: the gradient of the scale is NaN"
    )
    related = found.related(Related(choice.at, "infinity is put in here"))
    return Report(found.at, message, "Scale first, and put the infinity in behind that.", related)


def _scaled(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if having(Trait.CHOOSES).isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    for value in taught(arrival.sink, arrival.tape):
        if is_scaling(value) and len(value.inputs) == 2:
            for scaled, scale in (value.inputs, value.inputs[::-1]):
                is_learned = scale.requires_grad and not scale.assumed
                if is_learned and infinite(scale) is None and infinite(scaled) is not None:
                    yield value.at, value


def _choices(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if having(Trait.CHOOSES).isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    for value in taught(arrival.sink, arrival.tape):
        if has(value.op, Trait.CHOOSES) and next(guarded(value), None) is not None:
            yield value.at, value


def fix(finding: Finding, source: FixSource) -> Fix:
    """Computes it of harmless values where it is not chosen."""
    if "zero" in finding.hints:
        raise NoFixError("the root of zero is chosen, whose derivative is infinite, too")
    return unsafe(
        "Compute it of harmless values where it is not chosen", harmless_elsewhere(finding, source)
    )
