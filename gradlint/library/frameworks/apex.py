"""Apex: `amp.initialize` gives what it was given; within `amp.scale_loss(loss, …)` the scaled loss
is a sink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.registry import function, method
from gradlint.interpret.values import (
    FALSE,
    NONE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Sequence,
    Tensor,
)
from gradlint.library.frameworks.fabric import unchanged

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_SCALED = "apex.amp.scale_loss"


@function("apex.amp.initialize")
def initialize(m: Machine, call: Call) -> Abstract:
    """`amp.initialize(models, optimizers, …)`: both, or the models alone."""
    given = [call.get(0, "models"), call.get(1, "optimizers")]
    return unchanged(
        [
            value
            for value in given
            if value is not None and not (isinstance(value, Const) and value.value is None)
        ]
    )


@function(_SCALED)
def scale_loss(m: Machine, call: Call) -> Abstract:
    """`amp.scale_loss(loss, optimizer)`: leaving it unscales the gradients."""
    return Object(_SCALED, call.frame.span(call.node), {"loss": call.get(0, "loss") or NONE})


@method(_SCALED, "__enter__")
def enter(m: Machine, region: Object, call: Call) -> Abstract:
    """The loss times a factor."""
    given = region.state["loss"]
    loss = tensors.node_of(m, given, call.node, call.frame) if isinstance(given, Abstract) else None
    if loss is None:
        return given if isinstance(given, Abstract) else NONE
    made = tensors.operation(m, "apex.amp.scale", [loss], call.node, call.frame)
    made.storage, made.dtype, made.name = tape.Storage(), loss.dtype, loss.name
    return Tensor(made)


@method(_SCALED, "__exit__")
def leave(m: Machine, region: Object, call: Call) -> Abstract:
    """The gradients are divided by the factor again."""
    return FALSE


@function("apex.amp.master_params")
def master_params(m: Machine, call: Call) -> Abstract:
    """`amp.master_params(optimizer)`: what the optimizer holds."""
    groups = m.attribute(call.args[0], "param_groups", call) if call.args else NONE
    if isinstance(groups, Sequence) and groups.items and isinstance(groups.items[0], Mapping):
        held = groups.items[0].items.get("params")
        if isinstance(held, Sequence):
            return Sequence("generator", list(held.items), held.open)
    return m.unknown(call.frame.text(call.node))


@function(
    "apex.amp.state_dict",
    "apex.amp.load_state_dict",
    "apex.amp.init",
    "apex.amp.half_function",
    "apex.amp.float_function",
)
def settings(m: Machine, call: Call) -> Abstract:
    """State, and decorators that leave the function as it is."""
    return (
        call.args[0]
        if call.name.endswith("function") and call.args
        else m.unknown(call.frame.text(call.node), data=True, type="object")
    )
