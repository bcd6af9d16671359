"""The loop over batches that a framework runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import retention
from gradlint.interpret.values import Abstract, Call

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine


def run(
    m: Machine,
    place: Call,
    count: int,
    owner: Abstract,
    batch: Callable[[Loop], None],
    *,
    only_if_kept: bool = False,
) -> None:
    """Runs a few rounds at `place`; at their end it is written down whether `owner` piles up their
    graphs.

    With `only_if_kept` it is one round where `owner` keeps no graph of it: another would show the
    same.
    """
    with m.loop("data", count) as loop:
        while loop.round < count and not (
            only_if_kept and loop.round and not retention.holds_graph(m, owner)
        ):
            _iteration(m, place, loop, begins=True)
            batch(loop)
            loop.end = _iteration(m, place, loop, begins=False)
            m.turn(loop, loop.round + 1)
        retention.report(m, loop, owner)
        loop.ends()


def _iteration(m: Machine, place: Call, loop: Loop, *, begins: bool) -> tape.Iteration:
    at = place.frame.span(place.node)
    event = tape.Iteration(at=at, loop=loop.number, round=loop.round, begins=begins, over="data")
    m.emit(event)
    return event
