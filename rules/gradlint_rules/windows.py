"""Windows: gradients accumulated over rounds of a loop, for a step that a counter lets through
every so often.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    End,
    Event,
    Fact,
    Iteration,
    OptimizerStep,
    Tape,
    ZeroGrad,
)
from gradlint_rules.accounts import Account, Key, Update, accounts_on, key
from gradlint_rules.cached import of_tape


@dataclass(frozen=True, slots=True)
class Window:
    """The gradients of one loss that one step used, and those of its kind that were cleared before
    it.
    """

    update: Update
    fresh: tuple[Backward, ...]
    lost: tuple[tuple[Backward, Event], ...]

    def rounds(self, depth: int) -> list[int]:
        """In which rounds of the loop the gradients were added."""
        sinks = [*self.fresh, *(sink for sink, _ in self.lost)]
        return sorted({sink.iteration[depth][1] for sink in sinks})


@dataclass(frozen=True, slots=True)
class Accumulation:
    """One loss, one step and the loop in which a counter decides when the step comes.

    `gate` is the condition, as it is answered in the rounds with a step.
    """

    account: Account
    loop: int
    depth: int  # of the loop in the rounds of an event
    gate: Fact
    sinks: tuple[Backward, ...]
    windows: tuple[Window, ...]

    @property
    def tape(self) -> Tape:
        return self.account.tape

    @property
    def condition(self) -> str:
        """When the step comes."""
        return (
            f"`{self.gate.text}`" if self.gate.detail == "true" else f"`{self.gate.text}` is false"
        )

    @property
    def defeat(self) -> Event | None:
        """What clears gradients of earlier rounds in a window whose last round is used."""
        lost = [clearing for window in self.windows if window.fresh for _, clearing in window.lost]
        return lost[0] if lost else None

    @property
    def clearings(self) -> list[Event]:
        """What ends a window before its time: not what clears in every round, which does not change
        its end.
        """
        return [event for event in self.account.clearings if not self._is_defeat(event)]

    def _is_defeat(self, event: Event) -> bool:
        return self.defeat is not None and key(event) == key(self.defeat)

    @property
    def sizes(self) -> list[int]:
        """In how many rounds each window was filled."""
        return [len(window.rounds(self.depth)) for window in self.windows]

    @property
    def is_early(self) -> bool:
        """Whether the first update holds one micro-batch, of the first round, and the next holds
        several.
        """
        if len(self.windows) < 2 or self.sizes[1] < 2 or self.windows[0].rounds(self.depth) != [0]:
            return False
        first = self.windows[0].update
        return self.filled(first) == 1 and all(
            round_of(sink, self.loop) is not None for sink in first.fresh
        )

    def filled(self, update: Update) -> int:
        """How many gradients of this loss an update used, or was to use, those of other loops
        too.
        """
        wiped = [wiped.sink for wiped in update.wiped if self._is_defeat(wiped.clearing)]
        return sum(key(sink) == key(self.sinks[0]) for sink in (*update.fresh, *wiped))


def accumulations(paths: Paths) -> Iterator[Accumulation]:
    """Every accumulation on the paths on which each branch goes the same way in all rounds."""
    return paths.some(accumulations_on)


@of_tape
def accumulations_on(tape: Tape) -> list[Accumulation]:
    """Every accumulation on a path; none where a branch goes both ways."""
    updated = [account for account in accounts_on(tape) if account.updates]
    return (
        [found for account in updated for found in _of(account)]
        if updated and is_uniform(tape)
        else []
    )


def is_uniform(tape: Tape) -> bool:
    """Whether no branch that is free to go either way goes both ways."""
    sides: dict[Span, bool] = {}
    return all(
        sides.setdefault(decision.at, decision.holds) is decision.holds
        for decision in tape.decisions
    )


def _of(account: Account) -> Iterator[Accumulation]:
    seen: set[tuple[Key, Key, int]] = set()
    for update in account.updates:
        for sink in update.fresh:
            depth = _depth(sink, update.step)
            if depth is None:
                continue
            loop = sink.iteration[depth][0]
            found = (key(sink), key(update.step), loop)
            if found in seen:
                continue
            seen.add(found)
            made = _accumulation(account, sink, update.step, loop, depth)
            if made is not None:
                yield made


def _depth(sink: Backward, step: OptimizerStep) -> int | None:
    """Which of the loops around both is the innermost."""
    depth = None
    for position, (one, other) in enumerate(zip(sink.iteration, step.iteration, strict=False)):
        if one[0] != other[0]:
            break
        depth = position
    return depth


def _accumulation(
    account: Account, sink: Backward, step: OptimizerStep, loop: int, depth: int
) -> Accumulation | None:
    sinks = [
        one
        for one in account.backwards
        if key(one) == key(sink) and round_of(one, loop) is not None
    ]
    steps = [
        update
        for update in account.updates
        if key(update.step) == key(step) and round_of(update.step, loop) is not None
    ]
    if any(one.order < (account.optimizer.order or 0) for one in sinks):
        return None  # another optimizer used these
    in_rounds = rounds_of(sinks, loop)
    stepped = rounds_of([update.step for update in steps], loop)
    if not in_rounds - stepped or _alternates(account, loop, in_rounds, stepped):
        return None
    gate = gate_of(account.tape, step, loop, sorted(in_rounds), stepped)
    windows = [_window(update, sink, loop) for update in steps] if gate is not None else []
    fed = tuple(window for window in windows if window.fresh or window.lost)
    if gate is None or not fed:
        return None
    return Accumulation(account, loop, depth, gate, tuple(sinks), fed)


def rounds_of(events: Iterable[Event], loop: int) -> set[int]:
    """In which iterations of a loop some events stand."""
    return {number for event in events if (number := round_of(event, loop)) is not None}


def _alternates(account: Account, loop: int, rounds: set[int], stepped: set[int]) -> bool:
    """Whether every round without a step is the turn of another optimizer, which does not step in
    those with one.
    """
    turns: dict[int, set[int]] = {}
    for step in account.tape.of(OptimizerStep):
        if (number := round_of(step, loop)) is not None:
            turns.setdefault(id(step.optimizer), set()).add(number)
    others = (own for own in turns.values() if not own & stepped)
    return rounds - stepped <= set[int]().union(*others)


def _window(update: Update, sink: Backward, loop: int) -> Window:
    def belongs(other: Backward) -> bool:
        return key(other) == key(sink) and round_of(other, loop) is not None

    fresh = tuple(one for one in update.fresh if belongs(one))
    lost = tuple((wiped.sink, wiped.clearing) for wiped in update.wiped if belongs(wiped.sink))
    return Window(update, fresh, lost)


def round_of(event: Event, loop: int) -> int | None:
    """In which round of a loop an event stands."""
    return next((number for owner, number in event.iteration if owner == loop), None)


def gate_of(
    tape: Tape, step: Event, loop: int, rounds: list[int], stepped: set[int]
) -> Fact | None:
    """The condition that holds in the rounds with a step and in no other: the last one before the
    step.
    """
    sides: dict[Key, dict[int, tuple[Fact, set[str]]]] = {}
    for event in tape.facts("branch"):
        number = round_of(event, loop)
        if number is not None:
            sides.setdefault(key(event), {}).setdefault(number, (event, set()))[1].add(event.detail)
    found = [
        next(event for number, (event, _) in by_round.items() if number in stepped)
        for by_round in sides.values()
        if _decides({number: said for number, (_, said) in by_round.items()}, rounds, stepped)
    ]
    found = [gate for gate in found if _decides_on(gate, step)]
    near = [gate for gate in found if gate.at.path == step.at.path and gate.at.line <= step.at.line]
    return max(near or found, key=lambda gate: (gate.at.line, gate.at.column), default=None)


def _decides_on(gate: Fact, step: Event) -> bool:
    """Whether the step hangs on a branch: it stands inside its statement, or behind one that can
    leave.
    """
    depth = len(gate.stack)
    if step.stack[:depth] != gate.stack:
        return False  # asked in a call that had returned before the step
    place = (*step.stack, step.at)[depth]
    return gate.scope is None or gate.scope.encloses(place)


def _decides(said: dict[int, set[str]], rounds: list[int], stepped: set[int]) -> bool:
    """Whether a branch goes one way in the rounds with a step and the other way in all the rest."""
    if any(len(said.get(number, ())) != 1 for number in rounds):
        return False
    yes = {next(iter(said[number])) for number in rounds if number in stepped}
    no = {next(iter(said[number])) for number in rounds if number not in stepped}
    return len(yes) == 1 and len(no) == 1 and yes != no


def is_counted(accumulation: Accumulation) -> bool:
    """Whether the step comes every so often, and not from some round on: no two in a row, but at
    the end.
    """
    rounds = sorted(
        number
        for window in accumulation.windows
        if (number := round_of(window.update.step, accumulation.loop)) is not None
    )
    return all(later - earlier > 1 for earlier, later in itertools.pairwise(rounds[:-1]))


@dataclass(frozen=True, slots=True)
class Leftover:
    """Gradients that no step has used when their loop ends; `then` is what becomes of them."""

    accumulation: Accumulation
    sinks: tuple[Backward, ...]
    then: Event


def leftover(accumulation: Accumulation) -> Leftover | None:
    """What the last window of the loop leaves behind; None where a step after the loop uses it."""
    tape = accumulation.tape
    end = end_of(tape, accumulation.loop)
    last = accumulation.windows[-1].update.step
    left = tuple(sink for sink in accumulation.sinks if sink.order > last.order)
    if end is None or not left or is_endless(tape, accumulation.sinks[0], end):
        return None
    kinds, clearings = {key(sink) for sink in left}, accumulation.clearings
    # a framework's hook for the end of an epoch runs in the last round
    for event in tape.events[left[-1].order + 1 :]:
        if isinstance(event, OptimizerStep) and event.optimizer is accumulation.account.optimizer:
            return None
        if event.order < end.order:
            continue
        if isinstance(event, Backward) and key(event) in kinds:
            return None if _goes_on(accumulation, event) else Leftover(accumulation, left, event)
        if isinstance(event, ZeroGrad) and event in clearings:
            return Leftover(accumulation, left, event)
        if isinstance(event, End):
            return Leftover(accumulation, left, event) if not event.raised else None
    return None


def continues(accumulation: Accumulation) -> bool:
    """Whether a window that the end of the loop leaves open is filled by the next loop."""
    end = end_of(accumulation.tape, accumulation.loop)
    last = accumulation.windows[-1].update.step
    if end is None or not any(sink.order > last.order for sink in accumulation.sinks):
        return False
    place = key(accumulation.sinks[0])
    following = (
        e for e in accumulation.account.backwards if e.order > end.order and key(e) == place
    )
    after = next(following, None)
    between = accumulation.tape.events[end.order : after.order] if after is not None else []
    clearings = accumulation.clearings
    cleared = any(event in clearings or isinstance(event, OptimizerStep) for event in between)
    return after is not None and not cleared and _goes_on(accumulation, after)


def _goes_on(accumulation: Accumulation, after: Backward) -> bool:
    """Whether the counter goes on into the next loop, so that the window across both is as large as
    any other.

    The first of all can be larger, `if step > 0 and step % n == 0`: then the steps come in other
    rounds of the next loop, and all windows from there on are of one size.
    """
    following = [
        update for update in accumulation.account.updates if update.step.order > after.order
    ]
    sizes = {accumulation.filled(update) for update in following}
    if following and accumulation.filled(following[0]) == max(accumulation.sizes):
        return True
    loop = after.iteration[accumulation.depth][0]
    return len(sizes) == 1 and _stepped(accumulation, loop) != _stepped(
        accumulation, accumulation.loop
    )


def _stepped(accumulation: Accumulation, loop: int) -> set[int]:
    """In which rounds of a loop the steps come."""
    updates = accumulation.account.updates
    return {number for update in updates if (number := round_of(update.step, loop)) is not None}


def is_endless(tape: Tape, first: Event, end: Event) -> bool:
    """Whether what the loop runs over goes on for ever, and was only left."""
    return any(first.order <= fact.order < end.order for fact in tape.facts("endless"))


def end_of(tape: Tape, loop: int) -> Iteration | None:
    """The end of the last round of a loop."""
    rounds = (event for event in tape.of(Iteration) if event.loop == loop)
    return next((event for event in rounds if not event.begins and event.last), None)
