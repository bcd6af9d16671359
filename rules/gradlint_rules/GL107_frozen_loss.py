"""# frozen-loss (GL107)

Every parameter that the loss depends on was frozen, and none was unfrozen or replaced since.

## What it does
Follows the loss back to the parameters and reports the freezing statement
(`model.requires_grad_(False)`, or `parameter.requires_grad = False` in a loop over `parameters()`)
where all that it finds are frozen leaves.

## Why it matters
The backward raises. The usual reason is a new head that did not arrive where the forward looks for
it: assigned under another name, created before the freezing loop, or unfrozen by a misspelt name.

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
- A frozen body below a head that was added or unfrozen afterwards, adapters, prompts: one trainable
  leaf is enough.
- A frozen model whose input is optimised (an adversarial example, an inversion).
- `module.requires_grad = False`, which freezes nothing (GL516).
- A loop that freezes or replaces what a filter picks (`if pattern.match(name):`), where only
  running it tells what it picks; the default of an option does (`name.startswith(args.frozen)`).

## Limits
Where a loss meets frozen parameters and other cuts, the other cuts are the finding.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from gradlint.finding import Edit, Finding, Fix, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import ancestors
from gradlint_rules.freezes import is_trained_by
from gradlint_rules.order import (
    called_name,
    calls_of,
    nested,
    related_statement,
    together,
    whole_call,
)
from gradlint_rules.starved import Starved, Why, starved
from gradlint_rules.thawing import thawed_behind
from gradlint_rules.uncut import unsafe, values_of
from gradlint_rules.words import backward, loss_of, when

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = (
    "Unfreeze what is to be trained, or replace it after the freezing, under the name that the "
    "forward uses."
)


def check(paths: Paths) -> Iterator[Report]:
    """The statement that froze all the parameters of a loss."""
    for found in starved(paths, Why.FROZEN):
        if _hangs_on_a_filter(found):
            continue
        yield Report(found.at, _message(found), _HELP, found.related, hints=_built(found))


def _hangs_on_a_filter(found: Starved) -> bool:
    """Whether a loop over modules or names picked nothing or everything, by a question that the
    source leaves open.
    """
    computed = (value.iteration for value in ancestors(found.arrival.loss) if value.inputs)
    around = {loop for rounds in (found.arrival.sink.iteration, *computed) for loop, _ in rounds}
    return any(
        decision.loop is not None and decision.loop not in around and not decision.by_default
        for decision in found.decisions
    )


def _message(found: Starved) -> str:
    sink = found.arrival.sink
    parameters = f"every parameter that {loss_of(sink)} depends on{when(found.decisions)}"
    return f"{parameters} is frozen, and none is unfrozen since: {backward(sink)} raises"


def _built(found: Starved) -> dict[str, str]:
    """The lines on which the optimizers of this path are made: those that hold what is frozen, if
    any is seen to.
    """
    made = [
        optimizer
        for optimizer in found.arrival.tape.optimizers()
        if optimizer.at.path == found.at.path
    ]
    holding = [optimizer for optimizer in made if is_trained_by(optimizer, found.culprit)] or made
    return {"optimizers": " ".join(map(str, sorted({optimizer.at.line for optimizer in holding})))}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Unfreezes the module whose parameters an optimizer is given, before that is made, or does not
    freeze it.
    """
    lines = {int(line) for line in finding.hints["optimizers"].split()}
    made = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and node.lineno in lines and node.args
    ]
    freezing = _freezing(finding, source)
    if freezing is not None and (thawed := thawed_behind(freezing, source)):
        return unsafe("Unfreeze it when the context ends", thawed)
    for call in made:
        modules = {source.operand(each) for each in _given(call, source)}
        if len(modules) != 1:
            continue
        (module,) = modules
        if (
            freezing is not None
            and _frozen_by(freezing, source) == module
            and _is_before(freezing, call, source)
        ):
            return unsafe("Do not freeze what the optimizer holds", source.remove(freezing))
        with contextlib.suppress(NoFixError):
            line = f"{module}.requires_grad_(True)"
            return unsafe(
                "Unfreeze what the optimizer holds", _unfrozen(line, call, finding, source)
            )
    for place in (each.at for each in finding.related if each.role is Role.CALL):
        caller = source.statement(place if place.path == finding.at.path else finding.at)
        if (freeze := whole_call(caller)) is not None and _does_nothing_else(freeze, source):
            return unsafe("Do not freeze it", source.remove(caller))
    frozen = _frozen_together(source.statement(finding.at), source)
    return unsafe(
        "Do not freeze it", tuple(edit for each in frozen for edit in source.remove(each))
    )


