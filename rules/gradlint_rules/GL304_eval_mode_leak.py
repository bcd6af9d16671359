"""# eval-mode-leak (GL304)

A model is put into eval mode for an evaluation, and the next training step runs in eval mode.

## What it does
Reports `model.eval()` inside the training loop, or in what the loop calls, that no `model.train()`
follows before the next training step of this model.

## Why it matters
Dropout is off and batch normalisation uses and keeps its running statistics: from the second epoch
on another model is trained, without a word.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
model.train()
for epoch in range(3):
    assert model.training == (epoch == 0)
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()  # expect: GL304
    with torch.no_grad():
        print((model(x) - y).abs().mean().item())
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
for epoch in range(3):
    model.train()
    assert model.training
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print((model(x) - y).abs().mean().item())
```

## What it does not report
- Models that are trained in eval mode on purpose, with no evaluation in between: frozen batch
  normalisation.
- A loss that is computed in eval mode, where `train()` puts the mode back before the backward.
- Teachers and other networks that nothing trains.
- Gradients that nobody takes a step with, of a model that is made in view: those by which its
  channels are ranked.
- Models in which nothing differs between the modes: no dropout, no batch normalisation, and no
  question for the mode (`self.training`) but beside a setting of the model that is off.

## Limits
A mode that is set to something unknown, such as `model.train(was_training)`, is taken to be right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from gradlint.finding import Edit, Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import (
    Backward,
    Event,
    Fact,
    InPlace,
    Kind,
    Module,
    ModuleCall,
    OptimizerMade,
    OptimizerStep,
    Tape,
    TrainMode,
    Value,
    leaves,
)
from gradlint_rules.accounts import ELSEWHERE, accounts
from gradlint_rules.evaluated import Modes
from gradlint_rules.held import reached
from gradlint_rules.order import called_name, nested, receiver, whole_call
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, calls, places

_UPDATING = (OptimizerStep, OptimizerMade, InPlace, "data-set")
SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Call `train()` at the start of each epoch, and after each evaluation within one."


def check(paths: Paths) -> Iterator[Report]:
    """Every `eval()` for an evaluation after which the model is trained in eval mode."""
    reported: set[Span] = set()
    if not any(paths.some(lambda tape: tape.of(TrainMode) and tape.of(Backward))):
        return
    unused = _unused(paths)
    updates = any(map(_updates, paths.some(lambda tape: tape.among(*_UPDATING))))
    for mode, sink in paths.some(lambda tape: _leaks(tape, unused)):
        if mode.at not in reported and (updates or not _is_in_view(sink)):
            reported.add(mode.at)
            yield _report(mode, sink)


def _report(mode: TrainMode, sink: Backward) -> Report:
    message = (
        f"`{mode.text}` leaves the model in eval mode, and {backward(sink)} of the next step "
        "trains it so"
    )
    related = places(
        mode.at, *calls(mode.stack, sink.stack), Related(sink.at, "the next training step")
    )
    return Report(mode.at, message, _HELP, related)


def _updates(event: Event) -> bool:
    """Whether something updates parameters, or is there for it: what has their gradients is not the
    loss alone.
    """
    match event:
        case OptimizerStep() | OptimizerMade():
            return True
        case InPlace(before=Value(parameter=own, inputs=inputs)):
            return own is not None or any(value.parameter is not None for value in inputs[:1])
        case Fact(what="data-set"):
            return True
    return False


def _is_in_view(sink: Backward) -> bool:
    """Whether all that a backward gives a gradient was made by code in view."""
    return all(leaf.kind is Kind.PARAMETER and not leaf.assumed for leaf in leaves(sink.value))


def _unused(paths: Paths) -> set[int]:
    """The ids of the backwards whose gradients are cleared before any step: those for an
    adversarial input, say.
    """
    updates = [update for account in accounts(paths) for update in account.updates]
    wiped = {id(wiped.sink) for update in updates for wiped in update.wiped}
    return wiped - {id(sink) for update in updates for sink in update.fresh}


def _leaks(tape: Tape, unused: AbstractSet[int]) -> Iterator[tuple[TrainMode, Backward]]:
    # for training, frozen or not
    needed = {id(value) for sink in tape.backwards() for value in _computed_from(sink.value)}
    modes = Modes()
    evaluated: set[int] = set()  # ids of changes of mode under which something was evaluated
    used: list[tuple[ModuleCall, TrainMode | None]] = []  # what the next backward can run through
    # by the id of a module: whether it is trained in eval mode from the first step on
    meant: dict[int, bool] = {}
    for event in tape.among(TrainMode, ModuleCall, Backward):
        if isinstance(event, TrainMode):
            modes.change(event)
            if event.training:
                used = [(call, None if _is_of(call, event) else mode) for call, mode in used]
        elif isinstance(event, ModuleCall):
            mode = modes.of(event)
            used.append((event, mode))
            if _is_eval(mode) and id(event.result) not in needed:
                evaluated.add(id(mode))
        elif isinstance(event, Backward) and event.sink not in ELSEWHERE:
            for call, mode in _behind(event, used) if id(event) not in unused else ():
                is_left = mode is not None and id(mode) in evaluated and _is_in_loop_of(mode, event)
                is_eval_from_the_first = _is_eval(mode) and not is_left
                is_meant = meant.setdefault(id(call.module), is_eval_from_the_first)
                if mode is not None and is_left and not is_meant:
                    yield mode, event
            used = []


def _computed_from(loss: Value) -> Iterator[Value]:
    """What the numbers of a loss are made of, and not what merely chose among them: actions that a
    policy took, classes, masks.
    """
    seen, pending = {id(loss)}, [loss]
    for current in pending:
        yield current
        for source in current.inputs if current.dtype.is_differentiable else ():
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _is_of(call: ModuleCall, change: TrainMode) -> bool:
    """Whether a change of mode concerns the module that was called."""
    return change.module is not None and call.module.is_within(change.module)


def _is_eval(mode: TrainMode | None) -> bool:
    return mode is not None and mode.training is False and mode.matters


def _behind(
    sink: Backward, used: Sequence[tuple[ModuleCall, TrainMode | None]]
) -> Iterator[tuple[ModuleCall, TrainMode | None]]:
    """The calls that a backward runs through, of modules that it trains, each with the last change
    of their mode.

    One that gives back a parameter as it is has computed nothing.
    """
    if not any(_is_eval(mode) for _, mode in used):
        return
    run_through = {id(value) for value in sink.graph}
    owners = [parameter.module for parameter in reached(sink) if parameter.module is not None]
    for call, mode in used:
        trained = mode is None or any(_is_part(owner, mode.module) for owner in owners)
        is_run_through = (
            call.result is not None and not call.result.is_leaf and id(call.result) in run_through
        )
        if is_run_through and trained:
            yield call, mode


def _is_in_loop_of(mode: TrainMode, sink: Backward) -> bool:
    return bool({loop for loop, _ in mode.iteration} & {loop for loop, _ in sink.iteration})


def _is_part(owner: Module, module: Module | None) -> bool:
    return module is not None and owner.is_within(module)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Puts `train()` at the head of the loop that holds both, behind the call that evaluates, or at
    the end of it.
    """
    statement = source.statement(finding.at)
    call = whole_call(statement)
    if call is None:
        raise NoFixError("the call is part of something else")
    model = receiver(call, source)
    loops = [outer for outer in nested(statement, source) if isinstance(outer, ast.For | ast.While)]
    if loops:
        return unsafe(
            "Train in train mode", _at_the_head(_outermost(loops, finding), model, source)
        )
    return unsafe("Train in train mode", _behind_the_call(finding, model, statement, source))


