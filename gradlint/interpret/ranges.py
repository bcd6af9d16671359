"""Loops over `range(…)`: which of its numbers are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret import ahead, counters, estimates
from gradlint.interpret.iteration import MOST_WRITTEN, is_counted, is_in_full, rounds
from gradlint.interpret.machine import MAX_ITEMS
from gradlint.interpret.tables import ITERATE, Visit, handles
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Range,
    Unknown,
    range_length,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MOST_NUMBERS = 1_000_000  # that a loop to an unknown one can run through


@handles(ITERATE, Range)
def over_range(m: Machine, numbers: Range, visit: Visit, call: Call) -> None:
    start = numbers.start.value if isinstance(numbers.start, Const) else None
    step = numbers.step.value if isinstance(numbers.step, Const) else None
    stop = (
        m.concrete.get(numbers.stop.symbol, numbers.stop)
        if isinstance(numbers.stop, Unknown)
        else numbers.stop
    )
    last = stop.value if isinstance(stop, Const) else None
    if isinstance(start, int) and isinstance(step, int) and step and isinstance(last, int):
        known, length = range(start, last, step), range_length(start, last, step)
        if m.loops:
            m.loops[-1].length = length
        loops = m.session.loops
        is_short = length <= MAX_ITEMS and not loops.trains(m)
        most = max(len(rounds(m)), MAX_ITEMS if is_short else 0)
        shown: Iterable[int] = known
        is_long = length > most or (loops.periods.smaller and loops.takes_batches(m))
        is_shortened = (
            isinstance(stop, Const) and stop.written is not None and (start, step) == (0, 1)
        )
        if is_long and not is_shortened and not (length <= MOST_WRITTEN and _picks(m)):
            if m.session.loops.trains(m):
                most = m.session.loops.shown(length, m.loops[-1])
            elif is_counted(m):
                most = m.session.loops.items(length)
            shown = _shown(m, known, m.session.loops.numbers(known, most))
        else:
            is_in_full(m)
        for turn, number in enumerate(shown):
            _skip(m, known.index(number) - turn)
            if visit(_turn(m, Const(number))):
                return
        return
    turns = list(rounds(m))
    if (
        isinstance(stop, Unknown)
        and isinstance(start, int)
        and isinstance(step, int)
        and step
        and is_counted(m)
    ):
        turns = list(estimates.turns(m, start, stop, step))
    if isinstance(start, int) and isinstance(step, int) and step > 0 and m.loops:
        later = _shown(
            m,
            range(start, start + MOST_NUMBERS * step, step),
            [start + turn * step for turn in turns],
        )
        turns = [(number - start) // step for number in later]
    if isinstance(stop, Unknown) and isinstance(start, int) and isinstance(step, int):
        estimates.runs_to(m, stop.symbol, start + (turns[-1] + 1 if turns else 0) * step, call)
    item: Abstract = numbers.start
    for round_ in turns:
        if isinstance(start, int) and isinstance(step, int):
            item = _turn(m, counters.counts_on(m, item, Const(start + round_ * step)))
        else:
            item = Unknown(
                m.symbol(numbers).derive(("round", round_), "i"), data=True, type="number"
            )
        if m.loops and isinstance(stop, Unknown) and step == 1 and round_ == turns[-1]:
            m.loops[-1].last = item, stop.symbol
        if visit(item):
            return


def _shown(m: Machine, numbers: range, shown: list[int]) -> list[int]:
    """The numbers that are shown of a loop, with those that branches ask for."""
    if not m.loops:
        return shown
    loop = m.loops[-1]
    asked = [number for number in m.session.loops.ahead(loop) if number in numbers]
    loop.numbers, loop.shown = numbers, tuple(sorted({*shown, *asked}, key=numbers.index))
    return list(loop.shown)


def _skip(m: Machine, rounds: int) -> None:
    """Notes how many rounds of the innermost loop are left out before this one."""
    if m.loops:
        m.loops[-1].skipped = rounds


def _turn(m: Machine, number: Const) -> Const:
    return (
        ahead.note(m, number, ahead.Turn(m.loops[-1]))
        if m.loops and m.loops[-1].numbers
        else number
    )


def _picks(m: Machine) -> bool:
    """Whether the innermost loop takes parts by its number, `x = self.layers[i](x)`, and holds no
    training step.

    Rounds that were left out would put parts side by side that are not.
    """
    node = m.loops[-1].node if m.loops else None
    return (
        isinstance(node, ir.For)
        and m.session.loops.rounds(node) < m.session.loops.batches
        and _subscripts(node)
    )


@memo.of_programs
def _subscripts(loop: ir.For) -> bool:
    """Whether the body of a loop has no other loop in it, and subscripts by the loop's own number:
    a use, no effect.
    """
    inner = list(within(loop.body))
    has_loop = any(isinstance(node, ir.For | ir.While) for node in inner)
    if has_loop or not isinstance(loop.target, ir.Name):
        return False
    indices = [node.index for node in inner if isinstance(node, ir.Subscript)]
    return any(isinstance(index, ir.Name) and index.id == loop.target.id for index in indices)
