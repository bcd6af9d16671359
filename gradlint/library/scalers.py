"""Gradient scalers: `GradScaler(…)`, `scaler.scale(loss)`, `scaler.step(optimizer)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import conditions, tensors
from gradlint.interpret.registry import function, method, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.amp import SCALER, SCALERS, note_precision
from gradlint.library.devices import type_of

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@function(*SCALERS)
def scaler(m: Machine, call: Call) -> Abstract:
    """`GradScaler(device, …, enabled=True)`; the forms below `torch.cuda.amp` take no device."""
    own_device = call.name in (SCALER, "torch.GradScaler")
    given = call.get(5 if own_device else 4, "enabled")
    device = (
        type_of(m, call.get(0, "device") or Const("cuda"))
        if own_device
        else "cpu"
        if ".cpu." in call.name
        else "cuda"
    )
    enabled = True if given is None and not call.open else None
    if given is not None:
        enabled = conditions.decide(m, given, _written(call, "enabled"), call.frame)
    note_precision(m, call, device, given)
    handle = tape.Scaler("", call.frame.span(call.node), enabled)
    return Object(call.name, handle.at, {"handle": handle, "device": device})


def _written(call: Call, name: str) -> ir.Node:
    """An argument as it is written in a call; the call, where it is not given by name."""
    named = dict(call.node.kwargs) if isinstance(call.node, ir.Call) else {}
    return named.get(name, call.node)


@method(SCALER, "__init__")
def initialise_scaler(m: Machine, instance: Instance, call: Call) -> Abstract:
    """A scaler class of the program."""
    instance.state["handle"] = tape.Scaler(instance.cls.name, call.frame.span(call.node), True)
    return NONE


def scaler_of(m: Machine, value: Abstract | None, call: Call) -> Object | Instance | None:
    """The scaler that a value is; something unknown becomes one, of which it is not known whether
    it is enabled.
    """
    if isinstance(value, Object | Instance):
        return value if isinstance(value.state.get("handle"), tape.Scaler) else None
    if not isinstance(value, Unknown):
        return None
    known = m.state.setdefault("unknown-scalers", {})
    if value.symbol not in known:
        at = call.frame.span(call.node)
        known[value.symbol] = Object(
            SCALER, at, {"handle": tape.Scaler(value.symbol.text, at, None), "nullable": True}
        )
    return known[value.symbol]  # type: ignore[no-any-return]


def handle_of(m: Machine, value: Abstract | None, call: Call) -> tape.Scaler | None:
    """The scaler on the tape behind a value."""
    made = scaler_of(m, value, call)
    handle = made.state.get("handle") if made is not None else None
    return handle if isinstance(handle, tape.Scaler) else None


@method(SCALER, "scale")
def scale(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.scale(loss)`: the loss times a factor; a disabled scaler gives what it got."""
    handle = handle_of(m, receiver, call)
    outputs = call.get(0, "outputs") or NONE
    return (
        outputs if handle is None or handle.enabled is False else _scaled(m, handle, outputs, call)
    )


def _scaled(m: Machine, handle: tape.Scaler, outputs: Abstract, call: Call) -> Abstract:
    if isinstance(outputs, Sequence):
        return Sequence(
            outputs.kind,
            [_scaled(m, handle, item, call) for item in outputs.items],
            outputs.open,
            outputs.rest,
        )
    loss = tensors.node_of(m, outputs, call.node, call.frame)
    if loss is None:
        return outputs
    made = tensors.operation(m, "GradScaler.scale", [loss], call.node, call.frame)
    made.storage, made.dtype, made.flags = tape.Storage(), loss.dtype, made.flags | {"scaled"}
    m.state.setdefault("scaled", {})[id(made)] = handle
    m.state.setdefault("scaled-values", []).append(made)  # so that no other value gets its id
    return Tensor(made)


@method(SCALER, "step")
def step(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.step(optimizer)`."""
    from gradlint.library import optimizers

    given = call.get(0, "optimizer")
    if given is None:
        return NONE
    at = Call("step", call.args[1:], {}, call.node, call.frame)
    # the scaler unscales in `step`, where `unscale_` has not done so since the last `update`
    return optimizers.step(m, given, at, scaler=handle_of(m, receiver, call))


@method(SCALER, "unscale_")
def unscale(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.unscale_(optimizer)`."""
    from gradlint.library import optimizers

    handle = handle_of(m, receiver, call)
    if handle is not None:
        optimizer = optimizers.handle_of(m, call.get(0, "optimizer"), call)
        m.emit(
            tape.Unscale(
                at=call.frame.span(call.node),
                scaler=handle,
                optimizer=optimizer,
                text=call.frame.text(call.node),
            )
        )
    return NONE


@method(SCALER, "update")
def update(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.update()`."""
    handle = handle_of(m, receiver, call)
    if handle is not None:
        m.emit(
            tape.ScalerUpdate(
                at=call.frame.span(call.node), scaler=handle, text=call.frame.text(call.node)
            )
        )
    return NONE


@method(SCALER, "is_enabled")
def is_enabled(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.is_enabled()`."""
    handle = handle_of(m, receiver, call)
    if handle is None or handle.enabled is None:
        return Unknown(
            m.symbol(receiver).derive("is_enabled", call.frame.text(call.node)),
            data=True,
            type="bool",
        )
    return TRUE if handle.enabled else FALSE


@method(SCALER, "get_scale")
def get_scale(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.get_scale()`: by which somebody can unscale by hand."""
    m.emit(
        tape.Fact(at=call.frame.span(call.node), what="scale-read", text=call.frame.text(call.node))
    )
    return m.unknown(call.frame.text(call.node), data=True, type="number")


@method(SCALER, "state_dict")
def state_dict(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """`scaler.state_dict()`."""
    return Mapping({}, open=True, symbol=m.symbol(receiver).derive("state_dict", "state_dict"))


@method(SCALER, "load_state_dict", "set_growth_factor", "set_backoff_factor", "set_growth_interval")
def settings(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """What sets how the factor grows."""
    return NONE


@method(
    SCALER, "get_growth_factor", "get_backoff_factor", "get_growth_interval", "_get_scale_async"
)
def setting(m: Machine, receiver: Object | Instance, call: Call) -> Abstract:
    """How the factor grows."""
    return m.unknown(call.frame.text(call.node), data=True, type="number")


@typed(*SCALERS)
def typed_scaler(m: Machine, symbol: Symbol, function_: Function, parameter: Any) -> Abstract:
    """A parameter annotated as a scaler, which can be None."""
    at = function_.node.code.span(function_.node.at)
    known: dict[Symbol, Object] = m.state.setdefault("unknown-scalers", {})
    return known.setdefault(
        symbol, Object(SCALER, at, {"handle": tape.Scaler(symbol.text, at, None), "nullable": True})
    )
