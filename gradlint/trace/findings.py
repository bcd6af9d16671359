"""What the rules say of a traced run, with what only a run can add: the step, the route, the
parameters not reached.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gradlint import suppress
from gradlint.contracts import Contract
from gradlint.finding import Finding, Span
from gradlint.rule import at_run_time, judge, rules
from gradlint.settings import Settings
from gradlint.source import document
from gradlint.tape import Backward, Cut, Tape, Value, graph
from gradlint.trace import source
from gradlint.trace.places import NOWHERE


@dataclass(frozen=True, slots=True)
class Place:
    """One value on a route."""

    at: Span
    op: str
    text: str
    carries: bool  # gradient


def located(told: Told) -> Told:
    """A finding and its route as those who read see them: in a notebook, in which cell."""
    route = tuple(replace(each, at=source.located(each.at)) for each in told.route)
    return replace(told, finding=located_finding(told.finding), route=route)


def located_finding(finding: Finding) -> Finding:
    """A finding as those who read see it."""
    related = tuple(replace(each, at=source.located(each.at)) for each in finding.related)
    return replace(finding, at=source.located(finding.at), related=related)


@dataclass(frozen=True, slots=True)
class Told:
    """A finding and what the run adds to it."""

    finding: Finding
    route: tuple[Place, ...]
    unreached: tuple[str, ...]
    held: tuple[str, ...] = ()  # by the optimizers, of which some are not reached

    @property
    def cuts(self) -> bool:
        """Whether the route ends in what carries no gradient: then that is why parameters are not
        reached.
        """
        return bool(self.route) and not self.route[-1].carries

    @property
    def stops(self) -> tuple[Place, ...]:
        """The route as people read it: several operations of one expression, inside of a library's
        call, are one.
        """
        return tuple(
            next(places)
            for _, places in itertools.groupby(self.route, lambda place: (place.at, place.text))
        )


def findings(
    tape: Tape, steps: dict[int, int], settings: Settings, contract: Contract | None = None
) -> list[Told]:
    """What the rules find on the tape of a run, but for what settings and comments leave out, the
    worst first.

    Of a part, it is what its contract lets them say.
    """
    speaking = (
        rule for rule in rules().values() if contract is None or contract.may_speak(rule.code)
    )
    found = [
        finding
        if contract is None
        else replace(finding, severity=min(finding.severity, contract.most))
        for finding in judge((rule for rule in speaking if rule.at_run_time), (tape,))
        if (contract is None or contract.lets(finding))
        and finding.at != NOWHERE
        and settings.reports(finding.code, pathlib.Path(finding.at.path).absolute())
    ]
    return [
        _told(finding, tape, steps) for finding in sorted(_unsuppressed(found), key=_worst_first)
    ]


def _worst_first(finding: Finding) -> tuple[object, ...]:
    return (-finding.severity, *finding.sort_key)


def _unsuppressed(found: Iterable[Finding]) -> Iterator[Finding]:
    by_file: dict[str, list[Finding]] = {}
    for finding in found:
        by_file.setdefault(finding.at.path, []).append(finding)
    for path, group in by_file.items():
        text = _text(path)
        yield from (
            group if text is None else suppress.apply(path, text, group, at_run_time().__contains__)
        )


def _text(path: str) -> str | None:
    try:
        text = document.decode(path, pathlib.Path(path).read_bytes())
    except OSError:
        return None
    return text if isinstance(text, str) else None


def _told(finding: Finding, tape: Tape, steps: dict[int, int]) -> Told:
    sink = _sink(finding, tape)
    route = route_to(sink.value, finding.at) if sink is not None else ()
    own = None if route else next((each for each in tape.events if each.at == finding.at), None)
    event = own or sink
    step = (
        finding.step
        if finding.step is not None
        else steps.get(event.order)
        if event is not None
        else None
    )
    found = replace(finding, step=step)
    return (
        Told(found, route, *missed(sink, tape))
        if sink is not None and route
        else Told(found, route, ())
    )


def _sink(finding: Finding, tape: Tape) -> Backward | None:
    """The first backward that the finding speaks of, one that found no route before others."""
    places = {finding.at, *(related.at for related in finding.related)}
    fitting = [sink for sink in tape.backwards() if sink.at in places]
    through = [sink for sink in fitting if route_to(sink.value, finding.at)]
    return next(
        (sink for sink in through if not sink.value.requires_grad),
        next(iter(through or fitting), None),
    )


def place(value: Value) -> Span:
    """Where a rule reports a value: at what took its gradient away, or at the operation."""
    if value.cut in (Cut.GRAD_MODE, Cut.FROZEN) and value.cut_at is not None:
        return value.cut_at
    return value.at


def route_to(loss: Value, at: Span) -> tuple[Place, ...]:
    """The values from a loss back to what stands at `at`, the shortest way; () where none does."""
    came: dict[int, Value | None] = {id(loss): None}
    pending = [loss]
    for value in pending:
        if at in (place(value), value.at):
            return tuple(_path(value, came))[::-1]
        for each in value.inputs:
            if id(each) not in came:
                came[id(each)] = value
                pending.append(each)
    return ()


def _path(value: Value | None, came: dict[int, Value | None]) -> Iterator[Place]:
    while value is not None:
        yield Place(value.at, value.op, value.text or value.title, value.requires_grad)
        value = came[id(value)]


def missed(sink: Backward, tape: Tape) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters of the optimizers that a backward does not reach, and all that they hold to
    train, by name.
    """
    reached = {id(value.parameter) for value in graph(sink.value) if value.parameter is not None}
    held = {
        value.parameter.path: id(value.parameter) in reached
        for optimizer in tape.optimizers()
        for value in optimizer.parameters
        if value.parameter and value.requires_grad
    }
    return tuple(name for name, is_reached in held.items() if not is_reached), tuple(held)
