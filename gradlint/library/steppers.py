"""Methods of what may be an optimizer, a scheduler or a scaler: `x.step()`, `x.scale(loss)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.registry import find_method, method, notify
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Unknown,
)
from gradlint.library import roles
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
# arguments of a step: an epoch and a metric; a scheduler of noise takes more
MOST_OF_A_SCHEDULER = 2


@method("unknown", "step")
def step(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`step` of an optimizer, a scheduler or a scaler; of anything else (an environment, a learner)
    it is foreign.
    """
    from gradlint.library import optimizers, schedulers

    role = roles.role(m, unknown, call)
    if role == "scaler" and call.args:
        return _scaler(m, unknown, "step", call)
    if role == "scheduler" and len(call.values) <= MOST_OF_A_SCHEDULER:
        schedulers.scheduler_step(m, unknown, call)
        return NONE
    if role == "scheduler":  # of noise: what it makes of a prediction hangs on it
        return call_unknown(
            m, unknown.symbol.derive(("attribute", "step"), f"{unknown.symbol.text}.step"), call
        )
    if role == "optimizer":
        return optimizers.step(m, unknown, call)
    return _foreign(m, unknown, "step", call)


def _scaler(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """A method of something that is taken to be a GradScaler."""
    from gradlint.library import scalers

    handler = find_method("torch.amp.GradScaler", name)
    made = scalers.scaler_of(m, unknown, call)
    return (
        handler(m, made, call)
        if handler is not None and made is not None
        else m.unknown(name, data=True)
    )


def _foreign(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """A method that gives nothing to learn from, and may do anything with what it is given."""
    node, frame = call.node, call.frame
    symbol = unknown.symbol.derive(("attribute", name), f"{unknown.symbol.text}.{name}")
    notify("unknown call", m, symbol, call)
    made = tensors.value(
        m, "call", Kind.DATA, tensors.sources(m, call.values, node, frame), node, frame
    )
    m.emit(tape.ModuleCall(at=frame.span(node), module=tape.Module(symbol.text), result=made))
    return m.unknown(frame.text(node), data=True)


@method("unknown", "scale")
def scale(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    if call.args and roles.role(m, unknown, call) == "scaler":
        return _scaler(m, unknown, "scale", call)
    return call_unknown(m, unknown.symbol.derive(("attribute", "scale"), "scale"), call)


@method("unknown", "unscale_")
def unscale_(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """Of an optimizer, whatever the name: nothing but a scaler does that."""
    if call.args and (
        roles.role(m, unknown, call) == "scaler" or roles.looks_like_optimizer(m, call.args[0])
    ):
        return _scaler(m, unknown, "unscale_", call)
    return call_unknown(m, unknown.symbol.derive(("attribute", "unscale_"), "unscale_"), call)


@method("unknown", "update")
def update(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    is_scaler = roles.role(m, unknown, call) == "scaler"
    return (_scaler if is_scaler else _foreign)(m, unknown, "update", call)
