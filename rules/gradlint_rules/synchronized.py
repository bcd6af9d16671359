"""Clearings in a round of Accelerate's `accumulate` that throw away what the rounds before have
accumulated: the prepared optimizer clears in the round that ends a window, where it must not do so
before the backward; `model.zero_grad()`, which no prepared optimizer holds back, clears in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.tape import Backward, Event, Fact, Optimizer, OptimizerStep, Tape, ZeroGrad
from gradlint_rules.cached import of_tape
from gradlint_rules.held import Overlapping, identities

_Event = TypeVar("_Event", bound=Event)
_ROUNDS = 2  # that have to be seen
_ENTERED = "accelerator-accumulates"
_ASKED = "accelerator-synchronizes"  # whether a window ends


@dataclass(frozen=True, slots=True)
class WipedWindow:
    """A clearing that leaves of a window its last round alone, and what comes behind it."""

    entered: Fact
    clearing: ZeroGrad
    sink: Backward
    step: OptimizerStep

    @property
    def is_of_each_round(self) -> bool:
        """Whether it clears in each round, and not in the last of a window alone."""
        return self.clearing.optimizer is None

    @property
    def is_setting(self) -> bool:
        """Whether a setting says how many rounds a window has."""
        return self.entered.detail != ""


@of_tape
def wiped_windows(tape: Tape) -> list[WipedWindow]:
    """The clearings of a path that come between `accumulate` and the backward of each round, and
    those of the model itself wherever they come; one that does not come in all of the rounds,
    `if i % n == 0: optimizer.zero_grad()`, begins a window.

    A run shows the windows themselves.
    """
    if tape.traced:
        return []
    found: list[WipedWindow] = []
    rounds: dict[Span, list[Fact]] = {}
    for fact in tape.facts(_ENTERED):
        if fact.iteration:
            rounds.setdefault(fact.at, []).append(fact)
    for entered in rounds.values():
        wiped = [_within(tape, each) for each in entered]
        known = [each for each in wiped if each is not None]
        if len(known) >= _ROUNDS and None not in wiped[:-1]:  # the last need not have ended
            found.append(known[0])
    return found


def _within(tape: Tape, entered: Fact) -> WipedWindow | None:
    for clearing in _of_round(tape.of(ZeroGrad), entered):
        steps = _of_round(tape.of(OptimizerStep), entered)
        step = next((each for each in steps if _clears(clearing, each.optimizer)), None)
        if step is None or _may_end_a_window(tape, entered, clearing):
            continue
        begin = entered.order if clearing.optimizer is None else clearing.order
        sinks = _of_round(tape.backwards(), entered)
        sink = next((each for each in sinks if begin < each.order < step.order), None)
        if sink is not None:
            return WipedWindow(entered, clearing, sink, step)
    return None


def _may_end_a_window(tape: Tape, entered: Fact, clearing: ZeroGrad) -> bool:
    """Whether a model may be cleared because the window ends: `if accelerator.sync_gradients:`."""
    asked = _of_round(tape.facts(_ASKED), entered)
    return clearing.optimizer is None and any(each.order < clearing.order for each in asked)


def _clears(clearing: ZeroGrad, optimizer: Optimizer) -> bool:
    """Whether it clears what an optimizer holds."""
    if clearing.optimizer is not None:
        return clearing.optimizer is optimizer
    held = Overlapping(identities(optimizer.parameters))
    return any(map(held.overlaps, identities(clearing.parameters)))


def _of_round(events: Iterable[_Event], entered: Fact) -> Iterator[_Event]:
    """The events behind the beginning of a round, in that round."""
    return (
        event
        for event in events
        if event.iteration == entered.iteration and event.order > entered.order
    )
