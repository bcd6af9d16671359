"""What writes in place, facts and what is kept become on the tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.library.effects import lookup
from gradlint.trace.events.modes import module_of
from gradlint.trace.places import NOWHERE, at, stack
from gradlint.trace.records import Cell, Note, Op

if TYPE_CHECKING:
    from gradlint.trace.assemble import Assembler


def written(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """A write in place."""
    written = note.facts["written"]
    after: Op = note.facts["after"]
    cell = after.cell or Cell()
    storage = assembler.values.storage(cell)
    storage.version += written.counted
    by = tuple(assembler.values.value(source) for source in note.facts["by"])
    effect = lookup(written.name)
    write = tape.Write(
        written.name, at(note.place), stack(note.place), storage.version, written.counted,
        len(assembler.tape.events), by, effect is not None and effect.maps_input,
    )  # fmt: skip
    storage.writes.append(write)
    yield tape.InPlace(
        at=NOWHERE,
        before=assembler.values.value(note.facts["before"]),
        after=assembler.values.value(after),
        write=write,
        raises=note.facts.get("raises", ""),
    )


def inference_used(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """A tensor of inference mode is used where autograd records."""
    after: Op = note.facts["after"]
    yield tape.Fact(
        at=NOWHERE,
        what="inference-tensor-used",
        value=assembler.values.value(note.facts["before"]),
        detail=after.name,
    )


def fact(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """What one rule asks for by name."""
    held = note.facts.get("held")
    op = note.facts.get("op")
    value = (
        assembler.values.held(held)
        if held is not None
        else assembler.values.value(op)
        if op is not None
        else None
    )
    source, beside = note.facts.get("source"), note.facts.get("beside")
    yield tape.Fact(
        at=note.facts.get("at", NOWHERE),
        what=note.facts["what"],
        value=value,
        source=assembler.values.value(source)
        if source is not None
        else assembler.values.held(beside)
        if beside is not None
        else None,
        module=module_of(assembler, note),
        detail=note.facts["detail"],
        related=((at(note.facts["related"]), "made"),) if "related" in note.facts else (),
    )


def flagged(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """Parameters are frozen or thawed."""
    for held in note.facts["held"]:
        yield tape.Fact(at=NOWHERE, what=note.kind, value=assembler.values.held(held))


def kept(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """A value is kept beyond its round."""
    now = assembler.turns.rounds.now()
    total, term = note.facts.get("total"), assembler.values.value(note.facts["op"])
    if total is not None and (
        assembler.values.value(total).iteration == now or total.serial > assembler.trained_at
    ):
        return  # a sum within one round, or within what one backward comes after
    grown: tuple[tuple[int, int], ...] = ()
    if total is not None and ("unseen" in term.flags or _is_older(term, now)):
        # nobody saw when the term was made, or it was there before the loop: in a round of another
        # loop around that
        grown = _grown(assembler.values.value(total), term, now)
        if "unseen" in term.flags or not grown:
            return
    event = tape.Kept(at=note.facts.get("at", NOWHERE), value=term, how=note.facts["how"])
    event.iteration = grown
    yield event


def _grown(
    total: tape.Value, term: tape.Value, now: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """The rounds up to that in which a total of earlier ones gets a term that was made in it; none
    where there is no such round.
    """
    made, before = dict(term.iteration), dict(total.iteration)
    return next(
        (
            now[: depth + 1]
            for depth, (loop, turn) in enumerate(now)
            if made.get(loop) == turn != before.get(loop)
        ),
        (),
    )


def _is_older(value: tape.Value, now: tuple[tuple[int, int], ...]) -> bool:
    """Whether a value was made before the innermost loop began that is run now."""
    return bool(now) and now[-1][0] not in dict(value.iteration)


MAKERS = {
    "inplace": written,
    "inference": inference_used,
    "fact": fact,
    "frozen": flagged,
    "thawed": flagged,
    "kept": kept,
}
