"""What something unknown was given and what comes of its result is written into: a state that a
model moves on, step by step, in one tensor.

    states[:, t + 1] = self.cell(states[:, t])

Whether the unknown thing saves what it is given is not in view; most layers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Related
from gradlint.tape import OF_A_FUNCTION, Backward, InPlace, Kind, Tape, Value, ancestors
from gradlint_rules.cached import of_tape
from gradlint_rules.words import calls, maker, places, to_sink

_CALL = "call"


@dataclass(frozen=True, slots=True)
class FedBack:
    """A call of something unknown, one of its arguments, and the write into the memory of that."""

    sink: Backward
    call: Value
    given: Value
    event: InPlace

    @property
    def related(self) -> tuple[Related, ...]:
        caller = Related(self.call.at, f"{maker(self.call)} is given it here")
        stack = calls(self.event.write.stack, self.sink.stack)
        return places(self.event.write.at, caller, *stack, to_sink(self.sink))


@of_tape
def fed_back(tape: Tape) -> list[FedBack]:
    """Each write of what an unknown callable gave into what it was given, before the backward."""
    writes = tape.of(InPlace)
    return [found for sink in tape.backwards() for found in _of(sink, writes)] if writes else []


def _of(sink: Backward, writes: Sequence[InPlace]) -> Iterator[FedBack]:
    called = [value for value in sink.graph if _is_of_something_unknown(value)]
    for event in writes if called else ():
        storage = event.before.storage
        if storage is None or not event.write.counted or event.order > sink.order:
            continue
        behind = {id(value) for value in ancestors(*event.write.by)} if event.write.by else ()
        for call in called:
            given = next((each for each in call.inputs if each.storage is storage), None)
            if given is not None and id(call) in behind:
                yield FedBack(sink, call, given, event)


def _is_of_something_unknown(value: Value) -> bool:
    """Whether it is what a callable out of view gave that has parameters, and is no function of a
    library.
    """
    own = value.inputs[-1] if value.op == _CALL and value.inputs else None
    return own is not None and own.kind is Kind.PARAMETER and OF_A_FUNCTION not in own.flags
