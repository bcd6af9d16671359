"""# hook-argument (GL805)

A hook of `register_post_accumulate_grad_hook` takes its argument for the gradient: it is the
parameter.

## What it does
Reports where such a hook writes to its argument, adds it to a gradient, sums it over processes,
returns what it computes from it or does nothing but keep a sum, a mean or a norm of it, and nowhere
reads the argument's `.grad`.

## Why it matters
`Tensor.register_hook` calls its hook with the gradient, `register_post_accumulate_grad_hook` with
the parameter, whose `.grad` is there by then; what it returns is ignored. A hook that was written
for the one adds up weights in place of gradients, or scales the weights themselves. Nothing is
raised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)


def clip(gradient):
    gradient.data.clamp_(-0.1, 0.1)  # expect: GL805


model.weight.register_post_accumulate_grad_hook(clip)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert model.weight.abs().max() < 0.4
```

## Use instead
The `.grad` of the argument:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)


def clip(parameter):
    parameter.grad.clamp_(-0.1, 0.1)


model.weight.register_post_accumulate_grad_hook(clip)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Hooks that read the `.grad` of their argument, whatever else they do with it: weight decay in the
  backward.
- Hooks that hand their argument on, or look something up by it: `optimizers[parameter].step()`.
- Hooks of `Tensor.register_hook`, which are given the gradient.

## Limits
A hook is judged where its function is in view, and what it is handed has a name of its own:
`lambda *given` does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Edit, Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Edits, FixSource, NoFixError, Report
from gradlint.tape import WRITTEN, Fact, Tape
from gradlint_rules.order import unused
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_MESSAGE = (
    "the hook takes its argument for the gradient: `register_post_accumulate_grad_hook` gives it "
    "the parameter"
)
_HELP = "Use the `.grad` of the argument, or `register_hook`, which gives its hook the gradient."
_REGISTERED = "registered here"


def check(paths: Paths) -> Iterator[Report]:
    """Every place where a hook takes the parameter for its gradient."""
    for fact in paths.some(_mistaken):
        registered = [Related(at, _REGISTERED, Role.REGISTERED) for at, _ in fact.related]
        related = places(fact.at, *registered, *calls(fact.stack, ()))
        yield Report(
            fact.at, _MESSAGE, _HELP, related, hints={"how": fact.detail, "argument": fact.text}
        )


def _mistaken(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("parameter-for-gradient")


def fix(finding: Finding, source: FixSource) -> Fix:
    """Gives a hook that reads gradients the gradient, and has one that writes to them write to the
    parameter's.
    """
    places = [
        each.at
        for each in finding.related
        if each.role is Role.REGISTERED and each.at.path == finding.at.path
    ]
    node = source.expression(places[0]) if places else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        raise NoFixError("it is registered elsewhere")
    if finding.hints["how"] != WRITTEN:
        return unsafe("Give it the gradient", (source.replace_name(node.func, "register_hook"),))
    return unsafe("Write to the gradient of the parameter", _of_parameter(finding, source))


def _of_parameter(finding: Finding, source: FixSource) -> Edits:
    """The gradient of the parameter in the place of the argument, which gets the name of what it
    is.
    """
    hook, given = _hook(finding.at, source), finding.hints["argument"]
    name = unused("parameter", hook)
    edits: list[Edit] = [
        source.replace_name(each, name) for each in hook.args.args if each.arg == given
    ]
    for use in ast.walk(hook):
        if isinstance(use, ast.Name) and use.id == given:
            outer = next(source.around(use))
            is_bared = isinstance(outer, ast.Attribute) and outer.attr == "data"
            read = outer if is_bared else use
            edits.append(source.replace(read, f"{name}.grad"))  # type: ignore[arg-type]
    return tuple(edits)


def _hook(at: Span, source: FixSource) -> ast.FunctionDef | ast.Lambda:
    """The function around what it does with its argument; it is used for nothing else than this
    hook.
    """
    statement = source.statement(at)
    node = statement if isinstance(statement, ast.AugAssign) else source.expression(at)
    for outer in source.around(node):
        if isinstance(outer, ast.Lambda):
            return outer
        if isinstance(outer, ast.FunctionDef):
            uses = [each for each in ast.walk(source.tree) if _is_named(each, outer.name)]
            if len(uses) == 1:
                return outer
    raise NoFixError("it is no hook alone")


def _is_named(node: ast.AST, name: str) -> bool:
    return getattr(node, "id", None) == name or (
        isinstance(node, ast.Attribute) and node.attr == name
    )
