"""# missing-step (GL511)

A loop runs backward and clears the gradients, but nothing steps; or it steps, and nothing is
back-propagated.

## What it does
Reports the backward in a loop that clears the gradients of an optimizer in every round and never
uses them, on no path; or on no path of its side of a branch, on whose other side a scaler scales
the same loss and steps; or the `loss.backward` that is written without parentheses. Where a program
has no backward at all, reports the step of an optimizer whose parameters the loss before it would
train, or whose gradients `autograd.grad` returns and nothing stores; likewise the step of an
optimizer that no backward reaches, behind one whose gradients no optimizer uses: it was given the
parameters of another model.

## Why it matters
The gradients are computed and thrown away: the model stays as it was initialised, and no error is
raised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()  # expect: GL511
    optimizer.step
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Gradients that are read, set or clipped, or whose parameters are updated by hand; what is put into
  parameters in place of one (`p.grad_sample = …`, `p.main_grad = …`).
- Gradients of inputs: adversarial examples, inversion, saliency.
- A loss that is computed and never back-propagated beside one that is: that is `unused-loss`
  (GL111).
- An optimizer that is handed to code that is not in view, or that other methods of its object step
  (a warm-up).

## Limits
Steps taken by code out of view are not seen; such code rarely clears by itself. Of an optimizer
that was not seen made, only what is cleared by its own name counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Denied, Finding, Fix, Related, Role, Severity
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import (
    Backward,
    Clip,
    End,
    Event,
    Fact,
    InPlace,
    Iteration,
    Kind,
    May,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Tape,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules.accounts import Account, Key, accounts, accounts_on, idle_on, key
from gradlint_rules.astray import astray
from gradlint_rules.cached import of_tape
from gradlint_rules.computed import foreign
from gradlint_rules.held import identities, share_across
from gradlint_rules.training import fed, stepped
from gradlint_rules.unassigned import named_alone, unassigned
from gradlint_rules.uncut import unsafe
from gradlint_rules.unfed import unfed
from gradlint_rules.words import backward, owners, places, shortly

SEVERITY = Severity.ERROR
AT_RUN_TIME = True


def check(paths: Paths) -> Iterator[Report]:
    """Every backward whose gradients are cleared in every round and never used; or that is not
    called.
    """
    has_optimizers = any(paths.some(lambda tape: (*tape.of(OptimizerMade), *tape.optimizers())))
    found = list(_without_step(paths)) if has_optimizers else []
    if found and paths.never(_uses_gradients, May.READ | May.CLEAR | May.CLIP):
        yield from found
    for fact in paths.some(lambda tape: named_alone(tape) if tape.optimizers() else ()):
        message = f"`{fact.text}` is not called: nothing is back-propagated"
        yield Report(fact.at, message, f"Write `{fact.text}()`.")


def _without_step(paths: Paths) -> Iterator[Report]:
    used = {
        sink for account in accounts(paths) for update in account.updates for sink in update.fresh
    }
    for account in (*accounts(paths), *paths.some(idle_on)):
        optimizer = account.optimizer
        found = (
            list(_idle(account)) if not (optimizer.escapes or optimizer.stepped_elsewhere) else []
        )
        if not found or not _never_steps(optimizer, paths):
            continue
        # the generator's loss comes to the critic, too
        own = [each for each in found if each[0] not in used]
        for sink, clearing in own or found:
            if not _is_tried(sink, account):
                yield _report(account, sink, clearing)
    for account, sink, clearing, scaled in _without_scaler(paths):
        yield _report(account, sink, clearing, scaled)
    for step, loss in unfed(paths):
        yield _report_unfed(step, loss)
    for step, sink in astray(paths):
        yield _report_astray(step, sink)
    for step, sink in unassigned(paths):
        yield _report_unassigned(step, sink)


def _never_steps(optimizer: Optimizer, paths: Paths) -> bool:
    """Whether neither the optimizer nor another one in its place steps on any path, whatever was
    not run.

    What some paths alone call, out of view, may step.
    """
    called = list(paths.some(lambda tape: [{call.at for call in foreign(tape)}]))
    held, everywhere = identities(optimizer.parameters), called[0].intersection(*called)

    def steps(tape: Tape) -> bool:
        stepping = [step.optimizer for step in tape.of(OptimizerStep)]
        stepping += [each for each in tape.optimizers() if each.escapes or each.stepped_elsewhere]
        if any(call.at not in everywhere for call in foreign(tape)):
            return True
        is_itself = any(_called(each) == _called(optimizer) for each in stepping)
        return is_itself or any(
            share_across(identities(each.parameters), held) for each in stepping
        )

    return bool(paths.never(steps, May.STEP))


def _is_tried(sink: Backward, account: Account) -> bool:
    """Whether the optimizer is made in the round of its only backward: how large a batch can be is
    tried, say.
    """
    rounds = (
        event for event in account.tape.of(Iteration) if event.begins and event.order < sink.order
    )
    begun = [event.order for event in rounds if (event.loop, event.round) in sink.iteration[-1:]]
    return bool(begun) and (account.optimizer.order or 0) > begun[-1]


def _without_scaler(paths: Paths) -> Iterator[tuple[Account, Backward, Event, Backward]]:
    """Backwards beside one of the same loss that a scaler scales, where a step follows that one
    alone.

    `if use_amp: scaler.scale(loss).backward(); scaler.step(optimizer); … else: loss.backward()`
    """
    used = [
        sink for account in accounts(paths) for update in account.updates for sink in update.fresh
    ]
    scaled = {
        value.at: sink for sink in used if sink.scaler for value in (sink.value, *sink.value.inputs)
    }
    for account in accounts(paths) if scaled else ():
        optimizer = account.optimizer
        if account.updates or optimizer.escapes or optimizer.stepped_elsewhere:
            continue
        for sink, clearing in _idle(account):
            if sink.scaler is None and sink.value.at in scaled and _is_never_used(sink, paths):
                yield account, sink, clearing, scaled[sink.value.at]


def _is_never_used(sink: Backward, paths: Paths) -> bool:
    """Whether no step uses the gradients of this statement on any path, whatever was not run."""
    return bool(paths.never(lambda tape: key(sink) in _used_on(tape), May.STEP))


@of_tape
def _used_on(tape: Tape) -> set[Key]:
    updates = (update for account in accounts_on(tape) for update in account.updates)
    return {key(sink) for update in updates for sink in update.fresh}


def _called(optimizer: Optimizer) -> object:
    """What tells an optimizer from others; of one that was not seen made, the name, which a dict of
    them shares.
    """
    return optimizer.identity if optimizer.cls else optimizer.name.partition("[")[0]


def _report_unassigned(step: OptimizerStep, sink: Backward) -> Report:
    name = step.optimizer.name or step.optimizer.cls or "optimizer"
    message = f"`{name}` steps, and nothing is put into `.grad`: it finds no gradient"
    related = Related(sink.at, "gradients are returned here, and stored nowhere", Role.RETURNED)
    help_ = (
        "Call `backward()` on the loss, or put what `autograd.grad` returns into the `.grad` of "
        "each parameter."
    )
    return Report(step.at, message, help_, places(step.at, related))


def _report_astray(step: OptimizerStep, sink: Backward) -> Report:
    name = f"`{step.optimizer.name or step.optimizer.cls or 'optimizer'}`"
    trained = shortly(owners(identities(sink.leaves), step.optimizer.parameters))
    message = (
        f"{name} steps, and no backward reaches what it holds: the gradients are those of {trained}"
    )
    related = places(
        step.at,
        Related(step.optimizer.at, f"{name} takes other parameters here"),
        Related(sink.at, "these gradients no optimizer uses", Role.UNUSED),
    )
    return Report(
        step.at, message, "Hand the optimizer the parameters of the model that is trained.", related
    )


def _report_unfed(step: OptimizerStep, loss: Fact) -> Report:
    name = step.optimizer.name or step.optimizer.cls or "optimizer"
    message = f"`{name}` steps, and nothing is ever back-propagated: it finds no gradient"
    related = Related(loss.at, "the loss is computed here", Role.COMPUTED)
    return Report(
        step.at, message, "Call `backward()` on the loss before the step.", places(step.at, related)
    )


def _uses_gradients(tape: Tape) -> bool:
    """Whether gradients are read, measured or set here, or parameters written by hand."""
    if any(event.reads_only for event in tape.of(Clip)) or tape.facts(
        "gradient-set", "gradient-beside"
    ):
        return True
    return any(
        event.before.kind is Kind.PARAMETER and bool(event.iteration) and not _is_an_average(event)
        for event in tape.of(InPlace)
    )


def _is_an_average(event: InPlace) -> bool:
    """Whether what is written into a parameter is computed from parameters and their copies alone:
    an average of them, or one that is put back, moves nothing by a gradient.
    """
    sources = [value for value in ancestors(*event.write.by) if not value.inputs]
    return bool(sources) and all(
        value.kind is Kind.PARAMETER and "gradient" not in value.flags for value in sources
    )


def _idle(account: Account) -> Iterator[tuple[Backward, Event]]:
    """Backwards that come again in a later round of a loop in which their gradients are cleared."""
    seen: dict[object, Backward] = {}
    for sink in account.backwards:
        first = seen.setdefault(key(sink), sink)
        if first is sink or not _trains(account, sink.value) or _raises(account.tape, sink):
            continue
        for event in account.clearings:
            if first.order < event.order < sink.order and _is_for_steps(account.optimizer, event):
                yield first, event
                break


def _is_for_steps(optimizer: Optimizer, clearing: Event) -> bool:
    """Whether a clearing is one between steps: the optimizer's own, or one beside an optimizer that
    was seen made.
    """
    return bool(optimizer.cls) or (
        isinstance(clearing, ZeroGrad) and clearing.optimizer is optimizer
    )


def _raises(tape: Tape, sink: Backward) -> bool:
    """Whether the program ends in an exception behind this backward, where the step might have
    come.
    """
    end = tape.events[-1]
    is_last = all(other.order <= sink.order for other in tape.backwards())
    return isinstance(end, End) and bool(end.raised) and is_last


def _trains(account: Account, loss: Value) -> bool:
    return bool(account.optimizer.parameters) or not account.optimizer.complete


def _report(
    account: Account, sink: Backward, clearing: Event, scaled: Backward | None = None
) -> Report:
    name = account.optimizer.name or account.optimizer.cls or "optimizer"
    lack = f"`{name}` never steps: nothing is trained"
    if scaled is not None:
        lack = (
            f"`{name}` steps behind {backward(scaled)} alone: nothing is trained on this side of "
            "the branch"
        )
    message = f"the gradients of {backward(sink)} are cleared in every round, and {lack}"
    related = [Related(clearing.at, "cleared here", Role.CLEARING)]
    related += [Related(scaled.at, "a step follows here")] if scaled is not None else []
    help_ = f"Call `{name}.step()` after the backward."
    denied = Denied.STEP.hint if scaled is None else {}
    return Report(
        sink.at,
        message,
        help_,
        places(sink.at, *related),
        hints={**_clipped(account, sink), **denied, "optimizer": name},
    )


def _clipped(account: Account, sink: Backward) -> dict[str, str]:
    """Where gradients are clipped behind a backward: on which line of its function, or
    "elsewhere".
    """
    following = (event.order for event in account.clearings if event.order > sink.order)
    until = next(following, len(account.tape.events))
    clips = [
        clip
        for clip in account.tape.of(Clip)
        if sink.order < clip.order < until and not clip.reads_only
    ]
    if not clips:
        return {}
    return {"clipped": str(clips[-1].at.line) if clips[-1].stack == sink.stack else "elsewhere"}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Steps, or back-propagates the loss before the step."""
    if any(related.role is Role.RETURNED for related in finding.related):
        raise NoFixError("the parameters that the gradients belong to are not in view")
    if any(related.role is Role.UNUSED for related in finding.related):
        raise NoFixError("which model is meant to be trained is not known")
    if any(related.role is Role.COMPUTED for related in finding.related):
        return unsafe("Back-propagate the loss", fed(finding, source))
    return unsafe("Step", stepped(finding, source))
