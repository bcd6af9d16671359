"""What is found on the way to a loss, each place once, with the decisions that lead there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Related, Span
from gradlint.paths import Paths
from gradlint.tape import Backward, Value
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.words import calls, places, to_sink, when

Find = Callable[[Arrival], Iterable[tuple[Span, Value]]]


@dataclass(frozen=True, slots=True)
class Encounter:
    """A value that a rule reports at a place, on its way to the loss of an arrival."""

    at: Span
    value: Value
    arrival: Arrival
    condition: str

    @property
    def sink(self) -> Backward:
        return self.arrival.sink

    def related(self, *first: Related) -> tuple[Related, ...]:
        """Where else to look: the places given, the calls that led here, and the sink."""
        return places(
            self.at, *first, *calls(self.value.stack, self.sink.stack), to_sink(self.sink)
        )


def encountered(paths: Paths, find: Find) -> Iterator[Encounter]:
    """What `find` finds at the losses of an entry, each place once."""
    reported: set[Span] = set()
    for sink in arrivals(paths):
        found = [(arrival, at, value) for arrival in sink for at, value in find(arrival)]
        for arrival, at, value in found:
            if at in reported:
                continue
            reported.add(at)
            guilty = {id(other.sink) for other, again, _ in found if again == at}
            rivals = [rival for rival in sink if id(rival.sink) not in guilty]
            yield Encounter(at, value, arrival, when(conditions(arrival, rivals, at)))
