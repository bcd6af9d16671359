"""# misplaced-clip (GL509)

Gradients are clipped after the step, before the backward, or after each micro-batch of a window.

## What it does
Reports a clipping that never meets gradients which a later step will use. A clipping in every round
of a window, to whose gradients the later rounds add, is a warning, and so is one behind the step of
a method whose backward is where it is called from. `p.grad.clamp_(-1, 1)` is a clipping as
`clip_grad_value_` is.

## Why it matters
The step uses the gradients as they are: the protection against large ones that the code seems to
have is not there. Within a window, what the first micro-batches gave is cut again and again, and
the last one counts most.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = 50 * model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: GL509
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = 50 * model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
```

## What it does not report
- Measuring: `clip_grad_norm_(parameters, float("inf"))` changes nothing.
- Clipping a second time, where the same gradients are clipped between the backward and the step as
  well.
- Clipping parameters (not gradients) after the step, as Wasserstein critics do.

## Limits
A clipping of parameters that no optimizer in view holds is not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, Clip, May, Optimizer, OptimizerStep, Tape, Unscale
from gradlint_rules import alone
from gradlint_rules.accounts import Account, Clipped, Key, accounts_on, key
from gradlint_rules.alone import Alone
from gradlint_rules.cached import of_tape
from gradlint_rules.frames import hints_of
from gradlint_rules.held import identities, reached, share
from gradlint_rules.training import clipped_between
from gradlint_rules.uncut import unsafe
from gradlint_rules.windows import accumulations_on, is_counted
from gradlint_rules.words import backward, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL403"])
_HELP = "Clip between the backward and the step."


def check(paths: Paths) -> Iterator[Report]:
    """Every clipping that finds nothing to clip wherever it runs."""
    found: dict[Key, tuple[Account, Clipped]] = {}
    for account, clipped in paths.some(_misplaced):
        found.setdefault(key(clipped.clip), (account, clipped))
    yield from (
        _report(*found[place]) for place in sorted(found) if _is_never_in_time(place, paths)
    )
    alone_ones = {key(each.clip): each for each in alone.behind(paths)}
    yield from (_report_alone(alone_ones[place]) for place in sorted(alone_ones))
    within = {key(repeated.clip): repeated for repeated in paths.some(_within_windows)}
    yield from (_report_repeated(within[place]) for place in sorted(within))


def _misplaced(tape: Tape) -> Iterator[tuple[Account, Clipped]]:
    """The clippings of a path that find nothing to clip."""
    for account in _training(tape):
        in_time = [clipped.clip for clipped in account.clips if clipped.fresh]
        for clipped in account.clips:
            if not clipped.fresh and _is_misplaced(account, clipped.clip, in_time):
                yield account, clipped


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A clipping after one micro-batch of a window, and a backward behind it that adds to what it
    clipped.
    """

    clip: Clip
    added: Backward
    step: OptimizerStep
    optimizer: Optimizer


def _within_windows(tape: Tape) -> Iterator[_Repeated]:
    """The clippings within the windows of a path."""
    for account, step, sinks in _windows(tape):
        for clipped in account.clips:
            clip = clipped.clip
            before = [sink for sink in sinks if sink.order < clip.order]
            behind = [sink for sink in sinks if sink.order > clip.order]
            if not before or not behind or _is_unscaled(tape, before[-1], clip):
                continue
            if _is_of_round(clip, before[-1]) and _is_added_to(clip, behind[0]):
                yield _Repeated(clip, behind[0], step, account.optimizer)


def _windows(tape: Tape) -> Iterator[tuple[Account, OptimizerStep, Sequence[Backward]]]:
    """The gradients that steps use of several rounds: of a window that a counter closes, or of an
    inner loop.
    """
    for accumulation in accumulations_on(tape):
        for window in accumulation.windows if is_counted(accumulation) else ():
            yield accumulation.account, window.update.step, window.fresh
    for account in accounts_on(tape):
        for update in account.updates:
            inner = [
                sink for sink in update.fresh if len(sink.iteration) > len(update.step.iteration)
            ]
            for place in dict.fromkeys(map(key, inner)):
                sinks = [
                    sink for sink in inner if key(sink) == place and sink.is_within(update.step)
                ]
                yield account, update.step, sinks


