"""# clip-before-unscale (GL403)

Gradients are clipped while they still carry the factor of the `GradScaler`.

## What it does
Reports a clip between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` with no
`scaler.unscale_(optimizer)` for these parameters before it. A norm that is only measured (`clip_grad_norm_` with an
infinite bound) is a note: the number in the log is scaled.

## Why it matters
The scale begins at 65536. A clip to norm 1 leaves gradients of norm 1, which `scaler.step` then divides by 65536: the
model all but stands still, the more so the larger the scale grows, and nothing raises.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
before = model.weight.detach().clone()
loss = (model(torch.randn(8, 4)) - 3).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: GL403
scaler.step(optimizer)
scaler.update()
assert (model.weight - before).norm() < 1e-5
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
before = model.weight.detach().clone()
loss = (model(torch.randn(8, 4)) - 3).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
assert (model.weight - before).norm() > 1e-2
```

## What it does not report
- A scaler that is disabled on this path.
- A bound that is multiplied by `scaler.get_scale()`, or gradients that are divided by it.
- Gradients of an optimizer that was unscaled, however the clip names its parameters.

## Limits
A clip written by hand is seen where it calls `clamp_` on a gradient, or multiplies one by a number (or the norm of its
weights) over a norm of gradients that are tensors still. What goes through Python numbers or `p.grad.data` is not
followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Clip, InPlace, May, OptimizerStep, Unscale
from gradlint_rules.scaled import Meeting, is_gated, meetings
from gradlint_rules.scaling import unscaled_first
from gradlint_rules.uncut import safe
from gradlint_rules.words import backward, calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_HELP = "Call `scaler.unscale_(optimizer)` first, once in each step."
_CLIPS = ("clip", "clamp")


def check(paths: Paths) -> Iterator[Report]:
    """Every clip of gradients that are still scaled; a mere measurement of their norm is a note."""
    told: set[Span] = set()
    for meeting in paths.some(meetings):
        clip = meeting.event
        if isinstance(clip, OptimizerStep) or not meeting.scaled or clip.at in told or not _is_clip(clip):
            continue
        if not is_gated(meeting, paths, Unscale, May.CLIP):
            told.add(clip.at)
            yield _report(meeting, clip)


def _is_clip(clip: Clip | InPlace) -> bool:
    """Whether gradients are clipped or their norm is taken; that some code looks at `p.grad` says nothing."""
    return isinstance(clip, InPlace) or not clip.reads_only or any(word in clip.text for word in _CLIPS)


def _report(meeting: Meeting, clip: Clip | InPlace) -> Report:
    sink = meeting.gradients.sink
    reads_only = isinstance(clip, Clip) and clip.reads_only
    deed = "the norm is measured" if reads_only else "the gradients are clipped"
    message = f"{deed} while the factor of {backward(sink)} is still in them: `unscale_` has not run"
    related = places(clip.at, *calls(clip.stack, sink.stack), Related(sink.at, "the scaled gradients come from here"))
    return Report(clip.at, message, _HELP, related, Severity.NOTE if reads_only else None)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Unscales the gradients before."""
    return safe("Unscale the gradients first", unscaled_first(finding, source))
