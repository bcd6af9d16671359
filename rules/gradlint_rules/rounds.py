"""Inner loops that clear in every round: the step behind such a loop finds the gradients of its
last round alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.tape import (
    Backward,
    Event,
    Fact,
    InPlace,
    Iteration,
    Kind,
    ModuleCall,
    Tape,
    Value,
    ancestors,
)
from gradlint_rules.accounts import Account, Update, Wiped, accounts_on, is_gradient, key
from gradlint_rules.cached import of_tape
from gradlint_rules.held import reached, share


@dataclass(frozen=True, slots=True)
class ClearedRound:
    """A round of an inner loop whose gradients the next round clears, before the step that comes
    behind the loop.
    """

    account: Account
    update: Update
    wiped: Wiped

    @property
    def is_of_one_loss(self) -> bool:
        """Whether all rounds train the same: micro-batches, and not the tasks of several heads."""
        lost, used = reached(self.wiped.sink), reached(self.update.fresh[-1])
        return all(share([one], used) for one in lost) and all(share([one], lost) for one in used)


@of_tape
def cleared_rounds(tape: Tape) -> list[ClearedRound]:
    """Every round of a path that is lost so, where no round of the kind has put its gradients to
    use.

    A traced run looks closely at its first rounds alone: what those do, the later ones do as well.
    """
    found = list(_cleared_rounds(tape))
    used = {key(lost.wiped.sink) for lost in found if _is_used(tape, lost)}
    return [lost for lost in found if key(lost.wiped.sink) not in used]


def _cleared_rounds(tape: Tape) -> Iterator[ClearedRound]:
    for account in accounts_on(tape):
        if not account.optimizer.complete or is_tapped(tape):
            continue
        for update in account.updates:
            for wiped in update.wiped if update.fresh else ():
                if not _is_last_of_loop(update, wiped) or _is_search(tape, update, wiped):
                    continue
                if is_own(account, wiped.sink):
                    yield ClearedRound(account, update, wiped)


def is_tapped(tape: Tape) -> bool:
    """Whether a run makes use of gradients where no read of them shows."""
    return tape.traced and bool(tape.facts("gradients-tapped"))


def is_own(account: Account, sink: Backward) -> bool:
    """Whether nothing but what the optimizer trains gets gradients from a backward."""
    if any("unseen" in value.flags for value in sink.graph):  # it may have come to an input, too
        return False
    return all(
        leaf.parameter is not None and account.optimizer.holds(leaf.parameter)
        for leaf in sink.leaves
    )


def _is_last_of_loop(update: Update, wiped: Wiped) -> bool:
    """Whether both gradients come from one loop that ends before the step:
    `for task in tasks: … loss.backward()`.
    """
    step, used, lost = update.step, update.fresh[-1], wiped.sink
    around = len(step.iteration)
    if not around or key(used) != key(lost) or not (lost.is_within(step) and used.is_within(step)):
        return False
    inner = [event.iteration[around : around + 1] for event in (lost, wiped.clearing, used)]
    return (
        inner[0] != inner[1] == inner[2]
        and inner[0][:1] != ()
        and used.order > wiped.clearing.order
    )


def _is_search(tape: Tape, update: Update, wiped: Wiped) -> bool:
    """Whether the loop ends by what a round finds: the step is for the last one,
    `if loss.isfinite(): break`.
    """
    loop, _ = wiped.sink.iteration[len(update.step.iteration)]
    return any(event.ends_early for event in tape.of(Iteration) if event.loop == loop)


def _is_used(tape: Tape, found: ClearedRound) -> bool:
    """Whether the gradients of a round come into an update, or into code out of view, in spite of
    their clearing.

    That they are read says little: a norm for the log is computed from them, too.
    """
    lost = range(found.wiped.sink.order, found.wiped.clearing.order)
    behind = range(found.update.fresh[-1].order, found.update.step.order)
    if any(event.order in behind for event in tape.facts("gradient-set")):
        return True
    if any(event.order in behind and _is_given(event) for event in tape.of(InPlace)):
        return True
    events = tape.among(InPlace, ModuleCall, Backward, "data-set")
    return any(_puts_to_use(event, lost) for event in events if event.order >= lost.start)


def _is_given(event: InPlace) -> bool:
    """Whether a gradient is written with what gradients gave: the mean of those of all rounds."""
    return is_gradient(event.before) and any(map(is_gradient, ancestors(*_sources(event))))


def _puts_to_use(event: Event, lost: range) -> bool:
    match event:
        case Backward():
            return _are_read(event.ancestors, lost)
        case Fact():
            return event.source is not None and _are_read(ancestors(event.source), lost)
        case InPlace():
            is_learned = event.before.kind is Kind.PARAMETER
            return is_learned and _are_read(ancestors(*_sources(event)), lost)
        case ModuleCall(result=Value(op="call") as result):
            return event.order in lost or _are_read(_tensors(result.inputs), lost)
    return False


def _sources(event: InPlace) -> list[Value]:
    return [*event.write.by, *event.after.inputs[1:]]


def _are_read(values: Iterable[Value], lost: range) -> bool:
    """Whether something that was computed in these moments from a gradient is among some values."""
    return any(
        value.order in lost and any("gradient" in each.flags for each in value.inputs)
        for value in values
    )


def _tensors(values: Sequence[Value]) -> Iterator[Value]:
    """Tensors and what they were computed from: a number that is handed on changes no gradient."""
    return ancestors(*(value for value in values if value.in_torch))
