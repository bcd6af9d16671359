"""# inference-tensor (GL302)

A tensor made under `torch.inference_mode()` is used outside of it where autograd cannot take it.

## What it does
Reports the `inference_mode` whose tensors are, outside of it, saved for a backward, modified in
place, or asked to require grad. Whether an operation saves its input is known per operation:
`student * teacher` saves the teacher's output, `student - teacher` does not.

## Why it matters
An inference tensor has no version counter and can never enter a graph: "Inference tensors cannot be
saved for backward", "Inplace update to inference tensor outside InferenceMode is not allowed". A
`no_grad` tensor has none of these limits, and costs next to nothing more.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(8, 4)
with torch.inference_mode():  # expect: GL302
    wanted = F.softmax(teacher(x), dim=-1)
log_probability = F.log_softmax(student(x), dim=-1)
# RuntimeError: Inference tensors cannot be saved for backward
loss = -(wanted * log_probability).sum(dim=-1).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(8, 4)
with torch.no_grad():
    wanted = F.softmax(teacher(x), dim=-1)
log_probability = F.log_softmax(student(x), dim=-1)
loss = -(wanted * log_probability).sum(dim=-1).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- Inference tensors that are only read: added, subtracted, concatenated, stacked, indexed by a list,
  collated, logged.
- A `clone()` made outside of `inference_mode`, which is an ordinary tensor.

## Limits
What an unknown module saves of its inputs is unknown, and nothing is said of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, InPlace, Tape, Value
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import surely_visited
from gradlint_rules.words import calls, operation, places, quoted

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
FACT = "inference-tensor-used"
_HELP = (
    "Use `torch.no_grad()` where it was made, or `clone()` it outside of `inference_mode` first."
)


@dataclass(frozen=True, slots=True)
class _Use:
    """Something done to an inference tensor that torch refuses."""

    value: Value
    at: Span
    stack: tuple[Span, ...]
    what: str


def check(paths: Paths) -> Iterator[Report]:
    """The `inference_mode` (`cut_at` of its tensors) behind every use that torch refuses."""
    for use in paths.some(_uses):
        at = use.value.cut_at or use.value.at
        said = f"{quoted(use.value)} is an inference tensor, and {use.what}"
        related = places(
            at, *calls(use.value.stack, use.stack), Related(use.at, f"{use.what} here")
        )
        yield Report(at, f"{said} outside of `inference_mode`: it raises", _HELP, related)


def _uses(tape: Tape) -> Iterator[_Use]:
    for event in tape.among(InPlace, FACT):
        if isinstance(event, InPlace) and event.raises == "inference":
            yield _Use(
                event.before,
                event.write.at,
                event.write.stack,
                f"{operation(event.write.op)} modifies it",
            )
        elif isinstance(event, Fact) and event.value is not None:
            yield _Use(event.value, event.at, event.stack, _deed(event.detail))
    for sink in tape.backwards():
        for user in surely_visited(sink, tape):  # what only may carry a gradient saves nothing
            for saved in user.saves:
                if saved.value.inference:
                    yield _Use(saved.value, user.at, user.stack, _deed(user.op))


def _deed(op: str) -> str:
    """What is done to the tensor: `detail` of the fact is the operation that saves it, or
    `requires_grad_`.
    """
    if op.rpartition(".")[2].startswith("requires_grad"):
        return "it is asked to require grad"
    return f"{operation(op)} saves it for the backward"


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes it `no_grad`, whose tensors can be used in training."""
    node = source.expression(finding.at)
    no_grad, imports = source.reference("torch.no_grad")
    is_call = isinstance(node, ast.Call)
    return unsafe(
        "Use `no_grad`", (source.replace(node, f"{no_grad}()" if is_call else no_grad), *imports)
    )