def _frozen_together(statement: ast.stmt, source: FixSource) -> list[ast.stmt]:
    """A statement that only freezes, and its neighbours that freeze parts of the same module."""
    root = _root(statement)
    block = source.block(statement)
    if not root or root == "self" or isinstance(source.scope(statement), ast.FunctionDef):
        raise NoFixError("the optimizer is given no single module")
    same = [_only_freezes(each) and _root(each) == root for each in block]
    first = last = block.index(statement)
    while first and same[first - 1]:
        first -= 1
    while last + 1 < len(block) and same[last + 1]:
        last += 1
    return block[first : last + 1] if same[first] else []


def _root(statement: ast.stmt) -> str:
    """The name by which a statement that freezes begins: `model` of
    `model.weight.requires_grad = False`.
    """
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(attr="requires_grad", value=frozen)],
            value=ast.Constant(value=False),
        ):
            names = [node.id for node in ast.walk(frozen) if isinstance(node, ast.Name)]
            return names[0] if names else ""
    return ""


def _given(optimizer: ast.Call, source: FixSource) -> Iterator[ast.expr]:
    """The modules whose parameters an optimizer is given, there or by a name."""
    given = optimizer.args[0]
    values = values_of(given, source, optimizer) if isinstance(given, ast.Name) else [given]
    for node in (each for value in values for each in ast.walk(value)):
        match node:
            case ast.Call(func=ast.Attribute(attr="parameters" | "named_parameters", value=module)):
                yield module


def _freezing(finding: Finding, source: FixSource) -> ast.stmt | None:
    """The statement that freezes, and nothing else: a call, or a loop over parameters."""
    statement = source.statement(finding.at)
    loop = next(source.around(statement))
    if isinstance(loop, ast.For) and loop.body == [statement] and not loop.orelse:
        return loop
    return statement if whole_call(statement) is not None else None


def _frozen_by(freezing: ast.stmt, source: FixSource) -> str:
    """The module that a statement freezes, as it is written: `model`."""
    match freezing:
        case ast.For(iter=ast.Call(func=ast.Attribute(attr="parameters", value=module))):
            return source.operand(module)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=module))):
            return source.operand(module)
    return ""


def _is_before(freezing: ast.stmt, made: ast.Call, source: FixSource) -> bool:
    """Whether a module is frozen in the block, or one around it, in which the optimizer is made
    later.
    """
    return freezing.lineno < made.lineno and any(
        freezing in source.block(outer) for outer in nested(source.statement(made), source)
    )


def _does_nothing_else(call: ast.Call, source: FixSource) -> bool:
    """Whether a function of the file that is called only freezes: nothing but loops and what sets
    `requires_grad`.
    """
    functions = [each for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef)]
    bodies = [each.body for each in functions if each.name == called_name(call)]
    return len(bodies) == 1 and all(_only_freezes(each) for each in bodies[0])


def _only_freezes(statement: ast.stmt) -> bool:
    match statement:
        case ast.For(body=body, orelse=[]):
            return all(map(_only_freezes, body))
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_" | "eval"))):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _unfrozen(line: str, made: ast.Call, finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The line before the optimizer is made; where parameters are frozen in turns, behind the step
    of the other.
    """
    freezing = source.statement_on(finding.at.line)
    if finding.at.line < made.lineno:
        return source.before(source.statement(made), line)
    sink = related_statement(finding, Role.BACKWARD, source)
    here, there = together(freezing, sink, source)
    block = source.block(there)
    between = block[block.index(here) + 1 : block.index(there)]
    steps = [statement for statement in between if any(True for _ in calls_of(statement, "step"))]
    if not steps:
        raise NoFixError("no other turn ends before this one")
    return source.after(steps[-1], line)
