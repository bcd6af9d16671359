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
from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import OptimizerStep
from gradlint_rules.order import names_of
from gradlint_rules.outrun import outrun
from gradlint_rules.overwritten import Overwritten, is_step, overwritten
from gradlint_rules.uncut import unsafe
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
            yield Report(at, _message(found, step), _HELP, related, hints=_ordered(found))
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


def _ordered(found: Overwritten) -> dict[str, str]:
    """The lines of the step and of the backward in this file, the calls that led there too,
    innermost first.
    """
    steps = (found.write.at, *reversed(found.write.stack))
    sinks = (found.sink.at, *reversed(found.sink.stack))
    lines = {"steps": steps, "sinks": sinks}
    return {
        name: " ".join(str(at.line) for at in places if at.path == found.at.path)
        for name, places in lines.items()
    }


def fix(finding: Finding, source: FixSource) -> Fix:
    """Computes the loss after the step, or else steps after its backward."""
    step, sink = _neighbours(finding, source)
    later = _only_for(sink, step, source.block(step))
    if later:
        return unsafe("Compute the loss after the step", source.move_after(later, step))
    return unsafe("Step after the backward", source.move_after([step], sink))


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
