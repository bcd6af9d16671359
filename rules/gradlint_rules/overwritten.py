"""Tensors that were saved for a backward and overwritten before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Related, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.tape import (
    UNSEEN,
    Backward,
    DType,
    Fact,
    InPlace,
    Kind,
    Parameter,
    Saved,
    Storage,
    Tape,
    Value,
    Write,
    ancestors,
    are_apart,
    extent,
    graph,
)
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.cached import of_tape
from gradlint_rules.visited import backwards, surely_visited, visited
from gradlint_rules.words import calls, is_of_arguments, maker, places, quoted, to_sink, when

_ROLES = {
    "input": "its input",
    "self": "its input",
    "other": "its other input",
    "result": "its result",
}


_Stale = tuple[Value, Saved, Write]


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A tensor that `user` saved, that `write` changed, and that the backward of `arrival` needs as
    it was.
    """

    arrival: Arrival
    user: Value
    saved: Saved
    write: Write
    is_parameter: bool
    condition: str

    @property
    def at(self) -> Span:
        return self.write.at

    @property
    def sink(self) -> Backward:
        return self.arrival.sink

    @property
    def is_switched_on(self) -> bool:
        """Whether it happens where an argument of a part has another value than its default:
        `inplace=True`.

        Such a switch can be there for inference alone.
        """
        spots = (self.write.at, *self.write.stack)
        switched = self.arrival.tape.facts("switched-on") if self.sink.assumed else ()
        return any(fact.at.encloses(spot) for fact in switched for spot in spots)

    @property
    def saving(self) -> str:
        """What was saved, in words: `F.softmax()` saved its result."""
        is_unseen = UNSEEN in self.user.flags
        saver = f"an operation behind {quoted(self.user)}" if is_unseen else maker(self.user)
        return f"{saver} saved {_ROLES.get(self.saved.role, self.saved.role)} for the backward"

    @property
    def related(self) -> tuple[Related, ...]:
        saver = Related(self.user.at, self.saving)
        return places(self.at, saver, *calls(self.write.stack, self.sink.stack), to_sink(self.sink))


def is_step(op: str) -> bool:
    """Whether a write is an optimizer's."""
    return op.rpartition(".")[2] == "step"


def set_after(order: int, tape: Tape) -> set[int]:
    """The ids of the parameters that get other values by way of `.data`: `p.data = new`,
    `p.data -= rate * p.grad`.
    """
    owners = [
        fact.value
        for fact in tape.facts("data-set")
        if fact.order >= order and fact.value is not None
    ]
    for event in tape.of(InPlace):
        if event.order >= order and event.before.op == "torch.Tensor.data":
            owners += event.before.inputs[:1]
    return {id(owner.parameter) for owner in owners if owner.parameter is not None}


def is_projection(write: Write, own: Parameter) -> bool:
    """Whether a write gives a parameter what comes of its own numbers: unit length, a place in a
    box.
    """
    return (write.maps or bool(write.by)) and not _brings(write.by, own)


def taught_after(order: int, tape: Tape) -> set[int]:
    """The ids of the parameters that get by way of `.data` what comes from elsewhere: another
    network, a batch.
    """
    found: set[int] = set()
    for event in tape.among(InPlace, "data-set"):
        if event.order < order:
            continue
        if isinstance(event, InPlace):
            owners = event.before.inputs[:1] if event.before.op == "torch.Tensor.data" else ()
            taught = [
                one
                for one in map(_parameter, owners)
                if one and not is_projection(event.write, one)
            ]
        else:
            assert isinstance(event, Fact)
            own = _parameter(event.value)
            taught = (
                [own]
                if own is not None and (event.source is None or _brings([event.source], own))
                else []
            )
        found |= set(map(id, taught))
    return found


def _parameter(value: Value | None) -> Parameter | None:
    return None if value is None else value.parameter


def _brings(sources: Sequence[Value], own: Parameter) -> bool:
    """Whether something other than a parameter's own numbers and constants is among what values
    come from.
    """
    ends = (
        value for value in ancestors(*sources) if not value.inputs and value.parameter is not own
    )
    return any(value.kind is not Kind.CONSTANT for value in ends)


def overwritten(paths: Paths, *, counted: bool) -> Iterator[Overwritten]:
    """What was saved and then written, each write once: by writes that autograd sees, or by those
    that it does not.
    """
    reported: set[Span] = set()
    yield from _overwritten(paths, _stale, reported, counted=counted)
    if counted:
        yield from _overwritten(paths, _stale_beside, reported, counted=True)


def _overwritten(
    paths: Paths,
    stale_on: Callable[[Tape], list[tuple[Backward, dict[bool, list[_Stale]]]]],
    reported: set[Span],
    *,
    counted: bool,
) -> Iterator[Overwritten]:
    stale = {id(sink): found[counted] for sink, found in paths.some(stale_on)}
    for sink in arrivals(paths):
        found = [(arrival, *entry) for arrival in sink for entry in stale.get(id(arrival.sink), [])]
        for arrival, user, saved, write in sorted(found, key=_hangs_on_arguments):
            if write.at in reported:
                continue
            reported.add(write.at)
            guilty = {id(other.sink) for other, _, _, again in found if again.at == write.at}
            rivals = [rival for rival in sink if id(rival.sink) not in guilty]
            condition = when(conditions(arrival, rivals, write.at))
            yield Overwritten(
                arrival, user, saved, write, _is_parameter(saved.storage, arrival.loss), condition
            )


