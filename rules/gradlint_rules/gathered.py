"""Losses that a loop gathers, in a list or a sum, for one backward in every so many rounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from gradlint.dataclass import dataclass
from gradlint.tape import Backward, Fact, Tape, Value, ancestors, graph
from gradlint_rules.accounts import ELSEWHERE, Key, key
from gradlint_rules.cached import of_tape
from gradlint_rules.computed import losses, used
from gradlint_rules.scalars import is_scalar
from gradlint_rules.windows import end_of, gate_of, is_endless, is_uniform, round_of


@dataclass(frozen=True, slots=True)
class Gathered:
    """The losses of one place in the rounds of a loop, and the backwards that use some rounds of
    them each.
    """

    tape: Tape
    loop: int
    gate: Fact
    sinks: tuple[Backward, ...]
    left: tuple[Fact, ...]  # those behind the last backward


def gathered_on(tape: Tape) -> Iterator[Gathered]:
    """What the loops of a path gather that a counter, or how much there is, lets through."""
    sinks = [
        sink
        for sink in tape.backwards()
        if not sink.by_framework and sink.sink not in ELSEWHERE and sink.iteration
    ]
    # by the place of the loss, and by a loop around it
    rounds: dict[tuple[Key, int], dict[int, Fact]] = {}
    for fact, value in _terms(tape) if sinks and is_uniform(tape) else ():
        for loop, _ in fact.iteration:
            rounds.setdefault((_place(value), loop), {})[id(value)] = fact
    for (_, loop), facts in rounds.items():
        own = [sink for sink in sinks if round_of(sink, loop) is not None]
        found = _gathered(tape, loop, [*facts.values()], own) if len(facts) > len(own) > 0 else None
        if found is not None:
            yield found


def _terms(tape: Tape) -> Iterator[tuple[Fact, Value]]:
    """The losses, and the single numbers that are put into a list."""
    yield from losses(tape)
    for fact in tape.facts("gathered"):
        if fact.value is not None and is_scalar(fact.value):
            yield fact, fact.value


def _place(value: Value) -> Key:
    return value.at, value.stack


def _gathered(
    tape: Tape, loop: int, facts: Sequence[Fact], sinks: Sequence[Backward]
) -> Gathered | None:
    numbers = {number for fact in facts if (number := round_of(fact, loop)) is not None}
    if len(numbers) < len(facts):
        return None  # several in one round
    stepped = {number for sink in sinks if (number := round_of(sink, loop)) is not None}
    is_counted = all(later - earlier > 1 for earlier, later in itertools.pairwise(sorted(stepped)))
    if not numbers - stepped or len({key(sink) for sink in sinks}) > 1 or not is_counted:
        return None
    windows = [_rounds_in(sink, facts, loop) for sink in sinks]
    is_gathered = all(len(window) > 1 for window in windows)
    if not is_gathered or any(map(_depends_on_the_round_before, facts)):
        return None
    gate = gate_of(tape, sinks[-1], loop, sorted(numbers), stepped)
    if gate is None:
        return None
    left = tuple(fact for fact in facts if fact.order > sinks[-1].order)
    return Gathered(tape, loop, gate, tuple(sinks), left)


def _rounds_in(sink: Backward, facts: Sequence[Fact], loop: int) -> set[int | None]:
    """The rounds of the loop whose losses a backward runs through."""
    values = {id(value) for value in sink.graph}
    return {round_of(fact, loop) for fact in facts if id(fact.value) in values}


def _depends_on_the_round_before(fact: Fact) -> bool:
    """Whether a loss is computed from what another round has computed: a state that is carried
    on, or a sum.
    """
    made = (value for value in graph(fact.value) if not value.is_leaf) if fact.value else ()
    return any(
        value.iteration[: len(fact.iteration)] != fact.iteration
        for value in made
        if len(value.iteration) >= len(fact.iteration)
    )


@dataclass(frozen=True, slots=True)
class Lost:
    """Losses that nothing has back-propagated when their loop ends."""

    gathered: Gathered
    losses: tuple[Fact, ...]


def lost_on(tape: Tape) -> tuple[Lost, ...]:
    """The losses that the loops of a path leave behind: all of those of a place, in all its
    loops.
    """
    return _judged(tape)[0]


def flushed_on(tape: Tape) -> AbstractSet[Key]:
    """The conditions behind which a later backward uses what is left, or nothing is left."""
    return _judged(tape)[1]


@of_tape
def _judged(tape: Tape) -> tuple[tuple[Lost, ...], AbstractSet[Key]]:
    found = [each for each in gathered_on(tape) if _ends(each)]
    needed = {id(value) for value in ancestors(*(sink.value for sink in tape.backwards()))}
    needed |= {id(fact.value) for fact in used(tape)}
    lost: list[Lost] = []
    flushed: set[Key] = set()
    for each in found:
        left = tuple(fact for fact in each.left if id(fact.value) not in needed)
        if left and len(left) == len(each.left):
            lost.append(Lost(each, left))
        elif each.left:
            flushed.add(key(each.gate))
    return tuple(lost), flushed


def _ends(gathered: Gathered) -> bool:
    """Whether its loop runs to the end of what it runs over."""
    end = end_of(gathered.tape, gathered.loop)
    return end is not None and not is_endless(gathered.tape, gathered.sinks[0], end)
