"""From the light records of a run to the tape that the rules read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gradlint import tape
from gradlint.trace import source
from gradlint.trace.events import modes, passes, updates, writes
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place
from gradlint.trace.holders import Holders
from gradlint.trace.places import NOWHERE, at, stack
from gradlint.trace.records import Driven, Note, Op
from gradlint.trace.selections import FILLED, never_empty
from gradlint.trace.session import Session
from gradlint.trace.turns import BUSY, Turns
from gradlint.trace.unseen import fill_unseen
from gradlint.trace.values import Values

_MAKERS: dict[str, Callable[[Assembler, Note], Iterable[tape.Event]]] = {
    **passes.MAKERS,
    **updates.MAKERS,
    **modes.MAKERS,
    **writes.MAKERS,
}


class Assembler:
    """Turns one session's records into a tape, in the order in which they were made."""

    def __init__(self, session: Session, entry: str, driven: Driven | None = None) -> None:
        self.session = session
        self.driven = driven
        self.tape = tape.Tape(entry, traced=True)
        self.turns = Turns(session, self.tape)
        self.values = Values(session, self.tape, self.turns.rounds.now)
        self.holders = Holders(self.values)
        self.entered: list[tape.GradMode] = []
        # the optimizers that were cleared, and no backward came since
        self.emptied: set[int] = set()
        self.carries = False  # whether a round was seen to hand its graph to the next
        self.trained_at = 0  # the number of the last backward

    @property
    def steps(self) -> dict[int, int]:
        """The optimizer steps before each event, by its order."""
        return self.turns.steps

    def run(self, raised: str = "") -> tape.Tape:
        """The whole tape."""
        session = self.session
        fill_unseen(session)
        self.turns.find_gates()
        things: list[Note | Op] = [*session.notes, *self._ops()]
        for thing in sorted(things, key=lambda thing: thing.serial):
            self.values.orders.append((thing.serial, len(self.tape.events)))
            if isinstance(thing, Note):
                self._note(thing)
            else:
                self.turns.visit(thing.place)
                value = self.values.value(thing)
                for fact in never_empty(value) if FILLED in thing.flags else ():
                    self._write(fact, thing.place, thing.step)
        self.turns.close()
        last = session.notes[-1].place if session.notes else ()
        self.turns.write(tape.End(at=at(last), raised=raised), session.step)
        return self.tape

    def _ops(self) -> list[Op]:
        roots = [op for note in self.session.notes for op in _mentioned(note)]
        found = list(lineage(roots))
        extra = [source for op in found for _, _, source, _ in op.saves]
        return list({id(op): op for op in lineage([*found, *extra])}.values())

    def _note(self, note: Note) -> None:
        self.turns.visit(note.place, note.step, note.kind in BUSY, note.facts.get("direct", False))
        if note.facts.get("running"):
            self.turns.rounds.remain(note.place)
        if note.kind == "batch":
            self.turns.fetched(note)
        maker = _MAKERS.get(note.kind)
        for event in maker(self, note) if maker else ():
            self._write(event, note.place, note.step)

    def _write(self, event: tape.Event, place: Place, step: int) -> None:
        event.at = at(place) if event.at is NOWHERE else event.at
        event.stack = stack(place)
        event.iteration = event.iteration or self.turns.rounds.now()
        if self.driven is not None and self.driven.does(place):
            event.assumed, event.text = True, self.driven.name
        event.text = event.text or (
            source.text(place[0].code, place[0].instruction) if place else ""
        )
        self.turns.write(event, step)


def _mentioned(note: Note) -> Iterator[Op]:
    for fact in note.facts.values():
        for thing in fact if isinstance(fact, (list, tuple)) else (fact,):
            if isinstance(thing, Op):
                yield thing
