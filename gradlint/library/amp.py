"""Mixed precision: `autocast` in all its names, as context, decorator and by hand; `GradScaler`.

For the rules on mixed precision, each autocast and each scaler that is made, and each use of a name
below `torch.cuda.amp` or `torch.cpu.amp`, is a fact `amp` on the tape. Its `detail` is the full
name that was called, then words `key=value`:

    torch.cuda.amp.autocast device=cuda enabled=true
    torch.autocast device=unknown enabled=unknown by=device.type

`device` is the type, or `unknown`. `enabled` is `default` (not given), `true`, `false` or `unknown`
on this path; `by` is the condition behind `enabled` where it was given and is not a constant, with
`setting=yes` where an argument of the command line decides, and `setting=given` where a parameter
does that no caller is seen to pass. `version=asked` stands last where the source says that the use
hangs on torch's version. `scale-read` is the fact that `get_scale()` was called, and
`context-not-entered` that an autocast was made as a statement, or entered together with another by
`and`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import conditions, defaults, tensors
from gradlint.interpret.registry import alias, function, hears, is_a, method, parent, typed
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library import modes
from gradlint.library.devices import type_of
from gradlint.source.blocks import statements

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Machine

_VERSIONS = re.compile(r"version|torch_|TORCH|\b(?:has|get)attr\(.*(?:torch|amp)")
_LEAVES = ast.Return | ast.Raise
AUTOCAST = "torch.autocast"
SCALER = "torch.amp.GradScaler"
_AUTOCASTS = (
    AUTOCAST,
    "torch.amp.autocast",
    "torch.cuda.amp.autocast",
    "torch.cpu.amp.autocast",
    "torch.mps.amp.autocast",
    "torch.xpu.amp.autocast",
)
_SCALERS = (
    SCALER,
    "torch.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.cpu.amp.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
)
_CUSTOM = tuple(
    f"torch.{home}.{name}" for home in ("amp", "cuda.amp") for name in ("custom_fwd", "custom_bwd")
)
for _home in ("torch.amp", "torch.cuda.amp", "torch.cpu.amp"):
    for _module in ("autocast_mode", "grad_scaler"):
        alias(f"{_home}.{_module}", _home)
for _name in _AUTOCASTS[1:]:
    parent(_name, AUTOCAST)
for _name in _SCALERS[1:]:
    parent(_name, SCALER)


# autocast


@function(*_AUTOCASTS)
def autocast(m: Machine, call: Call) -> Abstract:
    """`torch.autocast(device_type, dtype, enabled)`; the forms below `torch.cuda.amp` take no
    device.
    """
    made = Object(call.name, call.frame.span(call.node))
    if call.args and isinstance(call.args[0], Function | Builtin) and len(call.values) == 1:
        return call.args[0]
    _set_up(m, made.state, call)
    return made


def of_framework(call: Call) -> Object:
    """An autocast region that a framework makes for its own device; models that it prepared enter
    one by themselves.
    """
    return Object(AUTOCAST, call.frame.span(call.node), {"device": tape.FRAMEWORK, "enabled": None})


@method(AUTOCAST, "__init__")
def initialise(m: Machine, instance: Instance, call: Call) -> Abstract:
    """An autocast class of the program."""
    named = Call(
        next((base for base in instance.cls.libraries() if is_a(base, AUTOCAST)), AUTOCAST),
        call.args,
        call.kwargs,
        call.node,
        call.frame,
    )
    _set_up(m, instance.state, named)
    return NONE


def _set_up(m: Machine, state: dict[str, Any], call: Call) -> None:
    own_device = call.name in (AUTOCAST, "torch.amp.autocast")
    given = call.get(2 if own_device else 0, "enabled")
    state["device"] = (
        type_of(m, call.get(0, "device_type")) if own_device else call.name.split(".")[1]
    )
    state["enabled"] = (
        True
        if given is None and not call.open
        else None
        if given is None
        else conditions.truth(m, given)
    )
    state["dtype"] = call.get(1, "dtype")
    state["told"] = _tell(m, call, state["device"], given)


def _tell(m: Machine, call: Call, device: str | None, given: Abstract | None) -> str:
    """The fact that something of mixed precision is made, told of where its name is written."""
    written = call.partial or call
    known = None if given is None else conditions.truth(m, given)
    enabled = "default" if given is None else {True: "true", False: "false", None: "unknown"}[known]
    by = (
        f" by={_condition(m, given)}"
        if given is not None and conditions.is_answer(m, given)
        else ""
    )
    detail = f"{call.name} device={device or 'unknown'} enabled={enabled}{by}"
    detail += " version=asked" if _is_by_version(written) else ""
    at, text = written.frame.span(written.node), written.frame.text(written.node)
    m.emit(tape.Fact(at=at, what="amp", detail=detail, text=text))
    return detail


def _is_by_version(use: Call) -> bool:
    """Whether a use stands under an `if` of its function that asks for torch's version, or behind
    one that returns.

    What the path has decided does not tell: the version may have been worked out, and be known.
    """
    running, line = use.frame.function, use.node.at[0]
    around = statements(running.node.source) if isinstance(running, Function) else ()
    tests = (each for each in around if isinstance(each, ast.If) and each.lineno < line)
    asking = (each for each in tests if _VERSIONS.search(ast.unparse(each.test)))
    return any(
        line <= (each.end_lineno or 0) or isinstance(each.body[-1], _LEAVES) for each in asking
    )


def _condition(m: Machine, given: Abstract) -> str:
    asked = conditions.test_of(m, given)
    setting = ""
    if defaults.is_option(m, asked):
        setting = " setting=yes"
    elif defaults.is_setting(m, asked):
        setting = " setting=given"
    return "".join(asked.subject.text.split()) + setting


def _enter(m: Machine, context: Object | Instance, call: Call) -> None:
    device, enabled = context.state.get("device"), context.state.get("enabled", True)
    context.state["entered"] = True
    m.autocast.append((device, enabled))
    m.emit(
        tape.Autocast(
            at=_at(context, call),
            device=device,
            enabled=enabled,
            entered=True,
            text=call.frame.text(call.node),
        )
    )


def _leave(m: Machine, context: Object | Instance, call: Call) -> None:
    if m.autocast:
        m.autocast.pop()
    device, enabled = context.state.get("device"), context.state.get("enabled", True)
    m.emit(
        tape.Autocast(
            at=_at(context, call),
            device=device,
            enabled=enabled,
            entered=False,
            text=call.frame.text(call.node),
        )
    )


def _at(context: Object | Instance, call: Call) -> Any:
    return context.at or call.frame.span(call.node)


@method(AUTOCAST, "__with__")
def run_inside(m: Machine, context: Object | Instance, call: Call) -> Abstract:
    """`with autocast(…): …`"""
    inside = m.state.pop("with")
    _enter(m, context, call)
    try:
        inside(context)
    finally:
        _leave(m, context, call)
    return NONE


@method(AUTOCAST, "__enter__")
def enter(m: Machine, context: Object | Instance, call: Call) -> Abstract:
    """The region begins."""
    _enter(m, context, call)
    return context


@method(AUTOCAST, "__exit__")
def leave(m: Machine, context: Object | Instance, call: Call) -> Abstract:
    """The region ends."""
    _leave(m, context, call)
    return FALSE


@method(AUTOCAST, "__call__")
def decorate(m: Machine, context: Object | Instance, call: Call) -> Abstract:
    """`@autocast(…)`: each call of the function runs inside the region."""
    if not call.args or not isinstance(
        call.args[0], Function | Builtin | Bound | Class | Object | Instance
    ):
        return call.args[0] if call.args else NONE
    wrapped = call.args[0]

    def run(machine: Machine, at: Call) -> Abstract:
        machine.emit(
            tape.Fact(at=_at(context, at), what="amp", detail=context.state.get("told", ""))
        )
        _enter(machine, context, at)
        try:
            return machine.call(wrapped, at)
        finally:
            _leave(machine, context, at)

    return Builtin(AUTOCAST, run, wraps=wrapped)


@function(*_CUSTOM)
def custom(m: Machine, call: Call) -> Abstract:
    """`@custom_fwd`, with arguments or without: the function that it decorates."""
    device = (
        "cuda" if call.name.startswith("torch.cuda") else type_of(m, call.kwargs.get("device_type"))
    )
    _tell(m, call, device, None)
    return (
        call.args[0]
        if call.args
        else Builtin(call.name, lambda _, at: at.args[0] if at.args else NONE)
    )


@hears("discarded")
def not_entered(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`torch.autocast("cuda")` as a statement: made, and never entered."""
    modes.tell_not_entered(m, value, _AUTOCASTS, node, frame)


@hears("yielded")
def not_entered_in(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`yield torch.autocast("cuda")` by a context manager: made there, and never entered."""
    modes.tell_not_entered(m, value, _AUTOCASTS, node, frame, is_yielded=True)


# scalers


@function(*_SCALERS)
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
    _tell(m, call, device, given)
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


@typed(*_SCALERS)
def typed_scaler(m: Machine, symbol: Symbol, function_: Function, parameter: Any) -> Abstract:
    """A parameter annotated as a scaler, which can be None."""
    at = function_.node.code.span(function_.node.at)
    known: dict[Symbol, Object] = m.state.setdefault("unknown-scalers", {})
    return known.setdefault(
        symbol, Object(SCALER, at, {"handle": tape.Scaler(symbol.text, at, None), "nullable": True})
    )
