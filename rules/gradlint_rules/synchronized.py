"""Clearings in a round of Accelerate's `accumulate`, before its backward: the prepared optimizer
clears in the round that ends a window, and with it what the rounds before have accumulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.tape import Backward, Event, Fact, OptimizerStep, Tape, ZeroGrad
from gradlint_rules.cached import of_tape

_Event = TypeVar("_Event", bound=Event)
_ROUNDS = 2  # that have to be seen
_ENTERED = "accelerator-accumulates"


@dataclass(frozen=True, slots=True)
class WipedWindow:
    """A clearing that leaves of a window its last round alone, and what comes behind it."""

    entered: Fact
    clearing: ZeroGrad
    sink: Backward
    step: OptimizerStep

    @property
    def is_setting(self) -> bool:
        """Whether a setting says how many rounds a window has."""
        return self.entered.detail != ""


@of_tape
def wiped_windows(tape: Tape) -> list[WipedWindow]:
    """The clearings of a path that come between `accumulate` and the backward of each round; one
    that does not come in all of them, `if i % n == 0: optimizer.zero_grad()`, begins a window.

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
        step = next((each for each in steps if each.optimizer is clearing.optimizer), None)
        if step is None:
            continue
        sinks = _of_round(tape.backwards(), entered)
        sink = next((each for each in sinks if clearing.order < each.order < step.order), None)
        if sink is not None:
            return WipedWindow(entered, clearing, sink, step)
    return None


def _of_round(events: Iterable[_Event], entered: Fact) -> Iterator[_Event]:
    """The events behind the beginning of a round, in that round."""
    return (
        event
        for event in events
        if event.iteration == entered.iteration and event.order > entered.order
    )
