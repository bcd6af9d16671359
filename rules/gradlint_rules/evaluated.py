"""Modules in eval mode: which call put them there, and what was computed with them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import ModuleCall, Tape, TrainMode, Value


def mode_of(call: ModuleCall, modes: list[TrainMode]) -> TrainMode | None:
    """The latest of these changes that reached the module of a call."""
    return next((mode for mode in reversed(modes) if mode.module and call.module.is_within(mode.module)), None)


def calls_in_eval_mode(tape: Tape) -> Iterator[tuple[ModuleCall, TrainMode]]:
    """Each call of a module that is in eval mode, with the `eval()` that put it there."""
    modes: list[TrainMode] = []
    for event in tape.among(TrainMode, ModuleCall) if tape.of(TrainMode) else ():
        if isinstance(event, TrainMode):
            modes.append(event)
        elif isinstance(event, ModuleCall):
            mode = mode_of(event, modes)
            if mode is not None and mode.training is False:
                yield event, mode


def back_propagated(tape: Tape) -> dict[int, Value]:
    """Everything that some backward of a path runs through, by id."""
    return {id(value): value for sink in tape.backwards() for value in sink.graph}