def _hangs_on_arguments(found: tuple[Arrival, Value, Saved, Write]) -> bool:
    """Whether what was saved is of use where arguments of a part alone need a gradient: what saves
    the same memory for more than that comes before it.
    """
    needed_by = found[2].needed_by
    return bool(needed_by) and all(map(is_of_arguments, needed_by))


def spoilt(tape: Tape) -> Iterator[Write]:
    """Every write after a saving and before the backward that needs what was saved: not only the
    first of them.
    """
    for sink, values, freed_by in backwards(tape):
        for saved in (saved for user in values if id(user) not in freed_by for saved in user.saves):
            yield from (
                write for write in saved.storage.writes[saved.order :] if write.order <= sink.order
            )


@of_tape
def _stale(tape: Tape) -> list[tuple[Backward, dict[bool, list[_Stale]]]]:
    """For each backward what it finds overwritten, by writes that count and by others.

    What it finds freed raises (GL507), whatever was written.
    """
    found: list[tuple[Backward, dict[bool, list[_Stale]]]] = []
    for sink, values, freed_by in backwards(tape):
        stale: dict[bool, list[_Stale]] = {True: [], False: []}
        for user in values:
            for saved in user.saves if id(user) not in freed_by else ():
                for counted, reported in (
                    stale.items() if len(saved.storage.writes) > saved.order else ()
                ):
                    write = _first_write(saved, sink, counted)
                    if write is not None:
                        reported.append((user, saved, write))
        found.append((sink, stale))
    return found


@of_tape
def _stale_beside(tape: Tape) -> list[tuple[Backward, dict[bool, list[_Stale]]]]:
    """What the backward of a part that trains layers of its own finds overwritten where an argument
    needs a gradient, too: what these layers gave was written over what had been saved for it alone.
    """
    found: list[tuple[Backward, dict[bool, list[_Stale]]]] = []
    for sink in tape.backwards():
        if not sink.assumed or sink.caught:
            continue
        trained = {id(value) for value in surely_visited(sink, tape)}
        beside = [value for value in visited(sink) if id(value) not in trained and value.saves]
        stale: list[_Stale] = []
        for user in beside if trained else ():
            for saved in user.saves if is_of_arguments(user) else ():
                write = _first_write(saved, sink, counted=True)
                if write is not None and any(id(by) in trained for by in write.by):
                    stale.append((user, saved, write))
        found.append((sink, {True: stale, False: []}))
    return found


def _first_write(saved: Saved, sink: Backward, counted: bool) -> Write | None:
    """The first write after the saving and before the backward; none of the unseen where a seen one
    makes it raise.
    """
    writes = saved.storage.writes
    since = [
        write
        for position, write in enumerate(writes[saved.order :], saved.order)
        if write.order <= sink.order
        and (counted or not (position and _is_the_same(write, writes[position - 1])))
    ]
    if not counted:  # what autograd counts raises, whatever of the memory it is that was written
        own = extent(saved.value)
        since = [write for write in since if write.counted or not are_apart(own, write.extent)]
    if not since:
        return None
    if _counts_alone(saved.value):
        return None if counted else next((write for write in since if write.counted), None)
    if not counted and any(write.counted for write in since):
        return None
    return next((write for write in since if write.counted is counted), None)


def _is_the_same(write: Write, before: Write) -> bool:
    """Whether it masks what was masked in the same way: `weight.data *= mask`, in every forward."""
    if (
        canonical(write.op) != "mul"
        or write.at != before.at
        or len(write.by) != 1
        or len(before.by) != 1
    ):
        return False
    return write.by[0].storage is before.by[0].storage and _is_of_zeros_and_ones(write.by[0])


def _is_of_zeros_and_ones(value: Value) -> bool:
    """Whether a tensor has no other numbers: a comparison, or ones into which zeros were
    written.
    """
    if value.dtype is DType.BOOL or (
        value.kind is Kind.CONSTANT
        and (canonical(value.op) == "eye" or has(value.op, Trait.ZEROS, Trait.ONES))
    ):
        return True
    if canonical(value.op) == "setitem":
        put_in = value.argument(2)
        return (
            isinstance(put_in, int | float)
            and put_in in (0, 1)
            and _is_of_zeros_and_ones(value.inputs[0])
        )
    is_copy = _copies(value) or (value.inputs and value.inputs[0].storage is value.storage)
    return bool(is_copy and value.inputs) and _is_of_zeros_and_ones(value.inputs[0])


def _copies(value: Value) -> bool:
    """Whether its numbers are those of another tensor, or zero."""
    return canonical(value.op) in ("tril", "triu", "getitem") or has(
        value.op, Trait.COPIES, Trait.CASTS, Trait.REARRANGES
    )


def _counts_alone(value: Value) -> bool:
    """Whether a tensor came out of `.data`: it counts its own writes, and sees none of those
    through the other.
    """
    while canonical(value.op) != "data":
        if not value.inputs or value.inputs[0].storage is not value.storage:
            return False
        value = value.inputs[0]
    return True


def _is_parameter(storage: Storage, loss: Value) -> bool:
    return any(value.parameter is not None and value.storage is storage for value in graph(loss))
