"""Where losses arrive: the sinks of an entry over all of its paths, and the decisions that tell
these paths apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.tape import Backward, Decision, May, OptimizerStep, Tape, Value, ZeroGrad
from gradlint_rules.cached import of_paths

_Key = tuple[Span, bool, int]
_NOW = -1


@dataclass(frozen=True, slots=True)
class Arrival:
    """A loss that comes to a sink on one path."""

    tape: Tape
    sink: Backward
    in_vain: bool = False  # on no path has this sink a gradient, in a loop that trains

    @property
    def loss(self) -> Value:
        return self.sink.value

    @property
    def is_starved(self) -> bool:
        """Whether the backward happens and finds nothing that carries a gradient.

        A `try` around it is for what may fail: that it always does is known to nobody.
        """
        if self.loss.requires_grad or self.sink.guarded:
            return False
        return self.in_vain or not self.sink.caught


@of_paths
def arrivals(paths: Paths) -> Sequence[Sequence[Arrival]]:
    """All arrivals, those at one sink together, in the order of the source."""
    sinks: dict[tuple[Span, tuple[Span, ...]], list[Arrival]] = {}
    for arrival in paths.some(_on):
        sinks.setdefault((arrival.sink.at, arrival.sink.stack), []).append(arrival)
    return [_judged(sinks[key], paths) for key in sorted(sinks)]


def _on(tape: Tape) -> Iterator[Arrival]:
    return (Arrival(tape, sink) for sink in tape.backwards())


def _judged(found: list[Arrival], paths: Paths) -> list[Arrival]:
    """The arrivals at one sink; where none has a gradient, whatever was not run, a `try` around it
    hides that.
    """
    works = {
        id(arrival.tape)
        for arrival in found
        if arrival.loss.requires_grad or not arrival.sink.caught
    }
    if (
        works
        or not any(map(_trains, found))
        or not paths.never(lambda tape: id(tape) in works, May.BIND)
    ):
        return found
    return [Arrival(arrival.tape, arrival.sink, in_vain=True) for arrival in found]


def _trains(arrival: Arrival) -> bool:
    """Whether an optimizer is cleared before a sink, or steps behind it, in the same round of a
    loop.

    It holds something that the loss is made of.
    """
    sink = arrival.sink
    beside = arrival.tape.among(Backward, OptimizerStep, ZeroGrad)
    place = beside.index(sink)
    near = [*beside[max(place - 1, 0) : place], *beside[place + 1 : place + 2]]
    turns = [
        each for each in near if not isinstance(each, Backward) and each.iteration == sink.iteration
    ]
    owners = [each.optimizer for each in turns if isinstance(each, OptimizerStep | ZeroGrad)]
    parameters = [value.parameter for value in sink.ancestors if value.parameter is not None]
    held = any(owner.holds(each) for owner in owners if owner is not None for each in parameters)
    return held and bool(sink.iteration)


def conditions(arrival: Arrival, rivals: Iterable[Arrival], near: Span) -> list[Decision]:
    """The decisions that it takes to come to `arrival` and not to one of its `rivals`.

    What can be left out is left out: first those that nothing of a loss hangs on, the farthest from
    `near` (and from the sink) first; of equally far ones what does not hold, and what was asked
    last, perhaps within a branch of the rest. Where the loss has no gradient, that stays of which
    the other side would bring it one by itself, even if no path has shown this.
    """
    mine, rivals = _decisions(arrival), list(rivals)
    others = [theirs for rival in rivals if not mine.keys() <= (theirs := _decisions(rival).keys())]
    kept, lines = set(mine), _lines([arrival, *rivals])
    needed = _bringing(mine, rivals) if arrival.is_starved else set()
    order = {key: number for number, key in enumerate(mine)}

    def weight(key: _Key) -> tuple[bool, int, bool, int]:
        return (
            not _is_around(mine[key], lines),
            _distance(key[0], near, arrival.sink.at),
            not key[1],
            order[key],
        )

    for key in sorted(mine.keys() - needed, key=weight, reverse=True):
        if not any(kept - {key} <= theirs for theirs in others):
            kept.remove(key)
    return [decision for key, decision in mine.items() if key in kept]


def telling_apart(
    tape: Tape, paths: Paths, has: Callable[[Tape], bool], near: Span
) -> list[Decision]:
    """The decisions that it takes for a path to have something as this one has, and not to be one
    of those that have a backward without it.
    """
    last = [(each, sink) for each in paths.some(_itself) for sink in list(each.backwards())[-1:]]
    mine = [Arrival(each, sink) for each, sink in last if each is tape]
    rivals = [Arrival(each, sink) for each, sink in last if not has(each)]
    return conditions(mine[0], rivals, near) if mine else []


def _itself(tape: Tape) -> Iterator[Tape]:
    yield tape


def _bringing(mine: Mapping[_Key, Decision], rivals: Iterable[Arrival]) -> set[_Key]:
    """The decisions whose other side brings a rival a gradient that hangs on no other of them."""
    found: set[_Key] = set()
    for rival in rivals:
        theirs = _decisions(rival)
        turned = {
            key: decision
            for key, decision in mine.items()
            if (key[0], not key[1], key[2]) in theirs
        }
        if not turned.keys() <= found:
            found |= _carrying(rival.loss, turned)
    return found


def _carrying(loss: Value, turned: Mapping[_Key, Decision]) -> set[_Key]:
    """The decisions that are the only ones between the loss and some leaf of its graph."""
    found: set[_Key] = set()
    pending: list[tuple[Value, _Key | None]] = [(loss, None)]
    seen: set[tuple[int, _Key | None]] = set()
    for value, crossed in pending:
        under = {key for key, decision in turned.items() if _is_under(value, decision)} | (
            {crossed} - {None}
        )
        if len(under) > 1 or not value.requires_grad:
            continue
        through = next(iter(under), None)
        if value.is_leaf and through is not None:
            found.add(through)
        for source in value.inputs:
            if (id(source), through) not in seen:
                seen.add((id(source), through))
                pending.append((source, through))
    return found


def _is_under(value: Value, decision: Decision) -> bool:
    """Whether a value was computed in one of the branches, or in what is called there."""
    whole = decision.whole or decision.at
    return any(
        at.path == whole.path and whole.line <= at.line <= whole.end_line
        for at in (value.at, *value.stack)
    )


def _lines(arrivals: Iterable[Arrival]) -> set[tuple[str, int]]:
    """Where the losses are computed: the lines of all that they are made of, and of the calls that
    led there.
    """
    values = (value for arrival in arrivals for value in arrival.sink.ancestors)
    return {(at.path, at.line) for value in values for at in (value.at, *value.stack)}


def _is_around(decision: Decision, lines: set[tuple[str, int]]) -> bool:
    """Whether something of a loss is computed in one of the branches."""
    whole = decision.whole or decision.at
    return any((whole.path, line) in lines for line in range(whole.line, whole.end_line + 1))


def _decisions(arrival: Arrival) -> dict[_Key, Decision]:
    """What was decided on the way to this arrival, but for other rounds of the loops around the
    sink.
    """
    around = dict(arrival.sink.iteration)
    found: dict[_Key, Decision] = {}
    for decision in arrival.tape.decisions:
        if decision.loop is None or around.get(decision.loop) == decision.round:
            found[decision.at, decision.holds, _NOW] = decision
        elif decision.loop not in around:
            found[decision.at, decision.holds, decision.round] = decision
    return found


def _distance(at: Span, *places: Span) -> int:
    """How many lines lie between `at` and the nearest of the places; another file is far."""
    return min(
        abs(at.line - place.line) if at.path == place.path else 1_000_000 for place in places
    )
