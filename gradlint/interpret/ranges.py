"""Loops over `range(…)`: which of its numbers are interpreted, where it has many or has no known
end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret import ahead, counters, estimates
from gradlint.interpret.iteration import MOST_WRITTEN, is_counted, is_in_full, rounds, skip
from gradlint.interpret.machine import MAX_ITEMS
from gradlint.interpret.symbols import Test
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
    start, step, stop = _integer(numbers.start), _integer(numbers.step), numbers.stop
    if isinstance(stop, Unknown):
        stop = m.concrete.get(stop.symbol, stop)
    last = _integer(stop)
    if start is not None and step and last is not None:
        _over_known(m, range(start, last, step), stop, visit)
    else:
        _over_unknown(m, numbers, stop, visit, call)


def _integer(value: Abstract) -> int | None:
    """The number that a value is known to be."""
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None


def _over_known(m: Machine, numbers: range, stop: Abstract, visit: Visit) -> None:
    """Runs through the numbers that are unrolled of a range whose bounds are known."""
    length = range_length(numbers.start, numbers.stop, numbers.step)
    if m.loops:
        m.loops[-1].length = length
    for turn, number in enumerate(_unrolled(m, numbers, length, stop)):
        skip(m, numbers.index(number) - turn)
        if visit(_turn(m, Const(number))):
            return


def _unrolled(m: Machine, numbers: range, length: int, stop: Abstract) -> Iterable[int]:
    """All the numbers of a short range, or of one whose bound was shortened; some of a long one."""
    most = MAX_ITEMS if length <= MAX_ITEMS and not m.session.loops.trains(m) else 0
    most = max(len(rounds(m)), most)
    is_long = length > most or (
        m.session.loops.periods.smaller and m.session.loops.takes_batches(m)
    )
    is_bound_shortened = isinstance(stop, Const) and stop.written is not None
    is_shortened = is_bound_shortened and (numbers.start, numbers.step) == (0, 1)
    if not is_long or is_shortened or (length <= MOST_WRITTEN and _picks(m)):
        is_in_full(m)
        return numbers
    if m.session.loops.trains(m):
        most = m.session.loops.shown(length, m.loops[-1])
    elif is_counted(m):
        most = m.session.loops.items(length)
    return _shown(m, numbers, m.session.loops.numbers(numbers, most))


def _over_unknown(m: Machine, numbers: Range, stop: Abstract, visit: Visit, call: Call) -> None:
    """Runs through a range a bound of which is not known."""
    start, step = _integer(numbers.start), _integer(numbers.step)
    if start is not None and isinstance(stop, Unknown) and step is not None and step > 0:
        there = m.oracle.facts.known(Test(stop.symbol.asked, ">", start))
        if there is False:  # range(x.size(0)) of an `x` without rows
            return
    turns = _turns(m, start, step, stop)
    if isinstance(stop, Unknown) and start is not None and step is not None:
        estimates.runs_to(m, stop.symbol, start + (turns[-1] + 1 if turns else 0) * step, call)
    item: Abstract = numbers.start
    for round_ in turns:
        if start is not None and step is not None:
            item = _turn(m, counters.counts_on(m, item, Const(start + round_ * step)))
        else:
            symbol = m.symbol(numbers).derive(("round", round_), "i")
            item = Unknown(symbol, data=True, type="number")
        is_last = step == 1 and round_ == turns[-1]
        if m.loops and isinstance(stop, Unknown) and is_last:
            m.loops[-1].last = item, stop.symbol
        if visit(item):
            return


def _turns(m: Machine, start: int | None, step: int | None, stop: Abstract) -> list[int]:
    """Which iterations are unrolled of a range a bound of which is not known."""
    turns = list(rounds(m))
    if start is None or step is None:
        return turns
    if isinstance(stop, Unknown) and step and is_counted(m):
        turns = list(estimates.turns(m, start, stop, step))
    if step > 0 and m.loops:
        numbers = range(start, start + MOST_NUMBERS * step, step)
        later = _shown(m, numbers, [start + turn * step for turn in turns])
        turns = [(number - start) // step for number in later]
    return turns


def _shown(m: Machine, numbers: range, shown: list[int]) -> list[int]:
    """The numbers that are shown of a loop, with those that branches ask for."""
    if not m.loops:
        return shown
    loop = m.loops[-1]
    asked = [number for number in m.session.loops.ahead(loop) if number in numbers]
    loop.numbers, loop.shown = numbers, tuple(sorted({*shown, *asked}, key=numbers.index))
    return list(loop.shown)


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
    """Whether the body of a loop has no other loop in it, and looks up by the loop's own number, in
    a list or in a name: `self.layers[i]`, `getattr(self, f"layer{i}")`. A use, no effect.
    """
    inner = list(within(loop.body))
    has_loop = any(isinstance(node, ir.For | ir.While) for node in inner)
    if has_loop or not isinstance(loop.target, ir.Name):
        return False
    name = loop.target.id
    indices = [node.index for node in inner if isinstance(node, ir.Subscript)]
    return any(isinstance(index, ir.Name) and index.id == name for index in indices) or any(
        isinstance(part, ir.Name) and part.id == name
        for node in inner
        if isinstance(node, ir.Call) and _looks_up(node.function)
        for part in within(node.args[-1:])
    )


def _looks_up(function: ir.Node) -> bool:
    match function:
        case ir.Name(id="getattr") | ir.Attribute(name="__getattr__"):
            return True
    return False
