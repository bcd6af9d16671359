"""# step-before-backward (GL203)

Parameters are updated between a forward and the backward of a graph that saved them.

## What it does
Reports `optimizer.step()`, or another update of parameters in place (under `no_grad`, too), where a
graph that was built before it saved those parameters and is back-propagated after it.

## Why it matters
The gradient would have to be computed with weights that are gone, and the backward raises "modified
by an inplace operation". Before PyTorch checked this, such code trained on a wrong gradient.

## Example
```python
import torch

torch.manual_seed(0)
generator = torch.nn.Linear(2, 4)
critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
train_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
train_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
fake = generator(torch.randn(8, 2))
critic_loss = critic(fake.detach()).mean() - critic(torch.randn(8, 4)).mean()
generator_loss = -critic(fake).mean()
train_critic.zero_grad()
critic_loss.backward()
train_critic.step()  # expect: GL203
train_generator.zero_grad()
generator_loss.backward()  # RuntimeError: modified by an inplace operation
train_generator.step()
```

## Use instead
Build the graph after the step:

```python
import torch

torch.manual_seed(0)
generator = torch.nn.Linear(2, 4)
critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
train_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
train_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
fake = generator(torch.randn(8, 2))
critic_loss = critic(fake.detach()).mean() - critic(torch.randn(8, 4)).mean()
train_critic.zero_grad()
critic_loss.backward()
train_critic.step()
generator_loss = -critic(fake).mean()
train_generator.zero_grad()
generator_loss.backward()
train_generator.step()
```

Or back-propagate all losses before any step.

## What it does not report
- Graphs that are built again after the step, and models that share no saved parameter: they may
  step in any order.
- Parameters that the graph did not save: a bias, an embedding, the weight of a Linear whose input
  needs no gradient.

## Limits
Which parameters an unknown module saves is unknown: a `warning` where a gradient goes on through
it, and every model that the backward before the step has taught is in the later graph, so that the
step changes one of them in any case. Updates through `.data` go unnoticed by PyTorch: they are
`data-mutation` (GL204).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.finding import Edit, Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import OptimizerStep
from gradlint_rules.order import called_name, names_of, whole_call
from gradlint_rules.outrun import outrun
from gradlint_rules.overwritten import Overwritten, is_step, overwritten
from gradlint_rules.uncut import unsafe, values_bound_to, values_of
from gradlint_rules.words import backward, loss_of, places, quoted, to_sink

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
RAISES = "modified by an inplace operation"
_HELP = "Compute this loss after the step, or run its backward before the step."


def check(paths: Paths) -> Iterator[Report]:
    """Every update of parameters that a graph still waiting for its backward has saved."""
    for found in overwritten(paths, counted=True):
        if found.is_parameter or is_step(found.write.op):
            step = _own_step(found)
            at = found.at if step is None else step.at
            related = places(at, *_written(found, step), *found.related)
            yield Report(at, _message(found, step), _HELP, related, hints=_ordered(found, at))
    yield from _out_of_view(paths)


def _own_step(found: Overwritten) -> OptimizerStep | None:
    """The call of an optimizer of the program whose own `step` writes: what is wrong is when."""
    steps = found.arrival.tape.of(OptimizerStep)
    return next((step for step in steps if step.at in found.write.stack), None)


def _written(found: Overwritten, step: OptimizerStep | None) -> Iterator[Related]:
    if step is not None:
        yield Related(found.at, "changed here")


def _out_of_view(paths: Paths) -> Iterator[Report]:
    """Steps of optimizers that are handed in, over models that are, too."""
    for found in paths.some(outrun):
        at = found.step.at
        graph = f"the graph of {loss_of(found.sink)} has run through before ({quoted(found.made)})"
        message = f"the step changes parameters that {graph}: {backward(found.sink)} raises"
        related = places(
            at, Related(found.made.at, "computed before the step"), to_sink(found.sink)
        )
        lines = {"steps": str(at.line), "sinks": str(found.sink.at.line)}
        yield Report(at, message, _HELP, related, severity=Severity.WARNING, hints=lines)


def _message(found: Overwritten, step: OptimizerStep | None) -> str:
    update = "the step changes" if step or is_step(found.write.op) else "this changes"
    graph = f"the graph of {loss_of(found.sink)} saved before"
    return f"{update} parameters that {graph}{found.condition}: {backward(found.sink)} raises"


def _ordered(found: Overwritten, shown: Span) -> dict[str, str]:
    """The lines of the step and of the backward in this file, the calls that led there too,
    innermost first.
    """
    steps = (found.write.at, *reversed(found.write.stack))
    sinks = (found.sink.at, *reversed(found.sink.stack))
    users = (found.user.at, *reversed(found.user.stack))
    lines = {"steps": steps, "sinks": sinks, "users": users}
    written = {
        name: " ".join(str(at.line) for at in places if at.path == shown.path)
        for name, places in lines.items()
    }
    return {**written, "adds": "yes"} if _adds_to_the_step(found) else written


def _adds_to_the_step(found: Overwritten) -> bool:
    """Whether the backward reaches what the step before it was to change by another loss alone."""
    reached = {id(leaf.parameter) for leaf in found.sink.leaves if leaf.parameter is not None}
    return any(
        id(value.parameter) in reached
        for step in found.arrival.tape.of(OptimizerStep)
        if step.at == found.at
        for value in step.optimizer.parameters
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Computes the loss after the step, or else steps after its backward."""
    step, sink = _neighbours(finding, source)
    later = _only_for(sink, step, source.block(step))
    if later and _hold_any(later, finding.hints.get("users", "").split()):
        return unsafe("Compute the loss after the step", source.move_after(later, step))
    if between := _between_two_steps(step, sink, source):
        edits = [edit for each in between for edit in source.remove(each)]
        return unsafe("Take one step by both", tuple(edits))
    moved = source.move_after([step], sink)
    if "adds" in finding.hints:
        moved = (*moved, _for_its_own(step, sink, source))
    return unsafe("Step after the backward", moved)


