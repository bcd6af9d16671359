"""The rounds of loops on a tape: where each begins and ends, and the conditions that kept a step
from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint import tape
from gradlint.finding import Span
from gradlint.trace import branches, loops, source
from gradlint.trace.frames import Place
from gradlint.trace.gates import Condition, Way, asked
from gradlint.trace.places import stack
from gradlint.trace.records import Note
from gradlint.trace.rounds import Rounds, Turn
from gradlint.trace.session import Session

BUSY = frozenset({"backward", "step"})


class Turns:
    """Follows a run through its loops, and writes events onto the tape in their rounds."""

    def __init__(self, session: Session, written: tape.Tape) -> None:
        self.session, self.tape = session, written
        self.rounds = Rounds()
        self.steps: dict[int, int] = {}  # the optimizer steps before each event
        self._gates: dict[source.Loop, dict[Way, None]] = {}
        self._taken: dict[source.Loop, set[branches.Branch]] = {}
        # by the user's call below which the loop stands
        self._batched: dict[tuple[int, int], source.Loop] = {}
        self._trained: set[tuple[int, int]] = set()  # the rounds in which a backward ran

    def close(self) -> None:
        """The run is over, and all loops with it."""
        self._turns(self.rounds.close(), self.session.step)

    def fetched(self, note: Note) -> None:
        """A round of a loop in a library's file begins, if it is one of several."""
        seen = self.session.batched
        if note.facts["loops"][-1] in seen:
            batches = tuple(each for each in note.facts["loops"] if each in seen)
            self._turns(self.rounds.fetched(note.place, batches), note.step)

    def trained(self) -> None:
        """A backward runs in these rounds."""
        self._trained.update(self.rounds.now())

    def stepped(self, place: Place) -> None:
        """An optimizer steps there: the conditions on the way held."""
        for loop, branch, _ in self._deciding(place):
            self._taken.setdefault(loop, set()).add(branch)

    def visit(self, place: Place, step: int = 0, busy: bool = False, once: bool = False) -> None:
        self._turns(self.rounds.visit(place, busy, once), step)

    def _deciding(
        self, place: Place
    ) -> Iterator[tuple[source.Loop, branches.Branch, tuple[Span, ...]]]:
        """The conditions between a place and the loop around it, through the calls in between,
        outermost first.

        Of every function that is running: a loop over callbacks stands between the step and the
        loop over batches.
        """
        for depth, frame in enumerate(place):
            below = self._batched.get((frame.activation, frame.instruction))
            around = self.rounds.around(frame) if below is None else (below,)
            # the loop below a call is inside all of it
            inside = depth + (below is None) if around else 0
            for inner in reversed(range(inside)):
                code, instruction = place[inner].code, place[inner].instruction
                for branch in branches.branches(code, instruction):
                    yield around[-1], branch, stack(place[inner:])

    def find_gates(self) -> None:
        """The ways through conditions that lead, in a round of a loop, to the step of an
        optimizer.
        """
        for note in self.session.notes:
            if note.kind == "batch" and note.facts["loops"][-1] in self.session.batched:
                call = note.place[0]
                self._batched[call.activation, call.instruction] = loops.called(
                    call.code, call.instruction
                )
            for frame in note.place if note.kind in BUSY else ():
                self.rounds.learning.update(loops.comprehensions(frame.code, frame.instruction))
        for note in self.session.notes:
            if note.kind == "step":
                ways = dict[source.Loop, list[Condition]]()
                for loop, branch, calls in self._deciding(note.place):
                    ways.setdefault(loop, []).append((branch, calls))
                for loop, way in ways.items():
                    self._gates.setdefault(loop, {})[tuple(way)] = None

    def _decide(self, turn: Turn, step: int) -> None:
        """At the end of a round with a backward, write down which way its conditions went: no step
        says so, too.
        """
        taken = self._taken.pop(turn.loop, set())
        if (turn.number, turn.round) not in self._trained:
            return
        answers: dict[branches.Branch, tuple[bool, tuple[Span, ...]]] = {}
        for way in self._gates.get(turn.loop, {}):
            for (branch, calls), goes_on in asked(way, taken):
                if not goes_on or branch not in answers:
                    answers[branch] = goes_on, calls
        for branch, (goes_on, calls) in answers.items():
            holds = branch.side if goes_on else not branch.side
            fact = tape.Fact(
                at=branch.at, what="branch", detail=str(holds).lower(), text=branch.text
            )
            around = self.rounds.now()
            own = (turn.number, turn.round)
            fact.stack, fact.iteration = calls, around if own in around else (*around, own)
            self.write(fact, step)

    def _turns(self, turns: Iterator[Turn], step: int) -> None:
        for turn in turns:
            if not turn.begins:
                self._decide(turn, step)
            loop = turn.loop
            where = source.span_of(loop.path, (loop.line, loop.column, loop.line, loop.column))
            event = tape.Iteration(
                at=where,
                loop=turn.number,
                round=turn.round,
                begins=turn.begins,
                over=loop.over,
                last=turn.last,
                text=loop.text,
                ends_early=loop.ends_early,
            )
            event.iteration = self.rounds.now()
            self.write(event, step)

    def write(self, event: tape.Event, step: int) -> None:
        self.tape.write(event)
        self.steps[event.order] = step
