"""# missing-zero-grad (GL501)

A loop runs backward and step, and nothing clears the gradients in between.

## What it does
Keeps account of the gradients of each optimizer, and reports the backward that adds to what an
earlier step has already used. In a method that others call for each batch, it is a warning where
one optimizer is cleared and another one that steps there is not.

## Why it matters
`backward` adds to `.grad`. Without clearing, each step moves along the sum of all gradients since
the beginning: the effective learning rate grows with every iteration, and training drifts or
diverges without an error.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    loss.backward()  # expect: GL501
    optimizer.step()
```

What the loss of another optimizer leaves is to be cleared as well; here the critic would learn from
`g_loss`, too:

```python
import torch

torch.manual_seed(0)
critic, generator = torch.nn.Linear(4, 1), torch.nn.Linear(2, 4)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    d_loss = critic(generator(torch.randn(8, 2)).detach()).mean() - critic(x).mean()
    d_loss.backward()  # expect: GL501
    critic_optimizer.step()
    critic_optimizer.zero_grad()
    g_loss = -critic(generator(torch.randn(8, 2))).mean()
    generator_optimizer.zero_grad()
    g_loss.backward()
    generator_optimizer.step()
```

So it is where both are cleared at the top of the round, and the critic's own loss comes second.
What another loss left is a `warning`: several losses can be meant to add up. So is a policy that is
cleared and learns through a critic, before the critic has stepped on its own loss: the gradient
passes through the critic and stays in it.

Clearing once per epoch is not enough:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    optimizer.zero_grad()
    for x in torch.randn(5, 8, 4):
        loss = model(x).square().mean()
        loss.backward()  # expect: GL501
        optimizer.step()
```

So it is where the program updates its parameters itself:

```python
import torch

torch.manual_seed(0)
weight = torch.randn(4, 1, requires_grad=True)
for x in torch.randn(5, 8, 4):
    loss = (x @ weight).square().mean()
    loss.backward()  # expect: GL501
    with torch.no_grad():
        weight -= 0.1 * weight.grad
```

Or where it adds up the gradients itself:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    for p, g in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
        p.grad = g if p.grad is None else p.grad + g  # expect: GL501
    optimizer.step()
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
- Clearing in any other way: `model.zero_grad()`, `p.grad = None`, `p.grad.zero_()`, an optimizer
  over the same parameters, a closure, a helper, a framework.
- Several backwards for one step: accumulation on purpose (see GL503 to GL506 for how that goes
  wrong). Of losses that other optimizers step on in between, too, where the last of them serves
  another optimizer as well: a trunk that learns from all heads. Nor of a head with a clearing of
  its own, behind a trunk whose optimizer steps on both losses.
- An optimizer that is handed to code that is not in view.
- Updates by hand of what an optimizer holds, too, or with unknown code around them.
- A gradient put in by hand, `p.grad = g`, which takes the place of the one before.

## Limits
Where gradients are cleared on some paths and not on others, nothing is said, and nothing of a
method with one optimizer alone: who calls it may clear. A traced run says nothing of updates by
hand, nor of gradients that are added by hand, nor of what a method leaves for its next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import NOT_SHOWN, Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Backward, Event, May, OptimizerStep, Tape, ZeroGrad, ancestors
from gradlint_rules.accounts import Account, Key, Update, accounts, by_hand, key
from gradlint_rules.added import Added, added_on
from gradlint_rules.clearing import cleared_each_round
from gradlint_rules.computed import foreign
from gradlint_rules.leftover import left_overs
from gradlint_rules.onesided import OneSided, one_sided
from gradlint_rules.passing import passing
from gradlint_rules.uncut import safe, unsafe
from gradlint_rules.words import backward, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
SPOILT_BY = frozenset(["GL502", "GL505"])


def check(paths: Paths) -> Iterator[Report]:
    """Every loss whose gradient is added to what a step has used already, on every path that steps
    on it twice.
    """
    reported: set[Span | tuple[Key, _Identity]] = set()
    for account, update, sink in _never_cleared(accounts(paths), paths):
        # however many losses one clearing is missing for
        root = (key(update.step), account.optimizer.identity)
        if not {sink.at, root} & reported:
            reported |= {sink.at, root}
            yield _report(account, update, sink)
    for account in accounts(paths):
        for own, other, clearing, step in left_overs(account):
            if own.at not in reported:
                reported.add(own.at)
                yield _report_left(account, own, other, [clearing, step])
        for report in passing(account):
            if report.at not in reported:
                reported.add(report.at)
                yield report
    for account, update, sink in _never_cleared(by_hand(paths), paths):
        if sink.at not in reported and not _may_clear_before(account.tape, sink):
            reported.add(sink.at)
            yield _report_by_hand(update, sink)
    for found in one_sided(paths):
        if found.sink.at not in reported:
            reported.add(found.sink.at)
            yield _report_one_sided(found)
    yield from _added_by_hand(paths)


def _added_by_hand(paths: Paths) -> Iterator[Report]:
    """The gradients that the program adds itself to what a step has used already."""
    found: dict[Key, Added] = {}
    for tape in paths.some(lambda tape: [tape] if added_on(tape) else []):
        for added in added_on(tape):
            is_known = not added.optimizer.escapes and not _may_clear_before(tape, added.event)
            if added.used is not None and is_known:
                found.setdefault(key(added.event), added)
    for place in sorted(found):
        if _is_never_added_to_nothing(place, paths):
            yield _report_added(found[place])


def _is_never_added_to_nothing(place: Key, paths: Paths) -> bool:
    return bool(paths.never(lambda tape: place in _added_to_nothing(tape), May.CLEAR))


def _added_to_nothing(tape: Tape) -> set[Key]:
    """The additions of a path that find cleared gradients behind a step."""
    return {key(added.event) for added in added_on(tape) if added.used is None}


def _report_added(found: Added) -> Report:
    name = found.optimizer.name or found.optimizer.cls or "optimizer"
    assert found.used is not None
    message = (
        f"this adds to gradients that `{name}` has used already: nothing clears them between two "
        "steps"
    )
    help_ = f"Call `{name}.zero_grad()` before the first gradient of a step is added."
    step = Related(found.used.at, "the step that used them", Role.STEP)
    return Report(
        found.event.at, message, help_, places(found.event.at, step), hints={NOT_SHOWN: "yes"}
    )


_Identity = tuple[Span, tuple[Span, ...], str, int]


def _never_cleared(
    found_on: Iterable[Account], paths: Paths
) -> list[tuple[Account, Update, Backward]]:
    """The updates that find used gradients under fresh ones of the same loss, if no path clears
    these.
    """
    found: dict[tuple[Key, _Identity], tuple[Account, Update, Backward]] = {}
    sound: dict[int, set[tuple[Key, _Identity]]] = {}  # on a path, by its id
    unsound: set[tuple[int, tuple[Key, _Identity]]] = set()
    for account in found_on:
        if account.optimizer.escapes:
            continue
        owner = account.optimizer.identity
        again = {
            (key(sink), owner): (account, update, sink)
            for update in account.updates
            for sink in _again(update)
        }
        found = again | found
        unsound |= {(id(account.tape), place) for place in again}
        cleared = {(place, owner) for place in _repeated(account)} - again.keys()
        sound.setdefault(id(account.tape), set()).update(cleared)

    def is_never_cleared(place: tuple[Key, _Identity]) -> bool | None:
        return paths.never(
            lambda tape: place in sound.get(id(tape), ()),
            May.CLEAR,
            enough=lambda tape: (id(tape), place) in unsound,
        )

    return [found[place] for place in sorted(found) if is_never_cleared(place)]


def _again(update: Update) -> list[Backward]:
    """The fresh gradients of an update that lie on top of used ones of the same loss."""
    used = {key(sink) for sink in update.stale}
    return [sink for sink in update.fresh if key(sink) in used]


def _repeated(account: Account) -> set[Key]:
    """The losses that more than one step used."""
    seen: set[Key] = set()
    repeated: set[Key] = set()
    for update in account.updates:
        fresh = {key(sink) for sink in update.fresh}
        repeated |= fresh & seen
        seen |= fresh
    return repeated


def _report(account: Account, update: Update, sink: Backward) -> Report:
    name = f"`{account.optimizer.name or account.optimizer.cls or 'optimizer'}`"
    message = (
        f"{backward(sink)} adds to gradients that {name} has used already: nothing clears them "
        "between two steps"
    )
    help_ = (
        f"Call `{account.optimizer.name or 'optimizer'}.zero_grad()` before this backward, in "
        "the same loop."
    )
    cleared = [
        Related(event.at, f"cleared here, but not {_what_is_left(event)}", Role.CLEARING)
        for event in account.clearings[:1]
    ]
    is_window = sum(key(other) == key(sink) for other in update.fresh) > 1
    if is_window:
        help_ = f"Call `{account.optimizer.name or 'optimizer'}.zero_grad()` right behind the step."
    related = places(
        sink.at, *cleared, Related(update.step.at, "the step that uses them again", Role.STEP)
    )
    hints = {"window": "yes"} if is_window else {}
    if (
        not is_window
        and (first := _first_own(account, update, sink)) is not None
        and first.at.path == sink.at.path
    ):
        hints["before"] = str(first.at.line)
    return Report(sink.at, message, help_, related, hints=hints)


def _may_clear_before(tape: Tape, event: Event) -> bool:
    """Whether unknown code that ran before this backward may have cleared gradients: none that
    computed what is back-propagated, in this round or another.
    """
    computed = {id(value) for value in ancestors(*(each.value for each in tape.backwards()))}
    return any(
        call.order < event.order and id(call.result) not in computed
        for call in foreign(tape)
        if call.iteration
    )


def _report_by_hand(update: Update, sink: Backward) -> Report:
    message = (
        f"{backward(sink)} adds to gradients that an update has used already: nothing clears "
        "them between two updates"
    )
    help_ = "Set `.grad` of each parameter to None behind its update."
    return Report(
        sink.at,
        message,
        help_,
        places(sink.at, Related(update.step.at, "the update that uses them again")),
        hints={"by hand": "yes", NOT_SHOWN: "yes"},
    )


def _report_left(account: Account, own: Backward, other: Backward, used: Sequence[Event]) -> Report:
    name = account.optimizer.name or account.optimizer.cls or "optimizer"
    when = "in the round before" if set(other.iteration) - set(own.iteration) else "in this round"
    left = f"{backward(other)} left for `{name}` {when}"
    message = f"{backward(own)} adds to what {left}: the clearing comes too early"
    help_ = f"Call `{name}.zero_grad()` right before this backward."
    clearing, step = used
    related = [
        Related(other.at, f"leaves gradients in what `{name}` holds"),
        Related(clearing.at, "cleared here, before that", Role.CLEARING),
        Related(step.at, "the step that uses both", Role.STEP),
    ]
    return Report(
        own.at, message, help_, places(own.at, *related), Severity.WARNING, hints={"left": "yes"}
    )


def _report_one_sided(found: OneSided) -> Report:
    name = found.account.optimizer.name or found.account.optimizer.cls or "optimizer"
    message = (
        f"nothing here clears the gradients of `{name}`, as is done for another optimizer: where "
        f"this is called again, {backward(found.sink)} adds to those that it has used already"
    )
    related = places(
        found.sink.at,
        Related(found.clearing.at, "cleared here, for the other alone", Role.CLEARING),
        Related(found.step.at, "the step that uses them again", Role.STEP),
    )
    help_ = f"Call `{name}.zero_grad()` before this backward."
    return Report(
        found.sink.at, message, help_, related, Severity.WARNING, hints={NOT_SHOWN: "yes"}
    )


def _first_own(account: Account, update: Update, sink: Backward) -> Backward | None:
    """The first backward behind the step of another optimizer, whose loss left gradients here, too.

    A generator's loss leaves some in the critic: they are to be cleared before the critic's own.
    """
    between = range(update.fresh[0].order, sink.order)
    steps = (step for step in account.tape.of(OptimizerStep) if step.order in between)
    others = [step for step in steps if step.optimizer is not account.optimizer]
    return next(own for own in update.fresh if own.order > others[-1].order) if others else None


def _what_is_left(clearing: Event) -> str:
    is_partial = isinstance(clearing, ZeroGrad) and clearing.optimizer is None
    return "all that the optimizer holds" if is_partial else "before each step"


def fix(finding: Finding, source: FixSource) -> Fix:
    """Clears the gradients in each round, or with the step of a window; where some rounds do, it
    may be meant.
    """
    if finding.hints.get("passing"):
        raise NoFixError("whether to step before or to freeze what it passes is a choice")
    if finding.hints.get("by hand"):
        raise NoFixError("the program updates its parameters itself")
    if finding.hints.get("left"):
        return unsafe(
            "Clear the gradients before the backward", cleared_each_round(finding, source)
        )
    is_partial = any(related.role is Role.CLEARING for related in finding.related)
    return (unsafe if is_partial else safe)(
        "Clear the gradients in each round", cleared_each_round(finding, source)
    )
