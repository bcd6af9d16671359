"""What grad mode, autocast, train mode and calls of modules become on the tape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.trace import source
from gradlint.trace.frames import Place
from gradlint.trace.places import NOWHERE, stack, switched_at
from gradlint.trace.records import Held, Note

if TYPE_CHECKING:
    from gradlint.trace.assemble import Assembler


def grad_mode_switched(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """Grad mode goes on or off."""
    place = note.place
    by_call = bool(place) and source.context(place[0].code, place[0].instruction) == ""
    entered = not note.facts["enabled"] if not by_call else True
    where = switched_at(place) or NOWHERE
    event = tape.GradMode(
        at=where,
        enabled=note.facts["enabled"],
        by_call=by_call,
        inference=note.facts["inference"],
        entered=entered,
    )
    method = place[0].code.co_name if place else ""
    if method == "__enter__":
        assembler.entered.append(event)
    elif method == "__exit__" and event.enabled and assembler.entered:
        assembler.entered.pop().by_call = False  # a context of the program restores it
    yield event


def autocast_switched(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """An autocast region is entered or left."""
    where = (
        source.decorator_span(note.place[0].code, ("autocast",))
        if note.place and note.place[0].instruction < 0
        else NOWHERE
    )
    yield tape.Autocast(
        at=where,
        device=note.facts["device"],
        enabled=note.facts["enabled"],
        entered=note.facts["entered"],
    )


def train_mode_set(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """`model.train()` or `model.eval()`."""
    yield tape.TrainMode(
        at=NOWHERE,
        module=assembler.values.module(note.facts["module"]),
        training=note.facts["training"],
        matters=note.facts["matters"],
    )


def module_called(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """An outermost module was called."""
    module = module_of(assembler, note)
    assert module is not None
    if note.facts["woken"]:
        yield tape.TrainMode(at=NOWHERE, module=module, training=True)
    methods = _methods(assembler, note.place, note.facts["owners"])
    yield tape.ModuleCall(
        at=NOWHERE, module=module, result=assembler.values.value(note.facts["op"]), within=methods
    )


def _methods(
    assembler: Assembler, place: Place, owners: Sequence[tuple[Held, int] | None]
) -> tuple[tuple[Span, tape.Module], ...]:
    """The calls of modules' methods that led to a place, outermost first."""
    called = zip(stack(place), reversed(owners[: len(place) - 1]), strict=False)
    found = ((at, assembler.values.module(_path(first))) for at, first in called)
    return tuple((at, module) for at, module in found if module is not None)


def module_of(assembler: Assembler, note: Note) -> tape.Module | None:
    """The module that a note is about: by the name of a parameter of its, which all notes
    share.
    """
    return assembler.values.module(_path(note.facts.get("first")) or note.facts.get("path", ()))


def _path(first: tuple[Held, int] | None) -> tuple[str, ...]:
    """Where the module is that has a parameter so deep in it."""
    return first[0].path[: -first[1]] if first is not None else ()


MAKERS = {
    "gradmode": grad_mode_switched,
    "autocast": autocast_switched,
    "train": train_mode_set,
    "module": module_called,
}
