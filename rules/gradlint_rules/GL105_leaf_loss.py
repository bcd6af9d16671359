"""# leaf-loss (GL105)

A loss that was cut from the model is declared to require grad: the error goes away, and so does the
training.

## What it does
Reports `loss.requires_grad_(True)`, `loss.requires_grad = True`,
`torch.tensor(x, requires_grad=True)` and `Variable(x, requires_grad=True)` where they turn a loss,
or all that feeds it, into a new leaf. The cut before it (`detach`, `.item()`, `argmax`, `no_grad`)
is shown as a related place and is no second finding.

## Why it matters
"element 0 of tensors does not require grad" invites `requires_grad=True`. With it the backward
runs, and computes the gradient of the loss with respect to itself: 1. No parameter gets any. The
loss is printed, the optimizer steps, and nothing is ever learned.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
accuracy = (model(x).argmax(dim=-1) == labels).float().mean()
loss = torch.tensor(1.0 - accuracy.item(), requires_grad=True)  # expect: GL105
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.grad is None
```

## Use instead
Mend the cut: a loss that is computed from the model's output by differentiable operations requires
grad by itself.

```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
loss = F.cross_entropy(model(x), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.grad.abs().sum() > 0
```

## What it does not report
- Inputs that are optimised on purpose: adversarial examples, inversion, a gradient penalty. Their
  leaf is held by an optimizer, its gradient is asked for or read, or the loss reaches parameters as
  well.
- `loss.requires_grad_(True)` on a loss that carries a gradient, which does nothing.
- Leaves that are handed to code out of view, which can make an optimizer of them, and inputs of a
  function that is differentiated where nothing steps or clears: a test or a measurement.
- `torch.tensor(0.0, requires_grad=True)` as the loss of an empty batch: there is nothing to learn
  from.

## Limits
`loss.requires_grad = True` on a loss that carries a gradient raises at once: that is GL114.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Clip,
    Cut,
    Kind,
    May,
    ModuleCall,
    OptimizerStep,
    Tape,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.averages import averaged
from gradlint_rules.cuts import is_cut, is_meant, place
from gradlint_rules.uncut import as_it_is, uncut, unsafe
from gradlint_rules.words import backward, loss_of, maker, places, to_sink, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
# cut elsewhere too; what was cut is part of several graphs
SPOILT_BY = frozenset(["GL101", "GL102", "GL104", "GL507", "GL508"])
_HELP = (
    "Remove it and mend the cut: a loss computed from the model without a cut requires grad by "
    "itself."
)


def check(paths: Paths) -> Iterator[Report]:
    """Every re-leafing that leaves a loss with no other source of gradient."""
    reported: set[Span] = set()
    for sink in arrivals(paths):
        made = [(arrival, *found) for arrival in sink if (found := _made_leaf(arrival)) is not None]
        for arrival, leaf, cut in made:
            if leaf.at not in reported and _is_never_read(leaf.at, paths):
                reported.add(leaf.at)
                rivals = [
                    rival for rival in sink if all(rival is not other for other, _, _ in made)
                ]
                yield _report(arrival, leaf, cut, rivals)


def _report(arrival: Arrival, leaf: Value, cut: Value, rivals: Sequence[Arrival]) -> Report:
    subject = (
        loss_of(arrival.sink)
        if leaf is arrival.loss
        else f"all that {loss_of(arrival.sink)} is computed from"
    )
    condition = when(conditions(arrival, rivals, leaf.at))
    message = (
        f"{subject} becomes a new leaf here{condition}: {backward(arrival.sink)} runs and "
        "reaches no parameter"
    )
    related = places(leaf.at, Related(place(cut), _cutting(cut)), to_sink(arrival.sink))
    return Report(leaf.at, message, _HELP, related)


def _cutting(cut: Value) -> str:
    match cut.cut:
        case Cut.GRAD_MODE:
            return "the gradient was lost here: grad mode is off"
        case Cut.FROZEN:
            return "the gradient was lost here: the parameters are frozen"
    return f"the gradient was lost here, in {maker(cut)}"


def _made_leaf(arrival: Arrival) -> tuple[Value, Value] | None:
    """The leaf that stands in for the model, and the cut that it hides."""
    found = arrival.sink.leaves
    if (
        not found
        or not all(_is_made(leaf) for leaf in found)
        or any(_is_wanted(leaf, arrival) for leaf in found)
    ):
        return None
    for leaf in sorted(found, key=lambda leaf: leaf.at):
        # torch.tensor([loss, …], requires_grad=True) copies
        if any(source.requires_grad for source in leaf.inputs):
            return leaf, leaf
        behind = [cut for source in leaf.inputs for cut in _cuts(source)]
        if behind:
            return leaf, behind[0]
    beside = [cut for cut in _cuts(arrival.loss) if cut.cut is not Cut.FROZEN and not is_meant(cut)]
    return (min(found, key=lambda leaf: leaf.at), beside[0]) if beside else None


def _is_made(leaf: Value) -> bool:
    """Whether the program declared this leaf, which a view of a parameter under `no_grad` is by
    itself.
    """
    if leaf.kind is Kind.PARAMETER:  # `nn.Parameter(loss)`, which no module comes to hold
        own = leaf.parameter
        return bool(leaf.inputs) and own is not None and own.module is None
    return leaf.kind is Kind.LEAF and leaf.cut is not Cut.GRAD_MODE


def _cuts(value: Value) -> list[Value]:
    return sorted(
        (found for found in ancestors(value) if is_cut(found)), key=lambda cut: place(cut)
    )


def _is_wanted(leaf: Value, arrival: Arrival) -> bool:
    """Whether the program is after the gradient of this leaf, or of what was computed from it (in a
    step of MAML).
    """
    if any(
        wanted.requires_grad and leaf in ancestors(wanted) for wanted in arrival.sink.inputs or ()
    ):
        return True
    # what is asked for is something else: this raises, or gives None
    if arrival.sink.sink == "autograd.grad":
        return True
    has_steps = arrival.sink.assumed or arrival.tape.among(OptimizerStep, ZeroGrad)
    if leaf is not arrival.loss and not has_steps:
        return True
    held = (value for optimizer in arrival.tape.optimizers() for value in optimizer.parameters)
    return any(leaf in ancestors(value) for value in held) or _is_handed_on(leaf, arrival)


def _is_handed_on(leaf: Value, arrival: Arrival) -> bool:
    """Whether code out of view gets the leaf for something else than this loss: to make an
    optimizer, as it may be.
    """
    calls = (event.result for event in arrival.tape.of(ModuleCall))
    graph = arrival.sink.graph
    return any(
        made is not None
        and any(source is leaf for source in made.inputs)
        and all(made is not value for value in graph)
        for made in calls
    )


def _is_never_read(leaf: Span, paths: Paths) -> bool:
    """Whether the gradient of a leaf is read on no path, this one or one that goes on for
    longer.
    """
    return bool(paths.never(lambda tape: leaf in _read_on(tape), May.READ))


def _read_on(tape: Tape) -> set[Span]:
    """Where the leaves are made whose gradient a path reads."""
    return {
        value.at for event in tape.of(Clip) for value in event.parameters if value.kind is Kind.LEAF
    }


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the re-leafing away; what cut the graph before it is then a finding of its own."""
    statement = source.statement(finding.at)
    match statement:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")]):
            return unsafe("Do not make it a leaf", source.remove(statement))
    if (outer := _asking(statement, source)) is not None:
        return unsafe("Do not make it a leaf", source.remove(outer))
    node = source.expression(finding.at)
    edits = averaged(node, source) or as_it_is(node, source) or uncut(node, source)
    return unsafe("Do not make it a leaf", edits)


def _asking(statement: ast.stmt, source: FixSource) -> ast.If | None:
    """The `if not loss.requires_grad:` that nothing else hangs on than a statement that sets the
    flag.
    """
    match next(source.around(statement), None):
        case (
            ast.If(
                test=ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(attr="requires_grad") as flag),
                body=[only],
                orelse=[],
            ) as outer
        ):
            match only:
                case (
                    ast.Expr(value=ast.Call(func=ast.Attribute(value=value)))
                    | ast.Assign(value=ast.Call(func=ast.Attribute(value=value)))
                ):
                    if source.text(value) == source.text(flag.value):
                        return outer
    return None