def _hold_any(statements: Sequence[ast.stmt], lines: Sequence[str]) -> bool:
    """Whether what saved the parameters stands on one of these lines of the statements."""
    return not lines or any(
        each.lineno <= int(line) <= (each.end_lineno or each.lineno)
        for each in statements
        for line in lines
    )


def _between_two_steps(step: ast.stmt, sink: ast.stmt, source: FixSource) -> list[ast.stmt]:
    """A step, and what clears its gradients before the backward, where the same optimizer steps
    again behind that; nothing where it does not.
    """
    block = source.block(step)
    own = _receiver(step, "step", source)
    behind = block[block.index(sink) + 1 :]
    if not own or all(_receiver(each, "step", source) != own for each in behind):
        return []
    inner = block[block.index(step) + 1 : block.index(sink)]
    return [step, *(each for each in inner if _receiver(each, "zero_grad", source) == own)]


def _receiver(statement: ast.stmt, method: str, source: FixSource) -> str:
    """The `x` of a statement that is no more than `x.method(…)`; "" for another."""
    call = whole_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != method:
        return ""
    return source.text(call.func.value)


def _for_its_own(step: ast.stmt, sink: ast.stmt, source: FixSource) -> Edit:
    """The backward kept to what the optimizer holds that steps behind it: it adds nothing to the
    gradients of the one before.
    """
    call = whole_call(sink)
    if call is None or called_name(call) != "backward":
        raise NoFixError("no backward of a loss")
    block = source.block(step)
    later = (_receiver(each, "step", source) for each in block[block.index(sink) + 1 :])
    own = next((name for name in later if name), "")
    if not own or own == _receiver(step, "step", source):
        raise NoFixError("no other optimizer steps behind it")
    return source.add_argument(call, f"inputs={_held_by(own, step, source)}")


def _held_by(optimizer: str, near: ast.AST, source: FixSource) -> str:
    """How the parameters of an optimizer are written."""
    made = values_bound_to(optimizer, source, near)
    match made:
        case [ast.Call(args=[ast.Name() as given, *_])]:
            lists = values_of(given, source, near)
            if (
                lists
                and all(_is_list(each) for each in lists)
                and source.scope(made[0]) is source.scope(near)
            ):
                return given.id
        case [ast.Call(args=[ast.Call(func=ast.Attribute(attr="parameters")) as given, *_])]:
            return f"list({source.text(given)})"
    return f'[p for group in {optimizer}.param_groups for p in group["params"]]'


def _is_list(value: ast.expr) -> bool:
    """Whether a value can be gone through again."""
    is_made = isinstance(value, ast.Call) and called_name(value) in ("list", "tuple")
    return is_made or isinstance(value, ast.List | ast.ListComp | ast.Tuple)


def _neighbours(finding: Finding, source: FixSource) -> tuple[ast.stmt, ast.stmt]:
    """The statements of one block that hold the step and the backward."""
    for step_line in finding.hints["steps"].split():
        for sink_line in finding.hints["sinks"].split():
            steps, sinks = _around(int(step_line), source), _around(int(sink_line), source)
            for step in steps:
                for sink in sinks:
                    block = source.block(step)
                    if step is not sink and sink in block and block.index(step) < block.index(sink):
                        return step, sink
    raise NoFixError("the step and the backward stand in different functions")


def _around(line: int, source: FixSource) -> list[ast.stmt]:
    """The statements around a line, innermost first, as far as its function."""
    inner = source.statement_on(line)
    found = [inner]
    for outer in source.around(inner):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        if isinstance(outer, ast.stmt):
            found.append(outer)
    return found


def _only_for(sink: ast.stmt, step: ast.stmt, block: list[ast.stmt]) -> list[ast.stmt]:
    """The assignments before the step that serve this backward alone, in order."""
    needed = names_of(sink, ast.Load)
    later: list[ast.stmt] = []
    for statement in reversed(block[: block.index(step)]):
        bound = names_of(statement, ast.Store)
        between = block[block.index(statement) + 1 : block.index(step) + 1]
        used = {
            name for other in between if other not in later for name in names_of(other, ast.Load)
        }
        if isinstance(statement, ast.Assign) and bound & needed and not bound & used:
            later.insert(0, statement)
            needed |= names_of(statement, ast.Load)
    return later
