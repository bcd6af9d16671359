"""# constant-loss (GL101)

On some path the loss is a fresh constant: no model output flows into it, so there is nothing to
differentiate.

## What it does
Follows every path from the loss sink back (`loss.backward()`, `torch.autograd.grad(loss, …)`, what
`training_step` returns, …) and reports the constants that are all there is on one of them:
`torch.tensor(0.0)`, `torch.zeros(…)`, `zeros_like`, `full`, `new_zeros`, or a Python number. The
message names the branches that lead there. Where several constants meet on one path, each is a
finding: each is an invitation to the same crash.

A loss that is computed from data alone (`criterion(labels, labels)`) is as constant, and reported
where it is computed.

It is a `warning`, not an `error`, where the constant is the initial value of a sum and it takes
every round of a loop to skip its guarded `loss = loss + term`.

## Why it matters
The backward raises, and it does so late: in the first batch that holds no valid sample, hours into
the training. In the meantime the branch looks harmless, since a zero term next to other terms is
fine.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for valid in (torch.tensor([True, True]), torch.tensor([False, False])):
    logits = model(torch.randn(2, 4))
    labels = torch.randint(0, 3, (2,))
    if valid.any():
        loss = F.cross_entropy(logits[valid], labels[valid])
    else:
        loss = torch.tensor(0.0)  # expect: GL101
    optimizer.zero_grad()
    loss.backward()  # RuntimeError: does not require grad
    optimizer.step()
```

The initial value of a sum whose every addition is skipped:

```python
import torch


def hinge(scores, positive, margin=1.0):
    loss = scores.new_zeros(())  # expect: GL101
    for score, is_positive in zip(scores, positive):
        if is_positive:
            loss = loss + (margin - score).relu()
    return loss


model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for positive in (torch.tensor([True, False]), torch.tensor([False, False])):
    loss = hinge(model(torch.randn(2, 4)).squeeze(1), positive)
    optimizer.zero_grad()
    loss.backward()  # RuntimeError: does not require grad
    optimizer.step()
```

## Use instead
A zero that hangs on the model's output: the backward runs, and every parameter gets a gradient of
zero (which distributed training wants, too).

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for valid in (torch.tensor([True, True]), torch.tensor([False, False])):
    logits = model(torch.randn(2, 4))
    labels = torch.randint(0, 3, (2,))
    if valid.any():
        loss = F.cross_entropy(logits[valid], labels[valid])
    else:
        loss = 0.0 * logits.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Or no step at all for such a batch:

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for valid in (torch.tensor([True, True]), torch.tensor([False, False])):
    if not valid.any():
        continue
    logits = model(torch.randn(2, 4))
    labels = torch.randint(0, 3, (2,))
    loss = F.cross_entropy(logits[valid], labels[valid])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- As an error: a constant that options of the command line alone decide (`if args.penalty:`), or
  flags that no caller in view passes. It is a warning, as is one that takes every round of a loop.
- A constant beside a term that carries a gradient on the same path, such as the initial
  `total = torch.zeros(())` of a sum, or the zero of a head that is switched off.
- A constant behind a guard that works: `if loss.requires_grad: loss.backward()`,
  `if torch.is_tensor(loss)`, or a counter or flag that is set only where a term was added.
- An output that a loop fills part by part (`out[chosen] = expert(x[chosen])`), although every round
  could be skipped.
- `torch.tensor(0.0, requires_grad=True)` for a batch that has nothing to learn from: its backward
  runs and changes nothing. Where it stands in for a loss that was cut off, that is `leaf-loss`
  (GL105).

## Limits
A loop over data is taken to run at least once, unless a loss in view asks whether the list that it
fills is empty. A sink where no path brings a gradient at all, some of them for a cut, is reported
by the rule of the cut alone (`detached-loss`, `no-grad-loss`, `non-differentiable-loss`). In a
function whose name begins with `test_`, a question about numbers that are drawn there once, in no
loop, is taken to be answered as in the run that its author saw. How likely an answer is, is not
computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradlint.finding import Applicability, Finding, Fix, Severity, Span
from gradlint.operations import Trait, has
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import (
    Decision,
    InPlace,
    Iteration,
    Kind,
    ModuleCall,
    Tape,
    Value,
    ancestors,
    graph,
    leaves,
)
from gradlint_rules.constants import (
    bound_before,
    given_with_gradient,
    is_all_there_is,
    is_scalar_zero,
    module_here,
    own_output,
    skipped,
)
from gradlint_rules.order import calls_of
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, loss_of, quoted, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Use a zero that hangs on the model's output (`0.0 * output.sum()`), or skip the backward of "
    "such a batch."
)
_HELP_DATA = "Compute the loss from what the model returns."


def check(paths: Paths) -> Iterator[Report]:
    """Every constant that is all there is of a loss on some path."""
    for found in starved(paths, Why.CONSTANT):
        skipped = _skipped_rounds(found)
        if skipped and _is_filled(paths, found.culprit):
            continue
        is_fresh = found.culprit.kind is Kind.CONSTANT
        yield Report(
            found.at,
            _message(found, bool(skipped)),
            _HELP if is_fresh else _HELP_DATA,
            found.related,
            severity=_severity(found, bool(skipped)),
            hints=_outputs(paths, found) if is_fresh else {},
        )


def _severity(found: Starved, is_skipped: bool) -> Severity | None:
    """Less than an error where it takes every round of a loop or settings alone, and where a caller
    may add terms.
    """
    if found.severity is not None:
        return found.severity
    return Severity.WARNING if is_skipped or _is_set(found) else None


def _is_set(found: Starved) -> bool:
    """Whether settings alone decide that the loss is a constant, in every round of such a run."""
    return bool(found.decisions) and all(decision.is_setting for decision in found.decisions)


def _is_trained(paths: Paths, found: Starved) -> bool:
    """Whether the backward has a gradient in other rounds or on other paths."""
    sinks = paths.some(Tape.backwards)
    return any(sink.at == found.arrival.sink.at and sink.value.requires_grad for sink in sinks)


def _message(found: Starved, is_skipped: bool) -> str:
    sink = found.arrival.sink
    condition = when(found.decisions) + (" in every round of the loop" if is_skipped else "")
    subject = f"{quoted(found.culprit)} is a constant"
    if found.culprit.kind is not Kind.CONSTANT:
        subject = f"{quoted(found.culprit)} is computed from data and constants alone"
    rest = ", like all the rest of the loss," if found.others else ""
    is_loss = found.culprit is sink.value or quoted(found.culprit) == loss_of(sink)
    whole = "" if is_loss or rest else f" and all there is of {loss_of(sink)}"
    said = f"{subject}{rest}{whole}{condition}".rstrip(",")
    return f"{said}: {backward(sink)} finds nothing to differentiate and raises"


def _skipped_rounds(found: Starved) -> list[Decision]:
    """The decisions in loops over at the sink: begun behind the constant or in the sink's round, or
    adding one each.
    """
    sink = found.arrival.sink
    loops = found.arrival.tape.of(Iteration)
    begun = {
        event.loop
        for event in loops
        if event.round == 0
        and event.begins
        and (
            event.order >= found.culprit.order
            or event.iteration[: len(sink.iteration)] == sink.iteration
        )
    }
    added = {value.iteration for value in ancestors(sink.value) if value.at == found.culprit.at}
    around = dict(found.culprit.iteration).keys()
    over = (begun | around if len(added) > 1 else begun - around) - dict(sink.iteration).keys()
    inside = (decision for decision in found.decisions if decision.loop in over)
    return [decision for decision in inside if not _is_settled(decision, found.arrival.tape)]


def _is_filled(paths: Paths, constant: Value) -> bool:
    """Whether rounds that are not skipped write parts of it, as experts do to an output that they
    share.
    """
    writes = paths.some(lambda tape: tape.of(InPlace))
    return any(
        event.before.at == constant.at and has(event.write.op, Trait.WRITES_PART)
        for event in writes
    )


def _is_settled(decision: Decision, tape: Tape) -> bool:
    """Whether the first round decided for all: a condition that the loop does not change."""
    rounds = {event.round for event in tape.of(Iteration) if event.loop == decision.loop}
    decided = {
        other.round
        for other in tape.decisions
        if other.at == decision.at and other.loop == decision.loop
    }
    return len(rounds) > len(decided)


def _is_drawn_by(found: Starved) -> bool:
    """Whether the constant says how numbers are drawn, which come to the loss in its place."""
    return any(
        has(value.op, Trait.DRAWS) and any(each is found.culprit for each in ancestors(value))
        for value in found.arrival.sink.ancestors
    )


def _computed(tape: Tape) -> Iterator[Value]:
    """What the losses of a path are computed from, with them."""
    return (value for sink in tape.backwards() for value in sink.ancestors)


def _outputs(paths: Paths, found: Starved) -> dict[str, str]:
    """The names to hang a zero on: those bound to a tensor with gradient where the constant is
    made, on every path.

    Those that reach the most parameters come first, and of these the nearest to them: zero times an
    infinite derivative on the way would be NaN; `peers` serve as well as each other. Where a bare
    number says nothing of what is around it, `near` has the names that carry a gradient, each
    with its line. `drawn` says whether numbers are drawn by the constant, `trained` whether the
    backward has a gradient elsewhere, `set` whether settings alone make the loss constant.
    """
    at = found.at
    bound = list(
        paths.some(
            lambda tape: (_intact(value, tape) for value in _computed(tape) if value.at == at)
        )
    )
    names = set.intersection(*map(set, bound)) if bound else set()
    best = sorted(
        names,
        key=lambda name: (
            -len(list(leaves(bound[0][name]))),
            len(list(graph(bound[0][name]))),
            name,
        ),
    )
    peers = list(_peers({name: bound[0][name] for name in best}))
    values = paths.some(_computed)
    near = {
        (v.name, v.at.line)
        for v in values
        if v.requires_grad and v.at.path == at.path and v.name.isidentifier()
    }
    return {
        "around": " ".join(best),
        "peers": " ".join(peers),
        "near": " ".join(f"{name}:{line}" for name, line in sorted(near)),
        "modules": " ".join(
            sorted(set(map(_place, paths.some(lambda tape: _trained_modules(tape, at)))))
        ),
        "trained": "yes" if _is_trained(paths, found) else "",
        "drawn": "yes" if _is_drawn_by(found) else "",
        "set": "yes" if _is_set(found) and found.arrival.sink.sink != "autograd.grad" else "",
    }


def _peers(outputs: Mapping[str, Value]) -> Iterator[str]:
    """The outputs that reach parameters which no other reaches as well; of those that reach the
    same, the nearest to them.
    """
    reached = {name: {id(leaf) for leaf in leaves(value)} for name, value in outputs.items()}
    below = {name: {id(each) for each in graph(value)} for name, value in outputs.items()}
    for name in outputs:
        others = [other for other in outputs if reached[name] <= reached[other]]
        if all(reached[other] == reached[name] and below[name] <= below[other] for other in others):
            yield name


def _trained_modules(tape: Tape, at: Span) -> Iterator[Span]:
    """Where modules with something to train are called, in the file of a constant."""
    return (
        event.at for event in tape.of(ModuleCall) if event.trainable and event.at.path == at.path
    )


def _place(at: Span) -> str:
    return f"{at.line}:{at.column}:{at.end_line}:{at.end_column}"


def _intact(constant: Value, tape: Tape) -> dict[str, Value]:
    """What is bound around a constant, but for what an earlier backward has freed the graph of."""
    freed = {
        id(value)
        for sink in tape.backwards()
        if sink.order < constant.order
        for value in sink.graph
    }
    return {name: value for name, value in constant.around if id(value) not in freed}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts a zero that hangs on an output in the place of the constant, or adds one to a constant
    that is no zero.
    """
    if not finding.hints:
        raise NoFixError("no constant stands here")
    constant = source.expression(finding.at)
    if finding.hints["set"]:
        raise NoFixError("a run with these settings trains nothing: a zero would only hide that")
    if not finding.hints["trained"] and is_all_there_is(constant, source):
        raise NoFixError("nothing else brings a gradient: a zero would only hide that")
    if any(True for _ in calls_of(constant, "backward", "manual_backward")):
        raise NoFixError("the constant is what a loop makes that does not run")
    if finding.hints["drawn"]:
        return unsafe("Skip such a batch", skipped(finding, source))
    bound = finding.hints["around"].split() or bound_before(finding, source, constant)
    output = own_output(finding, constant, source) or next(
        iter(bound or given_with_gradient(finding, source, constant)), ""
    )
    zero = f"0.0 * {output}.sum()"
    if not output:
        output = module_here(finding, source, constant)
        zero = f"0.0 * sum(p.sum() for p in {output}.parameters())"
    if not output:
        return unsafe("Skip such a batch", skipped(finding, source))
    content = zero if is_scalar_zero(constant, source) else f"{source.text(constant)} + {zero}"
    return Fix(
        f"Hang the zero on `{output}`", Applicability.SAFE, (source.replace(constant, content),)
    )
