"""Mixed precision: `autocast` in all its names, as context, decorator and `custom_fwd`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlint import memo, tape
from gradlint.finding import Span
from gradlint.interpret import conditions, defaults
from gradlint.interpret.lineage import alias, is_a, parent
from gradlint.interpret.registry import function, method, on
from gradlint.interpret.values import (
    FALSE,
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Function,
    Instance,
    Object,
)
from gradlint.ir import nodes as ir
from gradlint.library import modes
from gradlint.library.devices import type_of
from gradlint.source import sides
from gradlint.source.imported import dotted, imported

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_OLD = ("torch.cuda.amp", "torch.cpu.amp")  # where the names of torch before 2.4 are
_NEW = ("torch", "torch.amp")
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
SCALERS = (
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
for _name in SCALERS[1:]:
    parent(_name, SCALER)


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
    state["told"] = note_precision(m, call, state["device"], given)


def note_precision(m: Machine, call: Call, device: str | None, given: Abstract | None) -> str:
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
    at, text = written.frame.span(written.node), written.frame.text(written.node)
    detail += " chosen=yes" if _is_beside_the_new(m, call.name, at) else ""
    m.emit(tape.Fact(at=at, what="amp", detail=detail, text=text))
    return detail


def _is_beside_the_new(m: Machine, name: str, at: Span) -> bool:
    """Whether an old name is used where a branch of its file has the new one on its other side: the
    program takes the one that the installed torch has.

    if TORCH_2_4:
        return torch.amp.autocast("cuda")
    return torch.cuda.amp.autocast()
    """
    home, _, kind = name.rpartition(".")
    source = m.session.program.source(Path(at.path)) if home in _OLD else None
    if source is None:
        return False
    return any(
        kind in kinds
        and any(_holds(node, at.line) for node in own)
        and not any(_holds(node, at.line) for node in other)
        for kinds, own, other in _beside_the_new(source.tree)
    )


def _holds(node: ast.AST, line: int) -> bool:
    if isinstance(node, ast.Module):
        return True
    return isinstance(node, ast.stmt | ast.expr) and node.lineno <= line <= (node.end_lineno or 0)


_Code = tuple[ast.AST, ...]


@memo.of_programs
def _beside_the_new(tree: ast.Module) -> list[tuple[set[str], _Code, _Code]]:
    """Of each side of a branch that uses new names: which, the code that is run instead, and the
    side.
    """
    known = imported(tree)
    found = []
    for branch in sides.of(tree).values():
        for holds, other in ((False, branch.then), (True, branch.otherwise)):
            names = (
                dotted(node, known).rpartition(".") for side in other for node in ast.walk(side)
            )
            if kinds := {kind for home, _, kind in names if home in _NEW}:
                found.append((kinds, branch.of(holds), other))
    return found


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
    note_precision(m, call, device, None)
    return (
        call.args[0]
        if call.args
        else Builtin(call.name, lambda _, at: at.args[0] if at.args else NONE)
    )


@on("discarded")
def not_entered(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`torch.autocast("cuda")` as a statement: made, and never entered."""
    modes.note_not_entered(m, value, _AUTOCASTS, node, frame)


@on("yielded")
def not_entered_in(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`yield torch.autocast("cuda")` by a context manager: made there, and never entered."""
    modes.note_not_entered(m, value, _AUTOCASTS, node, frame, is_yielded=True)
