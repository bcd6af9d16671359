"""# context-not-entered (GL303)

A context manager of torch is made or named, and never entered.

## What it does
Reports `torch.no_grad()` or `torch.autocast(…)` as a statement of its own, `with torch.no_grad:`
without the call, `with no_grad() and autocast("cpu"):`, which enters the second only, and a context
manager of the program that yields one without entering it. It needs no training in view: the
statement is looked at wherever it stands.

## Why it matters
The code runs as if the line were not there: in full precision, or recording a graph.
`with torch.no_grad:` raises, as the class is no context manager.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
x = torch.randn(8, 4)
torch.no_grad()  # expect: GL303
prediction = model(x)
assert prediction.requires_grad
```

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
x = torch.randn(8, 4)
with torch.no_grad() and torch.autocast("cpu", dtype=torch.bfloat16):  # expect: GL303
    prediction = model(x)
assert prediction.requires_grad
```

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
with torch.no_grad:  # expect: GL303
    # TypeError: does not support the context manager protocol
    prediction = model(torch.randn(8, 4))
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
x = torch.randn(8, 4)
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    prediction = model(x)
assert not prediction.requires_grad
```

## What it does not report
- `@torch.no_grad` as a decorator without parentheses, which works.
- `torch.set_grad_enabled(False)` as a statement, which acts at once: see `grad-mode-leak` (GL301).
- A context that is stored, returned, or entered later by an `ExitStack`.

## Limits
What a function of another library does with a context that it is given is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Fact
from gradlint_rules.order import called_name, calls_of
from gradlint_rules.uncut import safe, unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
FACT = "context-not-entered"
_NOT_CALLED = "not-called"
_WITHOUT_GRADIENT = frozenset(["no_grad", "inference_mode"])


def check(paths: Paths) -> Iterator[Report]:
    """Every context of torch that is thrown away."""
    for fact in paths.some(lambda tape: tape.facts(FACT)):
        yield _report(fact)


def _report(fact: Fact) -> Report:
    if fact.detail == _NOT_CALLED:
        message, advice = (
            f"`{fact.text}` is not called, and the class is no context",
            f"Write `with {fact.text}():`.",
        )
    else:
        message = f"this `{fact.detail}` is made and never entered: it has no effect"
        advice = "Enter it by `with`; two of them by `with a, b:`."
    return Report(fact.at, message, advice, places(fact.at, *calls(fact.stack, ())))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Calls the class, enters both of two contexts, or puts what follows under a context that
    stands alone.
    """
    node = source.expression(finding.at)
    if not isinstance(node, ast.Call):
        return safe("Call it", (source.replace(node, f"{source.text(node)}()"),))
    outer = next(source.around(node))
    if isinstance(outer, ast.BoolOp):
        contexts = ", ".join(source.text(value) for value in outer.values)
        return unsafe("Enter both", (source.replace(outer, contexts),))
    statement = source.statement(node)
    match statement:
        case ast.Expr(value=ast.Yield(value=yielded)) if yielded is node:
            lines = (f"with {source.text(node)}:", f"{source.unit}yield")
            return unsafe("Enter it for what is run meanwhile", source.instead(statement, *lines))
    if not isinstance(statement, ast.Expr) or statement.value is not node:
        raise NoFixError("no statement of its own")
    covered = _covered(node, source.block(statement), statement)
    wrapped = source.wrap(covered, f"with {source.text(node)}:")
    return unsafe("Enter it for what follows", (*source.remove(statement), *wrapped))


def _covered(context: ast.Call, block: Sequence[ast.stmt], statement: ast.stmt) -> list[ast.stmt]:
    """What is meant to run in a context that stands alone: all that follows, up to the training
    step.

    Without gradient it is the next statement alone, where a backward follows: the targets, and not
    the loss.
    """
    following = block[block.index(statement) + 1 :]
    is_off = called_name(context) in _WITHOUT_GRADIENT
    loss = (
        next((call.func for other in following for call in calls_of(other, "backward")), None)
        if is_off
        else None
    )
    covered: list[ast.stmt] = []
    for other in following:
        if any(True for _ in calls_of(other, "backward", "zero_grad", "step")):
            break
        if covered and (loss is not None or isinstance(other, ast.Return)):
            break  # what is given back may be the loss
        covered.append(other)
    if not covered:
        raise NoFixError("nothing is left to cover")
    if isinstance(loss, ast.Attribute) and _named(loss.value, ast.Load) & _named(
        covered[0], ast.Store
    ):
        raise NoFixError("the loss is computed right below")
    return covered


def _named(node: ast.AST, use: type[ast.expr_context]) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, use)
    }
