"""Accounts: what lies in an optimizer's gradients at each moment, by which backward, and what
becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.operations import canonical
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Clip,
    Event,
    Fact,
    InPlace,
    Kind,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Parameter,
    Tape,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules.cached import of_tape
from gradlint_rules.held import identities, share

Key = tuple[Span, tuple[Span, ...]]  # a place in the source and the calls that led there
# gives gradients back; is cleared and stepped where nobody sees it
ELSEWHERE = ("autograd.grad", "compute_loss")
_ZEROES = ("zero", "fill", "mul")
_KINDS = (Backward, OptimizerStep, Clip, ZeroGrad, InPlace, "gradient-set")


@dataclass(slots=True)
class Gradient:
    """What one backward added: for which step it was used, if it was; whether some of it may have
    been cleared.
    """

    sink: Backward
    used: bool = False
    doubtful: bool = False
    cleared: tuple[Value, ...] = ()  # the part of it that is known to have been cleared

    def remains(self, optimizer: Optimizer) -> bool:
        """Whether it is known to lie there still, or a part of it in a parameter that the optimizer
        holds.
        """
        if self.doubtful or not self.cleared:
            return not self.doubtful
        gone = identities(self.cleared)
        left = [
            leaf.parameter
            for leaf in self.sink.leaves
            if leaf.parameter is not None and not leaf.assumed
        ]
        return any(
            optimizer.holds(parameter) and not share(gone, [parameter]) for parameter in left
        )

    def is_gone(self, optimizer: Optimizer) -> bool:
        """Whether all of it that came to the optimizer's parameters is known to have been
        cleared.
        """
        if (
            self.doubtful
            or not self.cleared
            or any(leaf.assumed or not leaf.parameter for leaf in self.sink.leaves)
        ):
            return False
        return not self.remains(optimizer)


@dataclass(frozen=True, slots=True)
class Wiped:
    """A gradient that was cleared before any step used it."""

    sink: Backward
    clearing: Event
    read: bool  # gradients were read or set by hand before


@dataclass(frozen=True, slots=True)
class Update:
    """One step of the optimizer, and the gradients that it found."""

    step: OptimizerStep
    fresh: tuple[Backward, ...]  # added since the step before
    stale: tuple[Backward, ...]  # used by an earlier step, and never cleared
    wiped: tuple[Wiped, ...]  # added since the step before, and cleared again
    given: bool  # gradients were read or set by hand since the step before
    taken: bool  # by the program itself: a library that clips reads them, too


@dataclass(frozen=True, slots=True)
class Clipped:
    """Gradients clipped: how many had been added since the last step, and whether any backward came
    before.
    """

    clip: Clip
    fresh: int
    after_step: bool


@dataclass(slots=True)
class Account:
    """Everything that happens to the gradients of one optimizer on one path."""

    tape: Tape
    optimizer: Optimizer
    updates: list[Update] = field(default_factory=list)
    clips: list[Clipped] = field(default_factory=list)
    clearings: list[Event] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    left: list[Backward] = field(default_factory=list)  # not used by any step when the path ends


def key(event: Event) -> Key:
    """What tells one statement, called in one way, from others."""
    return event.at, event.stack


def accounts(paths: Paths) -> list[Account]:
    """The accounts of every optimizer on every path, but for those that a framework keeps by
    itself.
    """
    return list(paths.some(accounts_on))


@of_tape
def accounts_on(tape: Tape) -> list[Account]:
    """The accounts of every optimizer on one path."""
    return [_account(tape, optimizer) for optimizer in tape.optimizers()]


def idle_on(tape: Tape) -> Iterator[Account]:
    """The accounts of optimizers that are made on a path, and neither step nor clear."""
    busy = {id(optimizer) for optimizer in tape.optimizers()}
    for event in tape.of(OptimizerMade):
        if id(event.optimizer) not in busy:
            account = _account(tape, event.optimizer)
            account.backwards[:] = [sink for sink in account.backwards if sink.order > event.order]
            yield account


def by_hand(paths: Paths) -> Iterator[Account]:
    """The accounts of parameters that no optimizer holds and the program updates itself:
    `p -= rate * p.grad`.
    """
    optimizers = list(paths.some(_made))
    if any(optimizer.escapes or not optimizer.complete for optimizer in optimizers):
        return iter(())
    return paths.some(lambda tape: _by_hand_on(tape, optimizers))


def _by_hand_on(tape: Tape, optimizers: Sequence[Optimizer]) -> Iterator[Account]:
    steps: dict[Parameter, dict[int, OptimizerStep]] = {}
    for event in tape.of(InPlace) if tape.of(Backward) else ():
        held = _descending(event)
        if (
            held is None
            or held.parameter is None
            or any(made.holds(held.parameter) for made in optimizers)
        ):
            continue
        updates = steps.setdefault(held.parameter, {})
        own = next((step.optimizer for step in updates.values()), None)
        own = own or Optimizer(held.parameter.path, "", held.at, [held])
        step = OptimizerStep(
            at=event.at, stack=event.stack, iteration=event.iteration, optimizer=own
        )
        step.order = event.order
        updates[event.order] = step
    for updates in steps.values():
        own = next(iter(updates.values())).optimizer
        yield _account(
            tape, own, [updates.get(event.order, event) for event in tape.among(*_KINDS)]
        )


def _made(tape: Tape) -> list[Optimizer]:
    """Every optimizer of a path, those too that do nothing on it."""
    return [*tape.optimizers(), *(event.optimizer for event in tape.of(OptimizerMade))]


def _descending(event: InPlace) -> Value | None:
    """The parameter that is written here with what its own gradient gives."""
    for value in (event.before, *event.before.inputs):  # `p`, or `p.data`
        if value.parameter is not None and "gradient" not in value.flags:
            gradients = [
                source for source in ancestors(*event.write.by) if "gradient" in source.flags
            ]
            return value if gradients and share(identities(gradients), [value.parameter]) else None
    return None


@of_tape
def _concerning(tape: Tape) -> list[Event]:
    """The events that are about gradients, without most writes in place."""
    return [
        event
        for event in tape.among(*_KINDS)
        if not isinstance(event, InPlace) or _may_clear(event) or _bounds(event)
    ]


def _account(tape: Tape, optimizer: Optimizer, events: Sequence[Event] = ()) -> Account:
    made = Account(tape, optimizer)
    pending: list[Gradient] = []
    wiped: list[Wiped] = []
    cleared: list[Value] = []
    given = taken = after_step = False
    is_alone = len(tape.optimizers()) == 1
    for event in events or _concerning(tape):
        match event:
            case Backward() if event.sink not in ELSEWHERE:
                if serves(optimizer, event, is_alone=is_alone):
                    pending.append(Gradient(event))
                    made.backwards.append(event)
                    cleared, after_step = [], False
            case OptimizerStep() if event.optimizer is optimizer:
                pending = [gradient for gradient in pending if not gradient.is_gone(optimizer)]
                fresh = tuple(gradient.sink for gradient in pending if not gradient.used)
                stale = tuple(
                    gradient.sink
                    for gradient in pending
                    if gradient.used and gradient.remains(optimizer)
                )
                made.updates.append(Update(event, fresh, stale, tuple(wiped), given, taken))
                for gradient in pending:
                    gradient.used = True
                wiped, given, taken, after_step = [], False, False, True
            case Clip():
                if event.reads_only:
                    is_read = _concerns(optimizer, event.parameters)
                    given, taken = given or is_read, taken or (is_read and not event.by_library)
                elif _concerns(optimizer, event.parameters):
                    unused = sum(not gradient.used for gradient in pending)
                    made.clips.append(Clipped(event, unused, after_step))
            case InPlace() if _bounds(event):
                clip = _by_hand(event)
                if _concerns(optimizer, clip.parameters):
                    unused = sum(not gradient.used for gradient in pending)
                    made.clips.append(Clipped(clip, unused, after_step))
            case Fact(what="gradient-set"):
                is_set = event.value is None or _concerns(optimizer, (event.value,))
                given, taken = given or is_set, taken or is_set
            case ZeroGrad() | InPlace():
                found = clears(optimizer, event, cleared)
                if found is None:
                    if is_alone and not optimizer.complete and isinstance(event, ZeroGrad):
                        _doubt(pending, event)
                    continue
                made.clearings.append(event)
                if found:
                    wiped += [
                        Wiped(gradient.sink, event, given)
                        for gradient in pending
                        if not gradient.used
                    ]
                    pending = []
                    # what was read before it is no longer there
                    given = given and not isinstance(event, ZeroGrad)
                    taken = taken and given
                for gradient in pending:
                    if isinstance(event, ZeroGrad) and _is_exact(event, optimizer, tape):
                        gradient.cleared += event.parameters
                    else:
                        gradient.doubtful = True
    made.left = [gradient.sink for gradient in pending if not gradient.used]
    return made


def _doubt(pending: Sequence[Gradient], event: ZeroGrad) -> None:
    """Marks what is cleared of an optimizer that is not known to hold it: `net.zero_grad()` of
    `pick(net)`.
    """
    gone = identities(event.parameters)
    for gradient in pending:
        if share(gone, identities(gradient.sink.leaves)):
            gradient.doubtful = True


def serves(optimizer: Optimizer, sink: Backward, *, is_alone: bool) -> bool:
    """Whether a backward adds to the gradients of this optimizer's parameters, as far as is
    known.
    """
    found = sink.leaves
    if any(leaf.parameter is not None and optimizer.holds(leaf.parameter) for leaf in found):
        return True
    if optimizer.complete or not is_alone:
        return False
    return any(leaf.assumed or leaf.kind in (Kind.UNKNOWN, Kind.PARAMETER) for leaf in found)


def clears(optimizer: Optimizer, event: ZeroGrad | InPlace, cleared: list[Value]) -> bool | None:
    """Whether all that the optimizer holds is cleared by now (False: some of it, or perhaps); None:
    nothing of it.
    """
    if isinstance(event, InPlace):
        if not _may_clear(event):
            return None
        # `p.grad`, or `p.grad.data`
        values: tuple[Value, ...] = (event.before, *event.before.inputs)
    else:
        values = event.parameters
        if event.optimizer is optimizer:
            return True
        if not values and (
            event.optimizer is None or not event.optimizer.complete or not optimizer.complete
        ):
            return False
    parameters = optimizer.held_at(event.order)
    if not parameters:
        return False
    held = identities(parameters)
    if not share(identities(values), held):
        return None
    if isinstance(event, InPlace) and not _zeroes(event):
        return False
    cleared += values
    done = identities(cleared)
    known = {id(one) for one in done}
    return len(held) == len(parameters) and all(
        id(one) in known or share(done, [one]) for one in held
    )


def _may_clear(event: InPlace) -> bool:
    return canonical(event.write.op) in _ZEROES and is_gradient(event.before)


def _bounds(event: InPlace) -> bool:
    """Whether the program clips a gradient itself: `p.grad.clamp_(-1, 1)`."""
    return canonical(event.write.op) == "clamp" and is_gradient(event.before)


def _by_hand(event: InPlace) -> Clip:
    """The clipping that a write into a gradient is."""
    return Clip(
        at=event.at,
        stack=event.stack,
        iteration=event.iteration,
        order=event.order,
        text=event.text,
        parameters=(event.before, *event.before.inputs),
    )


def _zeroes(event: InPlace) -> bool:
    """Whether zeros are known to be left: `zero_()`, `fill_(0)`, but not `fill_(0.01)` or
    `mul_(decay)`.
    """
    return canonical(event.write.op) == "zero" or [given for _, given in event.after.arguments] == [
        0
    ]


def _is_exact(event: ZeroGrad, optimizer: Optimizer, tape: Tape) -> bool:
    """Whether it is known what was cleared: all that a module has (`model.zero_grad()`), or what a
    run has shown.
    """
    return (
        optimizer.complete
        and event.complete
        and bool(event.parameters)
        and (tape.traced or bool(event.text))
    )


def is_gradient(value: Value) -> bool:
    """Whether a value is the gradient of something, or shares its memory."""
    return "gradient" in value.flags or any("gradient" in source.flags for source in value.inputs)


def _concerns(optimizer: Optimizer, values: Sequence[Value]) -> bool:
    return not optimizer.parameters or share(identities(values), identities(optimizer.parameters))
