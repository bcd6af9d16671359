"""# clip-before-unscale (GL403)

Gradients are clipped while they still carry the factor of the `GradScaler`.

## What it does
Reports a clip between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` with no
`scaler.unscale_(optimizer)` for these parameters before it. So is a size of gradients that is held
against a bound: `if norm > limit`. A norm that is only measured (`clip_grad_norm_` with an infinite
bound) is a note: the number in the log is scaled. A method that clips and has the scaler step, and
whose backward is where it is called from, is a warning.

## Why it matters
The scale begins at 65536. A clip to norm 1 leaves gradients of norm 1, which `scaler.step` then
divides by 65536: the model all but stands still, the more so the larger the scale grows, and
nothing raises.

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
- Questions that do not hang on the scale: whether gradients are finite, or larger than those of
  another moment.

## Limits
A clip written by hand is seen where it calls `clamp_` on a gradient, or multiplies one by a number
(or the norm of its weights) over a norm of gradients that are tensors still. What goes through
Python numbers or `p.grad.data` is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Clip,
    Decision,
    InPlace,
    May,
    OptimizerStep,
    Unscale,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules import alone
from gradlint_rules.held import identities, share
from gradlint_rules.scaled import Meeting, is_gated, meetings
from gradlint_rules.scaling import unscaled_first
from gradlint_rules.uncut import safe
from gradlint_rules.words import backward, calls, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL406"])
_HELP = "Call `scaler.unscale_(optimizer)` first, once in each step."
_CLIPS = ("clip", "clamp")


def check(paths: Paths) -> Iterator[Report]:
    """Every clip of gradients that are still scaled; a mere measurement of their norm is a note."""
    reported: set[Span] = set()
    met = [
        (meeting, clip)
        for meeting in paths.some(meetings)
        if not isinstance(clip := meeting.event, OptimizerStep) and meeting.scaled
    ]
    bounding = {_deed(meeting, clip) for meeting, clip in met if not _reads_only(clip)}
    for meeting, clip in met:
        decided = _decided(meeting, clip)
        if clip.at in reported or (decided and _deed(meeting, clip) in bounding):
            continue  # the bound is the clip's own
        if (decided or _is_clip(clip)) and not is_gated(meeting, paths, Unscale, May.CLIP):
            reported.add(clip.at)
            yield _report(meeting, clip, decided)
    for found in alone.scaled(paths):
        if found.clip.at not in reported:
            reported.add(found.clip.at)
            message = (
                f"gradients are clipped before `{found.step.text}` unscales them: "
                "the factor of the scaled loss is still in them"
            )
            related = places(
                found.clip.at, Related(found.step.at, "the step unscales them", Role.STEP)
            )
            yield Report(found.clip.at, message, _HELP, related, Severity.WARNING)


def _reads_only(clip: Clip | InPlace) -> bool:
    return isinstance(clip, Clip) and clip.reads_only


def _deed(meeting: Meeting, clip: Clip | InPlace) -> tuple[Span, tuple[Span, ...]]:
    """Whose gradients are clipped or read, and in which call of a function."""
    return meeting.gradients.sink.at, clip.stack


def _is_clip(clip: Clip | InPlace) -> bool:
    """Whether gradients are clipped or their norm is taken; that some code looks at `p.grad` says
    nothing.
    """
    return not isinstance(clip, Clip) or (
        not clip.reads_only or any(word in clip.text for word in _CLIPS)
    )


def _why(meeting: Meeting, clip: Clip | InPlace) -> str:
    """What `unscale_` did for other gradients, if anything."""
    between = range(meeting.gradients.sink.order, clip.order)
    ran = [
        each.optimizer
        for each in meeting.tape.of(Unscale)
        if each.order in between and each.optimizer is not None
    ]
    if not ran:
        return "`unscale_` has not run"
    return f"`unscale_` ran for `{ran[-1].name or ran[-1].cls}`, which does not hold them"


def _decided(meeting: Meeting, clip: Clip | InPlace) -> Decision | None:
    """The branch that what is read here decides, by a bound: before the gradients are unscaled,
    used or cleared.
    """
    if not isinstance(clip, Clip) or not clip.reads_only:
        return None
    following = meeting.tape.among(Unscale, OptimizerStep, ZeroGrad)
    until = next(
        (event.order for event in following if event.order > clip.order), len(meeting.tape.events)
    )
    moments = range(clip.order, until + 1)
    bounded = (decision for decision in meeting.tape.decisions if decision.is_bounded)
    clips = meeting.tape.of(Clip)
    return next(
        (decision for decision in bounded if _is_about(decision, clip, moments, clips)), None
    )


def _is_about(decision: Decision, clip: Clip, moments: range, clips: Sequence[Clip]) -> bool:
    """Whether a branch asks for what was computed in these moments of the gradients that `clip`
    reads.
    """
    asked = [value for value in decision.about if value.order in moments]
    return any(
        value.at == clip.at
        or any(_was_read(source, value.order, clips) is clip for source in value.inputs)
        for value in ancestors(*asked)
    )


def _was_read(value: Value, before: int, clips: Sequence[Clip]) -> Clip | None:
    """Where a gradient was read last before some moment; None of what is no gradient."""
    if "gradient" not in value.flags:
        return None
    own = identities([value])
    reads = (
        clip for clip in clips if clip.order < before and share(own, identities(clip.parameters))
    )
    return max(reads, key=lambda clip: clip.order, default=None)


def _report(meeting: Meeting, clip: Clip | InPlace, decided: Decision | None) -> Report:
    sink = meeting.gradients.sink
    reads_only = _reads_only(clip)
    deed = "the norm is measured" if reads_only else "the gradients are clipped"
    deed = deed if decided is None else f"the gradients are held against a bound (`{decided.text}`)"
    message = f"{deed} while the factor of {backward(sink)} is still in them: {_why(meeting, clip)}"
    asked = [] if decided is None else [Related(decided.at, "decided here")]
    source = Related(sink.at, "the scaled gradients come from here")
    related = places(clip.at, *calls(clip.stack, sink.stack), *asked, source)
    return Report(
        clip.at, message, _HELP, related, Severity.NOTE if reads_only and decided is None else None
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Unscales the gradients before."""
    return safe("Unscale the gradients first", unscaled_first(finding, source))
