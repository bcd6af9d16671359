"""# misdirected-clip (GL522)

Gradients are clipped of parameters that have none: the ones that the step uses belong to another
network.

## What it does
Reports a clip between a backward and the step on its gradients, where these are gradients of other
parameters: those that are clipped have none, or what an earlier step has used.

## Why it matters
`clip_grad_norm_` of parameters without gradients returns 0 and clips nothing. The step takes
gradients of any size, and the logged norm looks calm.

## Example
```python
import torch

torch.manual_seed(0)
actor, critic = torch.nn.Linear(4, 2), torch.nn.Linear(4, 1)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    critic_loss = critic(x).square().mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0)  # expect: GL522
    critic_optimizer.step()
    actor_loss = actor(x).square().mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
    actor_optimizer.step()
    actor_optimizer.zero_grad()
```

## Use instead
```python
import torch

torch.manual_seed(0)
critic = torch.nn.Linear(4, 1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    critic_loss = critic(x).square().mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    critic_optimizer.step()
```

## What it does not report
- Parameters of which some have a gradient: those of a whole model, of which one part is trained in
  a round.
- Clips before the backward or behind the step of these parameters: that is `misplaced-clip`
  (GL509), unless another clip does that in time.

## Limits
Gradients that are set by hand, and parameters out of view, can be any.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Backward, Clip, May, OptimizerStep, Parameter, Tape, ZeroGrad
from gradlint_rules.accounts import Key, Update, accounts_on, key
from gradlint_rules.cached import of_tape
from gradlint_rules.handing import of_what_is_stepped
from gradlint_rules.held import identities, reached, share
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import backward, calls, listed, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Clip the parameters that the optimizer behind it steps on."


@dataclass(frozen=True, slots=True)
class _Empty:
    """A clip that finds no gradient, and the backward and the step around it that are about other
    parameters.
    """

    clip: Clip
    sink: Backward
    step: OptimizerStep


def check(paths: Paths) -> Iterator[Report]:
    """Every clip that finds gradients on no path, beside a step that uses others."""
    reported: set[Span] = set()
    for found in paths.some(_empty):
        finds = functools.partial(_finds, place=key(found.clip))
        if found.clip.at not in reported and paths.never(finds, May.BACKWARD):
            reported.add(found.clip.at)
            yield _report(found)


def _empty(tape: Tape) -> Iterator[_Empty]:
    """The clips of a path whose parameters have no gradient, between a backward and the step that
    uses it.
    """
    clips = [clip for clip in tape.of(Clip) if _is_known(clip)]
    if not clips or tape.facts("gradient-set", "gradient-beside", "gradients-tapped"):
        return
    filled = _filled(tape)
    empty = [clip for clip in clips if key(clip) not in filled]
    for account in accounts_on(tape) if empty else ():
        for update in account.updates if account.optimizer.complete else ():
            for clip in empty:
                sink = _backward_before(clip, update)
                if sink is not None and _is_seen(sink) and _is_elsewhere(clip, sink, tape):
                    yield _Empty(clip, sink, update.step)


def _backward_before(clip: Clip, update: Update) -> Backward | None:
    """The first backward that a step uses, where the clip stands between the two."""
    between = (sink for sink in update.fresh if sink.order < clip.order < update.step.order)
    return next(between, None)


def _finds(tape: Tape, place: Key) -> bool:
    return place in _filled(tape)


def _is_known(clip: Clip) -> bool:
    """Whether it clips, and all that it clips is known."""
    is_plain = bool(clip.parameters) and not clip.reads_only and not clip.exhausted
    return is_plain and all(
        value.parameter is not None and not value.assumed for value in clip.parameters
    )


def _is_seen(sink: Backward) -> bool:
    """Whether it is known what a backward gives gradients to."""
    return not sink.by_framework and not any(
        "unseen" in value.flags or value.assumed for value in sink.graph
    )


def _is_elsewhere(clip: Clip, sink: Backward, tape: Tape) -> bool:
    """Whether a clip stands in the round of a backward that is for others, and is not what clips
    its own too late.

    Where nothing else clips what an optimizer steps on in the rounds of that loop, the clip is in
    the wrong place: GL509.
    """
    rounds, own = sink.iteration, identities(clip.parameters)
    if clip.iteration[: len(rounds)] != rounds or share(own, reached(sink)):
        return False
    loops = _loops(rounds)
    steps = [
        step for step in tape.of(OptimizerStep) if _loops(step.iteration)[: len(loops)] == loops
    ]
    if not any(share(own, identities(step.optimizer.parameters)) for step in steps):
        return True
    filled = _filled(tape)
    return any(
        key(other) in filled and share(own, identities(other.parameters)) for other in tape.of(Clip)
    )


def _loops(rounds: Sequence[tuple[int, int]]) -> list[int]:
    """The loops that a place stands in, whichever of their rounds it is."""
    return [loop for loop, _ in rounds]


@of_tape
def _filled(tape: Tape) -> set[Key]:
    """The clips of a path that find a gradient: a backward before them has given one that is still
    to be used.
    """
    found: set[Key] = set()
    alive: list[list[Parameter]] = []
    for event in tape.among(Backward, ZeroGrad, OptimizerStep, Clip):
        if isinstance(event, Backward):
            alive.append(reached(event))
        elif isinstance(event, ZeroGrad):
            gone = identities(event.parameters)
            alive = [_without(each, gone) for each in alive] if event.complete else alive
        elif isinstance(event, OptimizerStep):
            used = identities(event.optimizer.parameters)
            alive = [_without(each, used) for each in alive]
        elif isinstance(event, Clip) and any(
            share(identities(event.parameters), each) for each in alive
        ):
            found.add(key(event))
    return found


def _without(some: Sequence[Parameter], gone: Sequence[Parameter]) -> list[Parameter]:
    return [one for one in some if not share([one], gone)]


def _report(found: _Empty) -> Report:
    clipped = list(dict.fromkeys(f"`{one.path}`" for one in identities(found.clip.parameters)))
    names = listed(clipped[:2]) + (" and others" if len(clipped) > 2 else "")
    optimizer = found.step.optimizer.name or found.step.optimizer.cls or "optimizer"
    message = (
        f"{names} have no gradient that a step is still to use: {backward(found.sink)} gives "
        "its gradients to others, "
        f"on which `{optimizer}` steps"
    )
    related = places(
        found.clip.at,
        *calls(found.clip.stack, found.sink.stack),
        Related(found.sink.at, "the gradients come from here"),
        Related(found.step.at, "the step", Role.STEP),
    )
    return Report(found.clip.at, message, _HELP, related)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Clips what the step behind it uses."""
    return unsafe("Clip what is stepped", of_what_is_stepped(finding, source))
