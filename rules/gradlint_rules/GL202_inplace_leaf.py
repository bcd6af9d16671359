"""# inplace-leaf (GL202)

A leaf that requires grad, such as a parameter, is modified in place while grad mode is on.

## What it does
Reports `p.op_()`, `p += …`, `p[i] = …` and `out=p` on a parameter or on another leaf that requires
grad, and on a view of one, where autograd would record the modification. A call that changes
nothing gives the leaf itself or a view of it: `weight.float()`, `weight.to("cpu")`,
`weight.reshape(-1)`.

## Why it matters
PyTorch refuses at once: "a leaf Variable that requires grad is being used in an in-place
operation". A leaf is where gradients arrive; after a recorded modification it would no longer be a
leaf.

## Example
```python
import torch

torch.manual_seed(0)
weight = torch.randn(4, requires_grad=True)
loss = (torch.randn(8, 4) @ weight).pow(2).mean()
loss.backward()
weight -= 0.1 * weight.grad  # expect: GL202
# RuntimeError: a leaf Variable that requires grad
```

## Use instead
```python
import torch

torch.manual_seed(0)
weight = torch.randn(4, requires_grad=True)
loss = (torch.randn(8, 4) @ weight).pow(2).mean()
loss.backward()
with torch.no_grad():
    weight -= 0.1 * weight.grad
    weight.grad = None
```

## What it does not report
- Modifications under `no_grad`, through `.data` or `.detach()`, and by `torch.nn.init`, which
  switches grad mode off itself.
- `weight = weight - 0.1 * weight.grad`, which makes a new tensor. (It is no leaf: its `.grad` stays
  empty.)
- What an optimizer writes.
- Modifications behind a `torch.no_grad()` that stands alone on its line, which GL303 reports: to
  enter it mends both.

## Limits
A tensor of unknown origin is taken not to be a leaf. `.float()`, `.to(device)`, `contiguous()`,
`reshape()` and the like are taken to give the leaf, or a view of it, where its dtype, its device
and the order of its elements in memory are known, and otherwise to copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import InPlace, Kind, Tape, leaves
from gradlint_rules.uncut import safe, unsafe
from gradlint_rules.words import calls, places, quoted
from gradlint_rules.written import out_of_place, with_grad_mode_off

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_WITHOUT_GRADIENT = ("torch.no_grad", "torch.inference_mode")
_IS = {Kind.PARAMETER: "a parameter", Kind.OPERATION: "a view of a leaf that requires grad"}
_HELP = "Update it under `with torch.no_grad():`, or compute a new tensor from it."


def check(paths: Paths) -> Iterator[Report]:
    """Every write that torch refuses because it would change a leaf."""
    reported: set[tuple[str, int, int, int]] = set()
    for event in paths.some(_refused):
        at = event.write.at
        begins = at.path, at.cell, at.line, at.column  # of `p.mul_(a).add_(b)`, the first raises
        if begins not in reported:
            reported.add(begins)
            related = places(event.write.at, *calls(event.write.stack, ()))
            yield Report(event.write.at, _message(event), _HELP, related, hints=_written(event))


def _refused(tape: Tape) -> Iterator[InPlace]:
    """The writes that change a leaf, but for those that were to stand under a `no_grad` which is
    not entered.
    """
    bare = [fact for fact in tape.facts("context-not-entered") if fact.detail in _WITHOUT_GRADIENT]
    for event in tape.of(InPlace):
        before = (fact for fact in bare if fact.order < event.order)
        if event.raises == "leaf" and not any(map(event.is_within, before)):
            yield event


def _message(event: InPlace) -> str:
    what = _IS.get(event.before.kind, "a leaf that requires grad")
    return f"{quoted(event.before)}, {what}, is modified in place with grad mode on: this raises"


def _written(event: InPlace) -> dict[str, str]:
    """Whether what is written carries a gradient of something else, which grad mode off would
    lose.
    """
    written = [value for value in event.after.inputs if value is not event.before]
    others = [
        leaf
        for value in written
        for leaf in leaves(value)
        if leaf.parameter is not event.before.parameter
    ]
    # to a parameter nothing else can be bound
    is_lost = bool(others) and event.before.kind is not Kind.PARAMETER
    return {"gradient": "yes" if is_lost else "", "of": "part"}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Switches grad mode off for an update, and makes a new tensor of what carries a gradient."""
    if finding.hints["gradient"]:
        return unsafe("Make a new tensor", out_of_place(finding, source))
    return safe("Update it with grad mode off", with_grad_mode_off(finding, source))
