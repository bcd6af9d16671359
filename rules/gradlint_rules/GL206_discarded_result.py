"""# discarded-result (GL206)

The result of a method that changes nothing in place is thrown away.

## What it does
Reports expression statements such as `x.detach()`, `x.cpu()`, `x.to(device)`, `x.float()`,
`x.clamp(0, 1)` and `x.requires_grad` on a tensor: they compute a new tensor (or read a flag), and
leave `x` as it is.

## Why it matters
The line looks as if it did something. The tensor that was to be clamped is not, the one to be
detached still drags its graph along, and the one to be moved is on the wrong device.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log_variance = model(torch.randn(8, 4))
log_variance.clamp(-0.1, 0.1)  # expect: GL206
loss = log_variance.exp().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert log_variance.max() > 0.1
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log_variance = model(torch.randn(8, 4))
log_variance = log_variance.clamp(-0.1, 0.1)
loss = log_variance.exp().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert log_variance.max() <= 0.1
```

## What it does not report
- Methods with an effect: `x.clamp_(…)`, `x.backward()`, `x.requires_grad_()`, `x.register_hook(…)`,
  `x.item()` and whatever else waits for the device.
- `module.to(device)`, `module.cuda()`, `module.float()`, which act in place.
- The last expression of a cell, of a notebook or of a script (`# %%`), which is shown.
- Methods of what the statement itself makes: `model(x).mean()`, which warms something up, or
  measures it.
- A loop that does nothing else, and the same in each round: `for _ in range(3): x.sin()`.

## Limits
Only where the receiver is known to be a tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Fact
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import operation

SEVERITY = Severity.WARNING
FACT = "discarded-result"


def check(paths: Paths) -> Iterator[Report]:
    """Every fact `discarded-result`: `value` is the result, `detail` the operation, `at` the
    statement.
    """
    for event in paths.some(lambda tape: tape.facts(FACT)):
        if not _is_run(event):
            yield Report(event.at, _message(event), _help(event), hints=_called_on(event))


def _is_run(event: Fact) -> bool:
    """Whether the method is called on what this very statement makes, `model(x).mean()`: nobody
    wants the result.
    """
    made = event.value.inputs[0] if event.value and event.value.inputs else None
    while (
        made is not None
        and made.op.startswith("torch.Tensor.")
        and made.inputs
        and event.at.encloses(made.at)
    ):
        made = made.inputs[0]
    # where it is first read is not where it was made
    if made is None or made.op == "torch.Tensor.grad":
        return False
    return any(event.at.encloses(at) for at in (made.at, *made.stack))


def _called_on(event: Fact) -> dict[str, str]:
    """Whether the method was called on a leaf, to which no result can be bound."""
    receivers = event.value.inputs[:1] if event.value else ()
    return {
        "leaf": "yes"
        if any(receiver.is_leaf and receiver.requires_grad for receiver in receivers)
        else ""
    }


def _message(event: Fact) -> str:
    receiver = f"`{_receiver(event)}`"
    if event.detail.endswith("requires_grad"):
        return (
            f"reading `.requires_grad` changes nothing: {receiver} requires grad as little or as "
            "much as before"
        )
    return f"the result of {operation(event.detail)} is thrown away, and {receiver} stays as it is"


def _help(event: Fact) -> str:
    receiver = _receiver(event)
    if event.detail.endswith("requires_grad"):
        return f"To change it, call `{receiver}.requires_grad_()`."
    return f"Assign the result: `{receiver} = {event.text}`."


def _receiver(event: Fact) -> str:
    """What the method was called on, as the statement says it."""
    called = event.detail.rpartition(".")[2]
    return event.text.rpartition(f".{called}")[0] or event.text


def fix(finding: Finding, source: FixSource) -> Fix:
    """Binds the result to the name that the method was called on; a leaf is changed in place."""
    statement = source.statement(finding.at)
    match statement:
        case ast.Expr(value=ast.Attribute(attr="requires_grad", ctx=ast.Load()) as read):
            return unsafe("Call it", (source.replace_name(read, "requires_grad_()"),))
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        raise NoFixError("not a call")
    call = statement.value
    if finding.hints["leaf"] and isinstance(call.func, ast.Attribute):
        return unsafe("Change it in place", (source.replace_name(call.func, f"{call.func.attr}_"),))
    is_function = source.called(call.func).startswith("torch.") and bool(call.args)
    node: ast.expr = call.args[0] if is_function else call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        raise NoFixError("the tensor has no name")
    return unsafe("Keep the result", (source.before_text(statement, f"{source.text(node)} = "),))
