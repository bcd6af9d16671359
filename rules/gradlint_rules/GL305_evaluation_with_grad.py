"""# evaluation-with-grad (GL305)

A validation loop runs the model with grad mode on.

## What it does
Reports, as a note, a loop that calls a model in eval mode, records a graph for it, and never
back-propagates what comes out.

## Why it matters
The graph of every batch is built and thrown away: memory for all activations, and a good part of
the time, for nothing.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
model.eval()
error = 0.0
for x in torch.randn(3, 8, 4):  # expect: GL305
    prediction = model(x)
    assert prediction.grad_fn is not None
    error += prediction.abs().mean().item()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
model.eval()
error = 0.0
with torch.no_grad():
    for x in torch.randn(3, 8, 4):
        prediction = model(x)
        assert prediction.grad_fn is None
        error += prediction.abs().mean().item()
```

## What it does not report
- Models in train mode, and models of which nothing requires grad.
- Loops whose results are back-propagated, in the loop or after it.

## Limits
A loop is taken to be an evaluation where the model is in eval mode, unless code out of view gets a
loss that hangs on what the model gave: it may use the graph. A function that is given an
unknown model says nothing of the mode that its callers are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from gradlint.finding import Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Iteration, May, ModuleCall, Tape, TrainMode, graph, leaves
from gradlint_rules.cached import of_tape
from gradlint_rules.computed import foreign, losses
from gradlint_rules.evaluated import back_propagated, calls_in_eval_mode
from gradlint_rules.scalars import is_scalar
from gradlint_rules.words import places

SEVERITY = Severity.NOTE
_HELP = "Put the loop under `torch.no_grad()` or `torch.inference_mode()`."


def check(paths: Paths) -> Iterator[Report]:
    """Every loop that records graphs of a model in eval mode and back-propagates none of them."""
    reported: set[Span] = set()
    for loop, call, mode in paths.some(_unused):
        if loop not in reported and _is_never_used(call.at, paths):
            reported.add(loop)
            yield _report(loop, call, mode)


def _unused(tape: Tape) -> Iterator[tuple[Span, ModuleCall, TrainMode]]:
    """The calls whose graph no backward of the path needs, each with its loop."""
    found = _recorded(tape)
    starts = {event.loop: event.at for event in tape.of(Iteration) if event.begins} if found else {}
    for call, mode, is_used in found:
        loop = starts.get(call.iteration[-1][0])
        if loop is not None and not is_used:
            yield loop, call, mode


def _is_never_used(at: Span, paths: Paths) -> bool:
    """Whether the graphs of a call are needed on no path, whatever was not run."""
    return bool(paths.never(lambda tape: at in _used_at(tape), May.BACKWARD))


def _used_at(tape: Tape) -> set[Span]:
    """Where calls stand whose graph is needed, or that run beside a backward."""
    return {call.at for call, _, is_used in _recorded(tape) if is_used}


@of_tape
def _recorded(tape: Tape) -> list[tuple[ModuleCall, TrainMode, bool]]:
    """The calls in loops of models in eval mode that record a graph, and whether that is needed or
    a backward near.

    Of the calls under one `eval()` the outermost ones: a loop in a model's forward is no
    evaluation.
    """
    calls = list(calls_in_eval_mode(tape))
    trained = back_propagated(tape) if calls else {}
    training = {loop for sink in tape.backwards() for loop, _ in sink.iteration}
    training |= _handed_on(tape, {id(call.result) for call, _ in calls}) if calls else set()
    depths: dict[object, int] = {}
    for call, mode in calls:
        depths[_eval(mode)] = min(len(call.iteration), depths.get(_eval(mode), len(call.iteration)))
    return [
        (call, mode, call.iteration[-1][0] in training or id(call.result) in trained)
        for call, mode in calls
        if call.iteration and len(call.iteration) == depths[_eval(mode)] and _is_recorded(call)
    ]


def _handed_on(tape: Tape, recorded: AbstractSet[int]) -> set[int]:
    """The loops in which a loss of what a model gave goes to code out of view:
    `adapted = update_parameters(model, loss)`.
    """
    known = {id(value) for _, value in losses(tape)}
    return {
        loop
        for call in foreign(tape)
        for given in (call.result.inputs if call.result is not None else ())
        if (id(given) in known or is_scalar(given))
        and any(id(value) in recorded for value in graph(given))
        for loop, _ in call.iteration
    }


def _eval(mode: TrainMode) -> object:
    """What the changes by one `eval()` have in common: those of a model, and of layers in it that
    are out of view.
    """
    return mode.at, mode.stack, mode.iteration


def _is_recorded(call: ModuleCall) -> bool:
    result = call.result
    return (
        result is not None
        and result.requires_grad
        and not all(leaf.assumed for leaf in leaves(result))
    )


def _report(loop: Span, call: ModuleCall, mode: TrainMode) -> Report:
    at = replace(loop, end_line=loop.line, end_column=loop.column + len("for"))
    name = mode.module.path if mode.module else call.module.path
    message = (
        f"the loop records a graph in every round for `{name}`, which is in eval mode, and uses "
        "none"
    )
    related = [
        Related(call.at, "called here with grad mode on"),
        Related(mode.at, "put into eval mode here"),
    ]
    return Report(at, message, _HELP, places(at, *related))
