"""Losses of steps that were only watched: what they reach, by what other steps show."""

from __future__ import annotations

from collections.abc import Iterable

from gradlint import tape
from gradlint.trace.records import Held, Note, Op
from gradlint.trace.session import Session

_ZERO_GRADIENT = "zero-gradient"


def fill_unseen(session: Session) -> None:
    """A loss of a step that was only watched reaches what had a gradient at the step after it, not
    set by hand.

    Where no step comes any more, it reaches what one of the same place reached before. What that
    reached by a gradient of zero alone has one here, too, and is not reached.
    """
    pending: list[tuple[Note, Op]] = []
    reached: dict[tuple[object, ...], tuple[Op, ...]] = {}
    in_vain: dict[tuple[object, ...], set[Held]] = {}
    for note in session.notes:
        if note.kind == "backward":
            graph = _graph(note.facts["ops"])
            trained = tuple(op for op in graph if op.kind in (tape.Kind.PARAMETER, tape.Kind.LEAF))
            if trained:
                reached[_line(note)] = trained
                in_vain[_line(note)] = _reached_in_vain(note.facts["ops"], graph)
            else:
                pending += [
                    (note, op) for op in graph if op.kind is tape.Kind.UNKNOWN and not op.inputs
                ]
        elif note.kind == "step" and pending and was_taken(note):
            starved = note.facts["starved"]
            held = [each for index, each in enumerate(note.facts["held"]) if index not in starved]
            found = tuple(session.leaf(each) for each in held if each not in session.given)
            for sink, op in pending if found or not held else ():
                vain = in_vain.get(_line(sink), ())
                _fill(op, tuple(each for each in found if each.held not in vain) or found)
                reached[_line(sink)] = op.inputs
            pending = []
    for sink, op in pending:
        if _line(sink) in reached:
            _fill(op, reached[_line(sink)])


def was_taken(note: Note) -> bool:
    """Whether an optimizer stepped: a scaler leaves a step out, or refuses it, before gradients are
    looked at.
    """
    return "starved" in note.facts


def _reached_in_vain(losses: Iterable[Op], graph: Iterable[Op]) -> set[Held]:
    """The parameters that a backward reaches only through what has a gradient of zero."""
    live = {id(op) for op in _graph(losses, stops=_ZERO_GRADIENT)}
    return {op.held for op in graph if op.held is not None and id(op) not in live}


def _fill(op: Op, reached: tuple[Op, ...]) -> None:
    op.kind, op.inputs, op.flags = tape.Kind.OPERATION, reached, op.flags | {"unseen"}


def _graph(losses: Iterable[Op], stops: str = "") -> list[Op]:
    """What a backward of these losses runs through, as far as it was seen; not beyond what is
    flagged `stops`.
    """
    found = [op for op in losses if op.requires_grad]
    seen = set(map(id, found))
    for op in found:
        if stops in op.flags:
            continue
        new = [source for source in op.inputs if source.requires_grad and id(source) not in seen]
        seen.update(map(id, new))
        found += new
    return found


def _line(note: Note) -> tuple[object, ...]:
    """Where in the source something was noted, and the calls that led there."""
    return tuple((frame.code, frame.instruction) for frame in note.place)
