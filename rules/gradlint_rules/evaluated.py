"""Modules in eval mode: which call put them there, and what was computed with them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import Module, ModuleCall, Tape, TrainMode, Value


class Modes:
    """The changes of mode of modules, as far as a path has come."""

    def __init__(self) -> None:
        self._latest: dict[int, TrainMode] = {}  # by the id of the module that was asked

    def change(self, mode: TrainMode) -> None:
        """Takes notice of a change; one to the mode that a module is in already, as nothing changed
        since, is none.
        """
        before = self._latest.get(id(mode.module))
        since = [
            other for other in self._latest.values() if before is None or other.order > before.order
        ]
        if before is None or since or before.training is not mode.training:
            self._latest[id(mode.module)] = mode

    def of(self, call: ModuleCall) -> TrainMode | None:
        """The latest change that reached the module of a call."""
        found: TrainMode | None = None
        module: Module | None = call.module
        while module is not None:
            mode = self._latest.get(id(module))
            if mode is not None and (found is None or mode.order > found.order):
                found = mode
            module = module.parent
        return found


def calls_in_eval_mode(tape: Tape) -> Iterator[tuple[ModuleCall, TrainMode]]:
    """Each call of a module that is in eval mode, with the `eval()` that put it there."""
    modes = Modes()
    for event in tape.among(TrainMode, ModuleCall) if tape.of(TrainMode) else ():
        if isinstance(event, TrainMode):
            modes.change(event)
        elif isinstance(event, ModuleCall):
            mode = modes.of(event)
            if mode is not None and mode.training is False:
                yield event, mode


def back_propagated(tape: Tape) -> dict[int, Value]:
    """Everything that some backward of a path runs through, by id."""
    return {id(value): value for sink in tape.backwards() for value in sink.graph}
