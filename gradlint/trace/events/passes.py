"""What a backward pass becomes on the tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.trace import bindings, source
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place
from gradlint.trace.places import NOWHERE, at, stack, switched_at
from gradlint.trace.records import Note, Op
from gradlint.trace.values import joined

if TYPE_CHECKING:
    from gradlint.trace.assemble import Assembler


_Rounds = tuple[tuple[int, int], ...]  # loops with their rounds, outermost first


def backward(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """A backward pass, and what it shows of graphs that rounds hand on."""
    ops: list[Op] = note.facts["ops"]
    if unseen := next(filter(None, (_unseen_source(assembler, op, note) for op in ops)), ""):
        assembler.session.blind[
            f"{at(note.place)}: this loss carries no gradient, and {unseen}"
        ] = None
        return
    if note.facts.get("broken") is False:
        symptom = (
            "this backward failed on a tensor that was overwritten, and which one was not seen"
        )
        assembler.session.blind[f"{at(note.place)}: {symptom}"] = None
    assembler.emptied.clear()
    assembler.trained_at = note.serial
    assembler.turns.trained()
    values = [assembler.values.value(op) for op in ops]
    loss = (
        values[0]
        if len(values) == 1
        else joined(values, at(note.place), len(assembler.tape.events))
    )
    handed = "" if note.facts["direct"] else _handed(note.place)
    for value in values:
        value.name = value.name or (_receiver(note.place) if note.facts["direct"] else handed)
        if not value.name and not note.facts["direct"]:
            value.name = _out_of_view(value).title
    wanted = note.facts["inputs"]
    if note.facts["sink"] == "autograd.grad" and len(values) == len(wanted) == 1:
        _name_arguments(assembler, note, *values, assembler.values.value(wanted[0]))
    yield tape.Backward(
        at=NOWHERE, value=loss, loss=handed, sink=note.facts["sink"],
        scaler=assembler.holders.scaler(note.facts["scaler"]), autocast=note.facts["autocast"],
        retain_graph=note.facts["retain"], create_graph=note.facts["create"],
        inputs=None if wanted is None else tuple(assembler.values.value(op) for op in wanted),
    )  # fmt: skip
    if note.facts["retain"] and not assembler.carries:
        yield from _carried(assembler, note, loss)


def _out_of_view(loss: tape.Value) -> tape.Value:
    """What a library's loop made its loss of: `loss / accumulation` of what `forward` gave.

    The line of such a value is the call that runs the whole loop, which names no loss.
    """
    value = loss
    while (value.at, value.stack) == (loss.at, loss.stack):
        sources = [source for source in value.inputs if source.kind is tape.Kind.OPERATION]
        if len(sources) != 1:
            return loss
        (value,) = sources
    return value


def _name_arguments(assembler: Assembler, note: Note, *values: tape.Value) -> None:
    """Tensors go by the names that a call has for them, where they were bound to none."""
    frame = note.place[0] if note.place else None
    for value, name in zip(
        values, bindings.arguments(frame.code, frame.instruction) if frame else (), strict=False
    ):
        value.name = value.name or name


def _carried(assembler: Assembler, note: Note, loss: tape.Value) -> Iterator[tape.Kept]:
    """What each round of a loop hands to the next with its graph, and with that of the round
    before.
    """
    now = assembler.turns.rounds.now()
    handed = [
        (user, value)
        for user in tape.graph(loss)
        for value in user.inputs
        if value.records and _is_earlier(value.iteration, user.iteration, now)
    ]
    newest = next(
        (value for user, value in handed if not _is_earlier(user.iteration, now, now)), None
    )
    if newest is not None and any(_is_earlier(user.iteration, now, now) for user, _ in handed):
        assembler.carries = True
        calls = stack(note.place)
        is_below = newest.stack[: len(calls)] == calls
        yield tape.Kept(
            at=(*newest.stack, newest.at)[len(calls) if is_below else -1],
            value=newest,
            how="state",
        )


def _unseen_source(assembler: Assembler, op: Op, note: Note) -> str:
    """Why it is not known what keeps a loss from carrying a gradient, or ''."""
    opaque = next((each for each in lineage([op]) if "compiled" in each.flags), None)
    if not op.requires_grad and opaque is not None:
        return (
            f"comes out of compiled code, called at {at(opaque.place)}: --level record looks "
            "into it"
        )
    if not (_is_unexplained(op, note) or _may_come_out_of_the_dark(assembler, op)):
        return ""
    dark = ", ".join(str(switched_at(place)) for place in assembler.session.left_dark.values())
    return (
        "how it was computed was not "
        f"seen{f'; grad mode was off, unseen, at {dark}' if dark else ''}"
    )


def _may_come_out_of_the_dark(assembler: Assembler, op: Op) -> bool:
    """Whether a loss without gradient hangs on something that a region may have made that was
    left alone.
    """
    if op.requires_grad or not assembler.session.left_dark:
        return False
    found = list(lineage([op]))
    return all(each.cut in (None, tape.Cut.CONSTANT) for each in found) and any(
        map(_is_unseen, found)
    )


def _is_earlier(rounds: _Rounds, others: _Rounds, loops: _Rounds) -> bool:
    """Whether some rounds of these loops were before others."""
    first, second = dict(rounds), dict(others)
    shared = [loop for loop, _ in loops if loop in first and loop in second]
    return [first[loop] for loop in shared] < [second[loop] for loop in shared]


def _is_unexplained(op: Op, note: Note) -> bool:
    """Whether nothing is known of a loss without gradient but that it was back-propagated."""
    return (
        op.kind is tape.Kind.DATA
        and not op.requires_grad
        and not op.inputs
        and op.place == note.place
    )


def _is_unseen(op: Op) -> bool:
    """Whether it was not seen how a tensor was made."""
    return op.kind is tape.Kind.DATA and op.name == "tensor"


def _receiver(place: Place) -> str:
    """`loss`, where `loss.backward()` is running."""
    text = source.text(place[0].code, place[0].instruction) if place else ""
    name, dot, _ = text.partition(".backward(")
    return name if dot and name.replace(".", "").isidentifier() else ""


def _handed(place: Place) -> str:
    """`loss`, where `accelerator.backward(loss)` is running; of a trainer's call nothing is
    known.
    """
    text = source.text(place[0].code, place[0].instruction) if place else ""
    given = bindings.arguments(place[0].code, place[0].instruction) if "backward(" in text else ()
    return given[0] if given else ""


MAKERS = {
    "backward": backward,
}
