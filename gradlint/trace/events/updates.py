"""What optimizers, scalers and schedulers do becomes on the tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.trace.places import NOWHERE, at, stack
from gradlint.trace.records import Held, Note
from gradlint.trace.unseen import was_taken

if TYPE_CHECKING:
    from gradlint.trace.assemble import Assembler


def optimizer_made(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """An optimizer is made."""
    optimizer = assembler.holders.optimizer(note.facts["stepper"])
    optimizer.order = len(assembler.tape.events)
    yield tape.OptimizerMade(at=NOWHERE, optimizer=optimizer)


def cleared(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """Gradients are cleared."""
    stepper = note.facts["stepper"]
    optimizer = None if stepper is None else assembler.holders.optimizer(stepper)
    if stepper is not None:
        assembler.emptied.add(id(stepper))
    if optimizer is not None:
        assembler.holders.holds(optimizer, note.facts["held"])
    cleared = [assembler.values.held(held) for held in note.facts["held"]]
    yield tape.ZeroGrad(at=NOWHERE, optimizer=optimizer, parameters=tuple(cleared))


def clipped(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """Gradients are clipped, or their norm is taken."""
    clipped = tuple(assembler.values.held(held) for held in note.facts["held"])
    yield tape.Clip(
        at=NOWHERE,
        parameters=clipped,
        reads_only=note.facts["reads"],
        exhausted=note.facts["exhausted"],
    )


def gradients_read(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """The program reads `.grad`."""
    read = tuple(assembler.values.value(op) for op in note.facts["ops"])
    yield tape.Clip(at=NOWHERE, parameters=read, reads_only=True, by_library=not note.facts["own"])


def stepped(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """An optimizer steps."""
    optimizer = assembler.holders.optimizer(note.facts["stepper"])
    assembler.holders.holds(optimizer, note.facts["held"])
    scaler = assembler.holders.scaler(note.facts["scaler"])
    assembler.turns.stepped(note.place)
    event = tape.OptimizerStep(
        at=NOWHERE, optimizer=optimizer, scaler=scaler, closure=note.facts["closure"]
    )
    if was_taken(note):
        event.starved = len(note.facts["starved"]) == len(note.facts["held"])
        _overwrite(assembler, note)
        yield from _given(assembler, note)
    yield event


def _given(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """Gradients that are there after a clearing without any backward: `parameter.grad = …`,
    which nothing shows.

    Where a backward came, which of them the code has set is not known: one stands for them.
    """
    held: list[Held] = note.facts["held"]
    filled = [each for index, each in enumerate(held) if index not in note.facts["starved"]]
    if id(note.facts["stepper"]) not in assembler.emptied:
        filled = [] if assembler.session.given.isdisjoint(held) else filled[:1]
    for each in filled:
        yield tape.Fact(at=NOWHERE, what="gradient-set", value=assembler.values.held(each))


def _overwrite(assembler: Assembler, note: Note) -> None:
    """A step writes the parameters: those that a failing backward found changed show it."""
    for held in note.facts["held"]:
        if held.cell is not None:
            storage = assembler.values.storage(held.cell)
            storage.version += 1
            write = tape.Write(
                "torch.optim.Optimizer.step",
                at(note.place),
                stack(note.place),
                storage.version,
                True,
                len(assembler.tape.events),
            )
            storage.writes.append(write)


def unscaled(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """`scaler.unscale_(optimizer)`."""
    scaler = assembler.holders.scaler(note.facts["scaler"])
    assert scaler is not None
    yield tape.Unscale(
        at=NOWHERE, scaler=scaler, optimizer=assembler.holders.optimizer(note.facts["stepper"])
    )


def updated(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """`scaler.update()`."""
    scaler = assembler.holders.scaler(note.facts["scaler"])
    assert scaler is not None
    yield tape.ScalerUpdate(at=NOWHERE, scaler=scaler)


def scheduled(assembler: Assembler, note: Note) -> Iterator[tape.Event]:
    """`scheduler.step()`."""
    yield tape.SchedulerStep(
        at=NOWHERE, scheduler=assembler.holders.scheduler(note.facts["stepper"])
    )


MAKERS = {
    "optimizer": optimizer_made,
    "zero": cleared,
    "clip": clipped,
    "read": gradients_read,
    "step": stepped,
    "unscale": unscaled,
    "update": updated,
    "scheduler": scheduled,
}
