"""What went wrong between the ranks: parameters that DDP waited for, and collectives that not all
ranks called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradlint.report._place import listed
from gradlint.trace import branches
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place
from gradlint.trace.records import Held, Note, Op
from gradlint.trace.session import Session
from gradlint.trace.source import seen_at

_SHOWN = 8


def left_out(session: Session) -> Iterator[str]:
    """Why DDP did not get the gradients of some parameters: one line for all that share a
    reason.
    """
    if not session.left_out:
        return
    backwards = [note for note in session.notes if note.kind == "backward"]
    reasons: dict[str, list[str]] = {}
    for name, held in session.left_out:
        reasons.setdefault(_reason(held, backwards), []).append(name)
    where = f" by {seen_at(backwards[-1].place)}" if backwards else ""
    for reason, names in reasons.items():
        yield (
            f"DDP waited for gradients that were not computed{where}: {listed(names, _SHOWN)}; "
            f"{reason}"
        )


def _reason(held: Held, backwards: Sequence[Note]) -> str:
    for index, note in enumerate(reversed(backwards)):
        use = _use(held, note)
        if use is not None and index == 0:
            cut = _cut(held, note)
            used = f"used at {seen_at(use.place)}"
            return (
                f"{used}, and cut off at {seen_at(cut.cut_place or cut.place)}" if cut else _UNKNOWN
            )
        if use is not None:
            used = f"used last at step {note.step}, at {seen_at(use.place)}"
            return f"{used}{_condition(use.place)}, which was left out here"
    return (
        "no operation that was recorded has used them: call their module in every forward, or "
        "freeze them"
    )


_UNKNOWN = "they are used, so that a hook or an earlier error kept their gradients back"


def _use(held: Held, note: Note) -> Op | None:
    """The operation that used a parameter on the way to what was back-propagated."""
    return next(
        (op for op in lineage(note.facts["ops"]) if any(each.held is held for each in op.inputs)),
        None,
    )


def _cut(held: Held, note: Note) -> Op | None:
    cuts = (op for op in lineage(note.facts["ops"]) if op.cut is not None and not op.requires_grad)
    return next((op for op in cuts if any(each.held is held for each in lineage([op]))), None)


def _condition(place: Place) -> str:
    """The condition that decides whether a line runs, where there is one on the way to it."""
    for frame in place:
        found = branches.branches(frame.code, frame.instruction)
        if found:
            text = found[-1].text if found[-1].side else f"not ({found[-1].text})"
            return f" under `if {text}` ({found[-1].at.path}:{found[-1].at.line})"
    return ""


def collectives(session: Session) -> dict[str, Any]:
    """What a rank hands in about its collectives: how many there were, and the last of them."""
    called = session.collectives
    return {
        "count": called.count,
        "last": [f"{name} at {seen_at(place)}" for name, place in called.last],
    }


def told(reports: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """What is to be said of all ranks: what each explains, with the ranks that do, and where they
    part.
    """
    said: dict[str, list[str]] = {}
    for rank, each in sorted(reports.items()):
        for text in each["explained"]:
            said.setdefault(text, []).append(str(rank))
    if len(reports) < 2:
        return list(said)
    return [*(f"rank {', '.join(each)}: {text}" for text, each in said.items()), *_parted(reports)]


def _parted(reports: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """The first collective that ranks do not share, where one of them ended in an error."""
    if not any(each["ended"] for each in reports.values()):
        return
    first = min(reports)
    for rank, each in sorted(reports.items()):
        number = _parting(reports[first]["collectives"], each["collectives"])
        if number is not None:
            one, other = (_does(each, number) for each in (reports[first], reports[rank]))
            yield (
                f"the ranks part at collective {number + 1}: rank {first} {one}, rank {rank} "
                f"{other}"
            )
            return


def _parting(one: Mapping[str, Any], other: Mapping[str, Any]) -> int | None:
    begin = max(each["count"] - len(each["last"]) for each in (one, other))
    numbers = range(begin, max(one["count"], other["count"]))
    return next((each for each in numbers if _kind(one, each) != _kind(other, each)), None)


def _kind(called: Mapping[str, Any], number: int) -> str:
    return _call(called, number).partition(" ")[0]


def _call(called: Mapping[str, Any], number: int) -> str:
    return str(called["last"][number - called["count"]]) if number < called["count"] else ""


def _does(report: Mapping[str, Any], number: int) -> str:
    """What a rank does where the ranks part."""
    call = _call(report["collectives"], number)
    if call:
        return f"calls {call}"
    last = _call(report["collectives"], number - 1) if number else ""
    why = (
        f"ended by {str(report['ended']).partition(':')[0]}" if report["ended"] else "it is through"
    )
    return f"calls no other{f' after {last}' if last else ''} ({why})"