def _is_added_to(clip: Clip, sink: Backward) -> bool:
    """Whether a backward gives gradients to what a clipping clipped: not where each clips the head
    of its own task.
    """
    return share(identities(clip.parameters), reached(sink))


def _is_unscaled(tape: Tape, sink: Backward, clip: Clip) -> bool:
    """Whether `unscale_` runs in each round, which raises in the second: repeated-unscale."""
    return any(sink.order < event.order < clip.order for event in tape.of(Unscale))


def _is_of_round(clip: Clip, sink: Backward) -> bool:
    """Whether a clipping stands in the round of a backward, or in a loop over parameters there."""
    return clip.iteration[: len(sink.iteration)] == sink.iteration


def _is_never_in_time(place: Key, paths: Paths) -> bool:
    """Whether a clipping finds gradients on no path, whatever was not run."""
    return bool(paths.never(lambda tape: place in _in_time(tape), May.BACKWARD))


@of_tape
def _in_time(tape: Tape) -> set[Key]:
    """The clippings of a path that find gradients."""
    return {
        key(clipped.clip)
        for account in _training(tape)
        for clipped in account.clips
        if clipped.fresh
    }


def _training(tape: Tape) -> list[Account]:
    return [account for account in accounts_on(tape) if account.updates and account.backwards]


def _is_misplaced(account: Account, clip: Clip, in_time: Sequence[Clip]) -> bool:
    """Whether the backward and the step of its round stand on the same side of it, and no other
    clip between them.
    """
    if clip.exhausted or not clip.iteration:
        return False
    trained = {each for sink in account.backwards for each in sink.iteration}
    steps_in = {
        each[0] for update in account.updates for each in update.step.iteration if each in trained
    }
    mine = clip.iteration
    # a loop over groups or parameters alone, or over the stages
    while len(mine) > 1 and mine[-1][0] not in steps_in:
        mine = mine[:-1]
    loop, _ = mine[len(mine) - 1]
    if any(loop in dict(other.iteration) and _is_of_the_same(clip, other) for other in in_time):
        return False
    return any(
        update.step.iteration[: len(mine)] == mine and update.fresh for update in account.updates
    )


def _is_of_the_same(clip: Clip, other: Clip) -> bool:
    return not clip.parameters or share(identities(other.parameters), identities(clip.parameters))


def _report(account: Account, clipped: Clipped) -> Report:
    where = (
        "after the step has used them"
        if clipped.after_step
        else "before the backward has computed them"
    )
    name = account.optimizer.name or account.optimizer.cls or "optimizer"
    message = f"gradients are clipped {where}: `{name}` steps with gradients of any size"
    step = next(update.step for update in account.updates)
    used = next((update for update in account.updates if update.fresh), None)
    return Report(
        clipped.clip.at,
        message,
        _HELP,
        places(clipped.clip.at, Related(step.at, "the step", Role.STEP)),
        hints=hints_of(clipped.clip, used.fresh[-1], used.step) if used is not None else {},
    )


def _report_alone(found: Alone) -> Report:
    name = found.step.optimizer.name or found.step.optimizer.cls or "optimizer"
    message = (
        "gradients are clipped after the step has used them: "
        f"`{name}` steps with gradients of any size"
    )
    related = places(found.clip.at, Related(found.step.at, "the step", Role.STEP))
    return Report(found.clip.at, message, _HELP, related, Severity.WARNING)


def _report_repeated(found: _Repeated) -> Report:
    name = found.optimizer.name or found.optimizer.cls or "optimizer"
    message = (
        f"gradients are clipped after each micro-batch, before `{name}` steps: "
        f"{backward(found.added)} adds to what "
        "was clipped, which is then clipped again"
    )
    related = places(
        found.clip.at,
        Related(found.added.at, "added here"),
        Related(found.step.at, "the step", Role.STEP),
    )
    return Report(
        found.clip.at,
        message,
        "Clip once, right before the step.",
        related,
        Severity.WARNING,
        hints={"window": "yes"},
    )


def fix(finding: Finding, source: FixSource) -> Fix | None:
    """Clips between the backward and the step; within a window, where nothing else reads the
    norm.
    """
    if not finding.hints.get("window"):
        return clipped_between("Clip between the backward and the step", finding, source)
    if not isinstance(source.statement(finding.at), ast.Expr):
        return None
    message = "Clip once, right before the step"
    return unsafe(message, clipped_between(message, finding, source).edits)
