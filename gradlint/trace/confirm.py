"""Static findings of the files that a run went through: confirmed by it, refuted by it, or not
shown.

Only what happened counts. That a run reported nothing at a line says nothing against a finding
there: its condition may not have come about, and a run does not see all. What a run can refute is
that something never happens, by its happening.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gradlint.finding import DENIES, NOT_SHOWN, Denied, Finding, Span
from gradlint.rule import at_run_time, rules
from gradlint.tape import End, Optimizer, OptimizerStep, Tape, Value, ZeroGrad, ancestors

Verdict = Literal["confirmed", "refuted", "not shown"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A static finding and what the run says of it."""

    finding: Finding
    verdict: Verdict
    reason: str


def confirm(static: Iterable[Finding], traced: Sequence[Finding], tape: Tape) -> list[Confirmation]:
    """The verdict of a run on each static finding."""
    ran = set(_lines(tape))
    return [Confirmation(finding, *_verdict(finding, traced, tape, ran)) for finding in static]


def _verdict(
    finding: Finding, traced: Sequence[Finding], tape: Tape, ran: Collection[tuple[str, int]]
) -> tuple[Verdict, str]:
    shown = _shown(finding, traced) or _raised(finding, traced, tape)
    if shown:
        return "confirmed", shown
    denied = finding.hints.get(DENIES)
    happened = _HAPPENED[Denied(denied)](finding, tape) if denied is not None else ""
    if happened:
        return "refuted", happened
    return "not shown", _unshown(finding, ran)


def _shown(finding: Finding, traced: Sequence[Finding]) -> str:
    """How the run shows a finding, or ''."""
    same = next(
        (other for other in traced if other.code == finding.code and _meet(finding, other.at)), None
    )
    if same is None:
        return ""
    return f"the run shows it{f' at step {same.step}' if same.step is not None else ''}"


def _raised(finding: Finding, traced: Sequence[Finding], tape: Tape) -> str:
    """How the run ended by the error that a finding speaks of, if not by one that is explained."""
    rule, end = rules().get(finding.code), tape.events[-1] if tape.events else None
    if rule is None or not rule.raises or not isinstance(end, End):
        return ""
    explained = any(other.code == finding.code for other in traced)
    if explained or rule.raises not in end.raised or not _meet(finding, end.at):
        return ""
    return f"the run ended in this error at {end.at.path}:{end.at.line}"


def _unshown(finding: Finding, ran: Collection[tuple[str, int]]) -> str:
    """Why a run that did not show a finding says nothing against it."""
    if finding.code not in at_run_time() or NOT_SHOWN in finding.hints:
        return "a run does not show this"
    if not _has_run(finding.at, ran):
        return "this line did not run, as far as the run was recorded"
    missing = next(
        (related.at for related in finding.related if not _has_run(related.at, ran)), None
    )
    if missing is not None:
        return (
            f"this line ran, but {missing.path}:{missing.line} did not, as far as the run was "
            "recorded"
        )
    return "this line ran, and whether what it takes came about was not seen"


def _has_run(at: Span, ran: Collection[tuple[str, int]]) -> bool:
    return any((at.path, line) in ran for line in range(at.line, at.end_line + 1))


def _meet(finding: Finding, at: Span) -> bool:
    """Whether a finding speaks of lines that `at` has."""
    return any(_overlap(place, at) for place in (finding.at, *_related(finding)))


def _related(finding: Finding) -> list[Span]:
    return [related.at for related in finding.related]


def _overlap(one: Span, other: Span) -> bool:
    return one.path == other.path and one.line <= other.end_line and other.line <= one.end_line


# What refutes a finding: each gives how what it denies has happened, or ''.


def _carried(finding: Finding, tape: Tape) -> str:
    """A loss that was computed from what stands at the finding carried a gradient, in each backward
    there was.
    """
    sinks = [sink for sink in tape.backwards() if sink.at in _related(finding)]
    through = [
        sink
        for sink in sinks
        if any(finding.at in (value.at, value.cut_at) for value in sink.ancestors)
    ]
    if not through or not all(sink.value.requires_grad for sink in sinks):
        return ""
    return (
        f"the loss carried a gradient at {_named(through[0].at)} in all of {len(sinks)} backward "
        "passes there"
    )


def _trained(finding: Finding, tape: Tape) -> str:
    """All that an optimizer holds was reached by the gradient of some loss."""
    held = [value for optimizer in _optimizers(finding, tape) for value in optimizer.parameters]
    reached = {id(leaf.parameter) for sink in tape.backwards() for leaf in sink.leaves}
    if not held or not all(id(value.parameter) in reached for value in held):
        return ""
    return f"a gradient came back to each of the {len(held)} parameters that the optimizer holds"


def _optimizers(finding: Finding, tape: Tape) -> Iterator[Optimizer]:
    """The optimizers that are made where a finding says."""
    return (optimizer for optimizer in tape.optimizers() if optimizer.at in _related(finding))


def _used(finding: Finding, tape: Tape) -> str:
    """What is computed at the finding was part of what was back-propagated."""
    sink = next(
        (sink for sink in tape.backwards() if any(value.at == finding.at for value in sink.graph)),
        None,
    )
    return (
        f"it is part of what was back-propagated at {_named(sink.at)}" if sink is not None else ""
    )


def _stepped(finding: Finding, tape: Tape) -> str:
    """Each optimizer that is cleared where the finding says has stepped."""
    cleared = [event.optimizer for event in tape.of(ZeroGrad) if event.at in _related(finding)]
    steps = {id(step.optimizer): step for step in tape.of(OptimizerStep)}
    if not cleared or not all(
        optimizer is not None and id(optimizer) in steps for optimizer in cleared
    ):
        return ""
    return f"the optimizer stepped at {_named(steps[id(cleared[0])].at)}"


_HAPPENED: dict[Denied, Callable[[Finding, Tape], str]] = {
    Denied.GRADIENT: _carried,
    Denied.TRAINING: _trained,
    Denied.USE: _used,
    Denied.STEP: _stepped,
}


def _named(at: Span) -> str:
    return f"{at.path}:{at.line}"


def _lines(tape: Tape) -> Iterator[tuple[str, int]]:
    """The lines that the tape saw running."""
    seen: set[int] = set()
    for event in tape.events:
        for at in (event.at, *event.stack):
            yield at.path, at.line
        value = getattr(event, "value", None) or getattr(event, "after", None)
        if isinstance(value, Value):
            yield from _behind(value, seen)


def _behind(value: Value, seen: set[int]) -> Iterator[tuple[str, int]]:
    for current in ancestors(value):
        if id(current) not in seen:
            seen.add(id(current))
            for at in (
                current.at,
                *current.stack,
                *filter(None, [current.cut_at]),
                *current.cut_stack,
            ):
                yield at.path, at.line
