"""# frozen-loss (GL107)

Every parameter that the loss depends on was frozen, and none was unfrozen or replaced since.

## What it does
Follows the loss back to the parameters and reports the freezing statement (`model.requires_grad_(False)`, or
`parameter.requires_grad = False` in a loop over `parameters()`) where all that it finds are frozen leaves.

## Why it matters
The backward raises. The usual reason is a new head that did not arrive where the forward looks for it: assigned under
another name, created before the freezing loop, or unfrozen by a misspelt name.

## Example
```python
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classifier = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(self.body(x).relu())


torch.manual_seed(0)
model = Net()
for parameter in model.parameters():
    parameter.requires_grad = False  # expect: GL107
model.fc = torch.nn.Linear(8, 5)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)
loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
optimizer.zero_grad()
loss.backward()  # RuntimeError: does not require grad
optimizer.step()
```

## Use instead
```python
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classifier = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(self.body(x).relu())


torch.manual_seed(0)
model = Net()
for parameter in model.parameters():
    parameter.requires_grad = False
model.classifier = torch.nn.Linear(8, 5)
optimizer = torch.optim.SGD(model.classifier.parameters(), lr=0.1)
loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- A frozen body below a head that was added or unfrozen afterwards, adapters, prompts: one trainable leaf is enough.
- A frozen model whose input is optimised (an adversarial example, an inversion).
- `module.requires_grad = False`, which freezes nothing (GL516).
- A loop that freezes or replaces what a filter picks (`if pattern.match(name):`): only running it tells what it picks.

## Limits
Where a loss meets frozen parameters and other cuts, the other cuts are the finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Edit, Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import ancestors
from gradlint_rules.order import calls_of, related_line, together
from gradlint_rules.starved import Starved, Why, is_trained_by, starved
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, loss_of, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Unfreeze what is to be trained, or replace it after the freezing, under the name that the forward uses."


def check(paths: Paths) -> Iterator[Report]:
    """The statement that froze all the parameters of a loss."""
    for found in starved(paths, Why.FROZEN):
        if _hangs_on_a_filter(found):
            continue
        yield Report(found.at, _message(found), _HELP, found.related, hints=_built(found))


def _hangs_on_a_filter(found: Starved) -> bool:
    """Whether a loop over modules or names picked nothing or everything, by a question that the source leaves open."""
    computed = (value.iteration for value in ancestors(found.arrival.loss) if value.inputs)
    around = {loop for rounds in (found.arrival.sink.iteration, *computed) for loop, _ in rounds}
    return any(decision.loop is not None and decision.loop not in around for decision in found.decisions)


def _message(found: Starved) -> str:
    sink = found.arrival.sink
    parameters = f"every parameter that {loss_of(sink)} depends on{when(found.decisions)}"
    return f"{parameters} is frozen, and none is unfrozen since: {backward(sink)} raises"


def _built(found: Starved) -> dict[str, str]:
    """The lines on which the optimizers of this path are made: those that hold what is frozen, if any is seen to."""
    made = [optimizer for optimizer in found.arrival.tape.optimizers() if optimizer.at.path == found.at.path]
    holding = [optimizer for optimizer in made if is_trained_by(optimizer, found.culprit)] or made
    return {"optimizers": " ".join(map(str, sorted({optimizer.at.line for optimizer in holding})))}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Unfreezes, before the optimizer is made, the module whose parameters it is given."""
    lines = {int(line) for line in finding.hints["optimizers"].split()}
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(args=[ast.Call(func=ast.Attribute(attr="parameters", value=module)), *_]):
                if node.lineno in lines:
                    line = f"{source.operand(module)}.requires_grad_(True)"
                    return unsafe("Unfreeze what the optimizer holds", _unfrozen(line, node, finding, source))
    raise NoFixError("the optimizer is given no single module")


def _unfrozen(line: str, made: ast.Call, finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The line before the optimizer is made; where parameters are frozen in turns, behind the step of the other."""
    freezing = source.statement_on(finding.at.line)
    if finding.at.line < made.lineno:
        return source.before(source.statement(made), line)
    sink = source.statement_on(related_line(finding, "back-propagated"))
    here, there = together(freezing, sink, source)
    block = source.block(there)
    between = block[block.index(here) + 1 : block.index(there)]
    steps = [statement for statement in between if any(True for _ in calls_of(statement, "step"))]
    if not steps:
        raise NoFixError("no other turn ends before this one")
    return source.after(steps[-1], line)