def _outermost(loops: Sequence[ast.For | ast.While], finding: Finding) -> ast.For | ast.While:
    """The innermost loop that holds the next training step, too."""
    lines = {related.at.line for related in finding.related if related.at.path == finding.at.path}
    return next(
        (loop for loop in loops if any(loop.lineno <= n <= (loop.end_lineno or 0) for n in lines)),
        loops[-1],
    )


def _at_the_head(loop: ast.For | ast.While, model: str, source: FixSource) -> tuple[Edit, ...]:
    block = source.block(loop)
    before = block[block.index(loop) - 1] if block.index(loop) else None
    if before is not None and source.text(before) == f"{model}.train()":
        return source.move_before([before], loop.body[0])
    return source.first(loop.body, f"{model}.train()")


def _behind_the_call(
    finding: Finding, model: str, statement: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """`train()` behind the statement that calls the function in which the model is put into eval
    mode.
    """
    function = source.scope(statement)
    if isinstance(function, ast.Module):
        raise NoFixError("the training is not in view")
    for related in finding.related:
        if related.role is Role.CALL and related.at.path == finding.at.path:
            caller = source.statement(related.at)
            for call in (node for node in ast.walk(caller) if isinstance(node, ast.Call)):
                if called_name(call) == function.name and not isinstance(caller, ast.Return):
                    return source.after(
                        caller, f"{_as_called(model, call, function, source)}.train()"
                    )
    return _at_the_end(model, statement, source)


def _at_the_end(model: str, statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """`train()` behind all that follows the `eval()`, which other files call."""
    block = source.block(statement)
    following = block[block.index(statement) + 1 :]
    *inner, last = [statement, *following]
    result = last.value if isinstance(last, ast.Return) else None
    left = [
        node
        for each in inner
        for node in ast.walk(each)
        if isinstance(node, ast.Return | ast.Yield | ast.Raise)
    ]
    computes = result is not None and any(
        isinstance(node, ast.Call | ast.Yield) for node in ast.walk(result)
    )
    if left or computes or not following or block is not source.scope(statement).body:
        raise NoFixError("it is left in more than one way, or no call of it is in view")
    train = f"{model}.train()"
    return source.before(last, train) if isinstance(last, ast.Return) else source.after(last, train)


def _as_called(
    model: str, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, source: FixSource
) -> str:
    """What the function calls `model`, by the name that it has where the function is called."""
    head, dot, rest = model.partition(".")
    names = [argument.arg for argument in function.args.args]
    if head not in names:
        return model
    is_method = names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute)
    if is_method and head == names[0]:
        return f"{receiver(call, source)}{dot}{rest}"
    given = dict(zip(names[is_method:], call.args, strict=False)) | {
        k.arg or "": k.value for k in call.keywords
    }
    if head not in given:
        raise NoFixError("the model is not given")
    return f"{source.operand(given[head])}{dot}{rest}"
