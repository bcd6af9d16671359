"""What the rules say of a traced run, with what only a run can add: the step, the route, the parameters not reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gradlint import suppress
from gradlint.finding import Finding, Span
from gradlint.rule import rules
from gradlint.tape import Backward, Cut, End, Tape, Value, graph
from gradlint.trace.assemble import NOWHERE

# Codes that a run can show; the rest of the catalogue is about the source.
AT_RUN_TIME = frozenset(
    [
        "GL101",
        "GL102",
        "GL103",
        "GL104",
        "GL105",
        "GL106",
        "GL107",
        "GL108",
        "GL109",
        "GL110",
        "GL111",
        "GL201",
        "GL202",
        "GL203",
        "GL204",
        "GL301",
        "GL302",
        "GL304",
        "GL401",
        "GL403",
        "GL404",
        "GL405",
        "GL406",
        "GL407",
        "GL408",
        "GL501",
        "GL502",
        "GL503",
        "GL504",
        "GL505",
        "GL506",
        "GL507",
        "GL508",
        "GL509",
        "GL510",
        "GL511",
        "GL512",
        "GL513",
        "GL514",
        "GL515",
        "GL602",
        "GL701",
        "GL803",
        "GL901",
        "GL903",
    ]
)


@dataclass(frozen=True, slots=True)
class Place:
    """One value on a route."""

    at: Span
    op: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A finding and what the run adds to it."""

    finding: Finding
    route: tuple[Place, ...]
    unreached: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selected:
    """Which codes are wanted, and the text of a file, for the comments that suppress."""

    reports: Callable[[str, str], bool]
    text: Callable[[str], str | None]


def findings(tape: Tape, steps: dict[int, int], selected: Selected) -> list[Told]:
    """Everything that the rules find on the tape of a run, in the order of the source."""
    found = [
        finding
        for rule in rules().values()
        if rule.code in AT_RUN_TIME
        for finding in rule.findings([tape])
        if finding.at != NOWHERE and selected.reports(finding.code, finding.at.path)
    ]
    return [
        _told(finding, tape, steps)
        for finding in sorted(_unsuppressed(found, selected), key=lambda each: each.sort_key)
    ]


def _unsuppressed(found: Iterable[Finding], selected: Selected) -> Iterator[Finding]:
    by_file: dict[str, list[Finding]] = {}
    for finding in found:
        by_file.setdefault(finding.at.path, []).append(finding)
    for path, group in by_file.items():
        text = selected.text(path)
        yield from group if text is None else suppress.apply(path, text, group, lambda code: code in AT_RUN_TIME)


def _told(finding: Finding, tape: Tape, steps: dict[int, int]) -> Told:
    sink = _sink(finding, tape)
    event = sink or next((each for each in tape.events if each.at == finding.at), None)
    step = finding.step if finding.step is not None else steps.get(event.order) if event is not None else None
    route = route_to(sink.value, finding.at) if sink is not None else ()
    return Told(replace(finding, step=step), route, unreached(sink, tape) if sink is not None and route else ())


def _sink(finding: Finding, tape: Tape) -> Backward | None:
    """The first backward that the finding speaks of, one that found no route before others."""
    places = {finding.at, *(related.at for related in finding.related)}
    fitting = [sink for sink in tape.backwards() if sink.at in places]
    through = [sink for sink in fitting if route_to(sink.value, finding.at)]
    return next((sink for sink in through if not sink.value.requires_grad), next(iter(through or fitting), None))


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
        for source in value.inputs:
            if id(source) not in came:
                came[id(source)] = value
                pending.append(source)
    return ()


def _path(value: Value | None, came: dict[int, Value | None]) -> Iterator[Place]:
    while value is not None:
        yield Place(value.at, value.op, value.text or value.title)
        value = came[id(value)]


def unreached(sink: Backward, tape: Tape) -> tuple[str, ...]:
    """The parameters of the optimizers that a backward does not reach, by name."""
    reached = {id(value.parameter) for value in graph(sink.value) if value.parameter is not None}
    held = (
        value.parameter
        for optimizer in tape.optimizers()
        for value in optimizer.parameters
        if value.parameter and value.requires_grad
    )
    return tuple(dict.fromkeys(parameter.path for parameter in held if id(parameter) not in reached))


def ending(tape: Tape) -> str:
    """The exception that ended the run, or ''."""
    last = tape.events[-1] if tape.events else None
    return last.raised if isinstance(last, End) else ""
