"""Optimizer classes of the program: what their own `step` writes is an update, like torch's.

class Lion(torch.optim.Optimizer):
    def step(self): …  # p.add_(…) of what it holds
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.interpret.registry import around, on
from gradlint.interpret.values import Abstract, Call, Instance, Tensor
from gradlint.library import optimizers

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@dataclass(slots=True)
class _Stepping:
    """A `step` of the program that is being run."""

    optimizer: tape.Optimizer
    call: Call
    stack: tuple[Span, ...]  # the calls around it
    iteration: tuple[tuple[int, int], ...]  # the rounds of the loops around it
    began: int  # the events before it
    held: set[int] = field(default_factory=set)  # the storages of what the optimizer holds


@around(optimizers.OPTIMIZER, "step")
def step(m: Machine, optimizer: Instance, call: Call, run: Callable[[], Abstract]) -> Abstract:
    """Runs the program's own `step`; the update stands on the tape where it first writes what the
    optimizer holds, behind the last backward of a closure.

    One whose writes are not seen updates at its end. One that is made around another optimizer,
    `Lookahead(Adam(…))`, steps where that one does.
    """
    handle = optimizer.state.get("handle")
    running: list[_Stepping] = m.state.setdefault("own-steps", [])
    is_within = any(each.optimizer is handle for each in running)  # `super().step()`
    if not isinstance(handle, tape.Optimizer) or is_within or optimizers.wrapped(m, optimizer):
        return run()
    stepping = _Stepping(handle, call, m.where, m.rounds, len(m.tape.events))
    stepping.held = {id(optimizers.current(m, value).storage) for value in handle.parameters}
    running.append(stepping)
    try:
        result = run()
    finally:
        running.remove(stepping)
    done = m.tape.events[stepping.began :]
    if not any(isinstance(event, tape.OptimizerStep | tape.ZeroGrad) for event in done):
        optimizers.update(m, handle, None, result, call)
    return result


@on("written")
def note_update(m: Machine, tensor: Tensor) -> None:
    """A tensor is written in place: where a `step` that is being run does so with what its
    optimizer holds, it is its update.
    """
    for stepping in m.state.get("own-steps", ()):
        if id(tensor.node.storage) in stepping.held and not _is_noted(m, stepping):
            event = tape.OptimizerStep(
                at=stepping.call.frame.span(stepping.call.node),
                optimizer=stepping.optimizer,
                closure=_last(m, stepping, tape.Backward) >= 0,
                text=stepping.call.frame.text(stepping.call.node),
            )
            m.emit(event)
            event.stack, event.iteration = stepping.stack, stepping.iteration


def _is_noted(m: Machine, stepping: _Stepping) -> bool:
    """Whether the update behind the last backward stands on the tape."""
    return _last(m, stepping, tape.OptimizerStep) > _last(m, stepping, tape.Backward)


def _last(m: Machine, stepping: _Stepping, kind: type[tape.Event]) -> int:
    """The place of the last event of a kind within a `step`; -1 where there is none."""
    events = m.tape.events
    places = range(len(events) - 1, stepping.began - 1, -1)
    return next((place for place in places if isinstance(events[place], kind)), -1)
