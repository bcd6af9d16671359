"""Gradients of one loss that are cleared before another loss adds its own: a step finds half."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.paths import Paths
from gradlint.tape import (
    Clip,
    Decision,
    Event,
    InPlace,
    Kind,
    ModuleCall,
    Tape,
)
from gradlint_rules.accounts import Account, Update, Wiped, accounts, key
from gradlint_rules.rounds import cleared_rounds, is_own, is_tapped
from gradlint_rules.uses import is_never_used, is_never_used_inside


def halves(paths: Paths) -> Iterator[tuple[Account, Update, Wiped]]:
    """The gradients of one loss that are cleared before those of another are added: the step finds
    half of them.
    """
    for lost in paths.some(cleared_rounds):
        if not lost.is_of_one_loss:  # accumulation-defeated tells of micro-batches
            yield lost.account, lost.update, lost.wiped
    for account in accounts(paths):
        is_known = account.optimizer.complete and not is_tapped(account.tape)
        for update in account.updates if is_known else ():
            for wiped in update.wiped if update.fresh else ():
                if (
                    _is_for_the_step(account, update, wiped, paths)
                    and not wiped.read
                    and not _is_used(account.tape, wiped)
                ):
                    yield account, update, wiped


def _is_for_the_step(account: Account, update: Update, wiped: Wiped, paths: Paths) -> bool:
    """Whether cleared gradients were for this step: those of a round of its window, or of another
    loss in its round.
    """
    if _is_window_of_loop(account.tape, update, wiped) and is_never_used_inside(wiped.sink, paths):
        return is_own(account, wiped.sink)
    return _is_one_step(account, update, wiped) and is_never_used(wiped.sink, paths)


def _is_one_step(account: Account, update: Update, wiped: Wiped) -> bool:
    """Whether one function, round after round, back-propagates both for this optimizer alone, and
    steps.
    """
    events: list[Event] = [update.step, update.fresh[-1], wiped.sink]
    if not update.step.iteration or len({(event.stack, event.iteration) for event in events}) > 1:
        return False
    return wiped.clearing.is_within(update.step) and is_own(account, wiped.sink)


def _is_window_of_loop(tape: Tape, update: Update, wiped: Wiped) -> bool:
    """Whether a counter has the gradients of some rounds of a loop cleared, and the step behind it
    finds the rest.
    """
    step, used, lost, clearing = update.step, update.fresh[-1], wiped.sink, wiped.clearing
    if (
        key(used) != key(lost)
        or len(lost.iteration) <= len(step.iteration)
        or not lost.is_within(step)
    ):
        return False
    loops = [[loop for loop, _ in event.iteration] for event in (lost, clearing, used)]
    is_one_loop = (
        loops[0] == loops[1] == loops[2] and lost.iteration == clearing.iteration != used.iteration
    )
    return is_one_loop and not any(_is_about(decision, clearing) for decision in tape.decisions)


def _is_about(decision: Decision, event: Event) -> bool:
    """Whether a branch that is free to go either way leads to an event."""
    whole = decision.whole
    places = (event.at, *event.stack)
    return whole is not None and any(
        at.path == whole.path and whole.line <= at.line <= whole.end_line for at in places
    )


def _is_used(tape: Tape, wiped: Wiped) -> bool:
    """Whether gradients may have been put to use before they were cleared."""
    between = range(wiped.sink.order, wiped.clearing.order)
    if any(clip.order in between for clip in tape.of(Clip)):
        return True
    used = () if tape.traced else tape.among(InPlace, ModuleCall)
    return any(event.order in between and _may_use(event) for event in used)


def _may_use(event: Event) -> bool:
    """Whether gradients may have gone into this: a write in place, or a call of something
    unknown.
    """
    if isinstance(event, InPlace):  # noise.uniform_() and hidden.relu_() hold nothing else
        if event.after.inputs == (event.before,):
            return False
        return event.before.kind not in (Kind.CONSTANT, Kind.DATA) or len(event.after.inputs) > 1
    result = event.result if isinstance(event, ModuleCall) else None
    return result is not None and result.op == "call"
