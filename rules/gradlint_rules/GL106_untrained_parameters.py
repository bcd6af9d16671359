"""# untrained-parameters (GL106)

The loss has a gradient, but some of the parameters that the optimizer holds are used only where no
gradient comes back.

## What it does
Looks, over all paths, for parameters of an optimizer that steps which flow into a loss only behind
a cut (`no_grad`, `detach`, `.item()`, `argmax`, `Distribution.sample()`), behind an operation whose
gradient is zero (`round`, `sign`) or behind a custom Function whose `backward` gives `None` back
for it, while the same loss has other routes. Weights that are computed and then written into a
module (`.data.copy_()`, `p.data = …`, `load_state_dict`, `vector_to_parameters`, anything under
`no_grad`) are such a cut, too: what they were computed from gets no gradient. Reports the cut.

## Why it matters
Nothing raises: the loss falls, because the rest of the model learns around the part that does not.
The encoder stays at its random initialisation, or the actor never moves.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
with torch.no_grad():  # expect: GL106
    features = encoder(x).relu()
loss = F.cross_entropy(head(features), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert encoder.weight.grad is None
assert head.weight.grad is not None
```

## Use instead
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
features = encoder(x).relu()
loss = F.cross_entropy(head(features), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert encoder.weight.grad is not None
```

Or, where the encoder is meant to stay as it is, say so and leave it out of the optimizer:

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
encoder.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
with torch.no_grad():
    features = encoder(x).relu()
loss = F.cross_entropy(head(features), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- Frozen modules, and modules that no optimizer holds: teachers, target networks, averaged copies.
- Parameters that another loss, or another path, reaches: the generator behind `fake.detach()` in
  the discriminator's step, an encoder that is cut off only during a warm-up.
- Parameters that the code updates itself, such as a codebook that follows a moving average; a copy
  of what is trained, run under `no_grad` (a target network that the optimizer holds along with the
  rest). That a parameter is brought back to unit length or into a box is no update.
- Parameters whose gradient is zero by mathematics, although a route leads there.

In a module with no trainer in view, parameters that it makes itself are taken to be trained. An
operation without a derivative before them is reported; so is what copies all that the module gives
out of the graph. A `detach` or `no_grad` is reported where a single layer or an `nn.Parameter` of
the module itself is behind it, where the function that cuts has called the layer itself, between
two blocks of one class, behind several modules that the function has called one on the result of
another, itself or by a method of its own, and where the gradient of what was recorded ends in a
`no_grad`: a whole encoder behind one is most often meant to stay as it was loaded, but not where
the result goes to NumPy and straight back. Where the very layer is called under `no_grad`, and
behind a comparison, it is a note: gates and thresholds have losses of their own. An argument of the
constructor makes one object or another: what cuts by default is reported, unless it is a `detach`
or `no_grad`, which the argument can be there for.

## Limits
Where the analysis gives up on a path, nothing is said: the parameters could be reached there.
Parameters that are used nowhere in a loss are not reported either. A traced run sees no
`vector_to_parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import NOT_SHOWN, Denied, Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Cut,
    DType,
    May,
    Value,
)  # fmt: skip
from gradlint_rules.answers import asked, is_given, is_of_another
from gradlint_rules.blocked import blocked_on
from gradlint_rules.copies import WRITTEN
from gradlint_rules.cuts import place
from gradlint_rules.held import Overlapping, distinct
from gradlint_rules.obstacles import Blocked, nearest, reached_from
from gradlint_rules.purpose import (
    first_detached,
    is_a_mistake,
    is_deliberate,
    is_of_the_part,
    least_meant,
)
from gradlint_rules.trained import follows, frozen, of_owners, trained_on, trains, unused
from gradlint_rules.uncut import hint_of_sample, mend_cut, unsafe
from gradlint_rules.words import calls, maker, owners, places, shortly, to_sink

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL507", "GL508"])  # what was cut is part of the graphs of several rounds
_HELP = (
    "Let the gradient through, or freeze these parameters (`requires_grad_(False)`) and leave "
    "them to no optimizer."
)
_HELP_OF_PART = (
    "Let the gradient through, or freeze these parameters (`requires_grad_(False)`) where they "
    "are made."
)
_HELP_WRITTEN = (
    "Run the module with the computed weights instead: `torch.func.functional_call(module, "
    "weights, inputs)`."
)


def check(paths: Paths) -> Iterator[Report]:
    """The cuts behind which all the uses of some held parameters lie, one finding a cut."""
    found = [
        each
        for each in paths.some(blocked_on)
        if not each.sink.assumed or _is_meant_to_train(each, paths)
    ]
    by_place: dict[Span, list[Blocked]] = {}
    for blocked in _chosen(_untrained(found, paths)) if found else ():
        by_place.setdefault(place(blocked.by), []).append(blocked)
    for at in sorted(by_place):
        yield _report(at, by_place[at])


def _chosen(found: Sequence[Blocked]) -> list[Blocked]:
    """Of what blocks a parameter, what a loss meets first and is least likely meant."""
    return first_detached(least_meant(nearest(found)))


def _untrained(found: Sequence[Blocked], paths: Paths) -> list[Blocked]:
    """Those of what is blocked that no loss on any path reaches, and that are to be trained."""
    by_others = distinct(leaf for loss in unused(paths) for leaf in reached_from(loss))
    spared = Overlapping([*by_others, *frozen(paths), *of_owners(paths)])
    reached = Overlapping([*paths.some(trained_on), *by_others])
    lost = {id(each.parameter): _is_lost(each, spared, paths) for each in found}
    return [each for each in found if lost[id(each.parameter)] and not follows(each, reached)]


def _is_lost(blocked: Blocked, spared: Overlapping, paths: Paths) -> bool:
    """Whether no loss reaches a parameter, whatever was not run; of a part, what was not run beside
    the cut.
    """
    parameter = blocked.parameter
    by_mistake = blocked.sink.assumed and is_a_mistake(blocked)
    by_mistake = by_mistake and not (
        is_deliberate(blocked.by, blocked.sink, blocked.tape) and asked(blocked)
    )
    is_never_reached = paths.never(
        lambda tape: (
            trains(tape).overlaps(parameter) and not (by_mistake and is_of_another(tape, blocked))
        ),
        May.BIND | May.BACKWARD,
    )
    if is_never_reached is None:
        is_never_reached = blocked.sink.assumed
    return is_never_reached and not spared.overlaps(parameter)


def _is_meant_to_train(blocked: Blocked, paths: Paths) -> bool:
    """Whether a part's parameter is to be trained, and is cut off wherever the part comes to the
    cut.
    """
    if not is_of_the_part(blocked):
        return False
    answers = [(at, not holds) for at, holds in asked(blocked)]
    missing = [answer for answer in answers if not is_given(answer, paths)]  # each is asked for
    return not missing


def _report(at: Span, all_blocked: list[Blocked]) -> Report:
    first = all_blocked[0]
    if first.sink.assumed:
        return _report_of_part(at, all_blocked)
    known = (*first.optimizer.parameters, *first.sink.leaves)
    names = shortly(owners((blocked.parameter for blocked in all_blocked), known))
    optimizer = f"`{first.optimizer.name or first.optimizer.cls}`"
    message = (
        f"{_obstacle(first.by)}: no gradient comes back to {names}, which {optimizer} is to train"
    )
    stack = first.by.cut_stack or first.by.stack
    held = Related(first.optimizer.at, f"{optimizer} holds {names}")
    related = places(at, held, *calls(stack, first.sink.stack), to_sink(first.sink))
    hint = _HELP_WRITTEN if WRITTEN in first.by.flags else _HELP
    hints = (
        {NOT_SHOWN: "yes"}
        if first.by.op.endswith("vector_to_parameters")
        else hint_of_sample(first.by)
    )
    denied = Denied.TRAINING.hint if not first.by.requires_grad else {}
    return Report(at, message, hint, related, hints={**hints, **denied})


def _report_of_part(at: Span, all_blocked: list[Blocked]) -> Report:
    first = all_blocked[0]
    parameters = dict.fromkeys(blocked.parameter.path.partition(".")[2] for blocked in all_blocked)
    names = shortly([f"`{name}`" for name in parameters])
    message = (
        f"{_obstacle(first.by)}: no gradient comes back to {names} when the result of "
        f"`{first.sink.text}` is used"
    )
    stack = first.by.cut_stack or first.by.stack
    related = places(at, *calls(stack, first.sink.stack), to_sink(first.sink))
    # with a graph that nobody asks for
    computed = any(blocked.is_computed for blocked in all_blocked)
    is_usual = (first.by.cut is Cut.GRAD_MODE and not computed) or first.by.dtype is DType.BOOL
    severity = Severity.NOTE if is_usual else None
    return Report(at, message, _HELP_OF_PART, related, severity, hints=hint_of_sample(first.by))


def _obstacle(value: Value) -> str:
    if value.requires_grad:
        return f"the gradient of {maker(value)} is zero"
    return (
        "grad mode is off here" if value.cut is Cut.GRAD_MODE else f"{maker(value)} cuts the graph"
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the cut away, or passes the gradient straight through it."""
    return unsafe("Let the gradient through", mend_cut(finding, source))
