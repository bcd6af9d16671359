"""Accelerate: what `prepare` gives is what it was given; `accelerator.backward(loss)` is a sink.

Within `accelerator.accumulate(model)` the prepared optimizer steps and clears only when the
gradients are synchronised, and `backward` divides the loss: a loop that steps and clears on every
micro-batch is right, and is run here as one that does not accumulate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import estimates
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, function, guesses, method, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Function,
    Object,
    Unknown,
)
from gradlint.library.frameworks.fabric import unchanged
from gradlint.library.structure import is_module

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

ACCELERATOR = "accelerate.Accelerator"
_WINDOW = "accelerate.accumulation"  # what `accumulate` gives
_ENTERED = "accelerator-accumulates"
alias("accelerate.accelerator", "accelerate")
_OWN = frozenset(
    (
        "backward",
        "prepare",
        "prepare_model",
        "prepare_optimizer",
        "prepare_data_loader",
        "prepare_scheduler",
        "accumulate",
        "clip_grad_norm_",
        "clip_grad_value_",
        "unwrap_model",
        "gather",
        "gather_for_metrics",
        "autocast",
        "no_sync",
        "sync_gradients",
        "reduce",
        "unscale_gradients",
    )
)
_NUMBERS = ("num_processes", "process_index", "local_process_index", "gradient_accumulation_steps")
_BOOLS = (
    "is_main_process",
    "is_local_main_process",
    "is_last_process",
    "optimizer_step_was_skipped",
    "use_distributed",
)
_OBJECTS = (
    "device",
    "state",
    "distributed_type",
    "project_dir",
    "project_configuration",
    "trackers",
    "gradient_state",
    "mixed_precision",
    "scaler",
)


@function(ACCELERATOR)
def make(m: Machine, call: Call) -> Abstract:
    """`Accelerator(…)`; one that divides losses by the size of a window says so."""
    at = call.frame.span(call.node)
    window = estimates.estimated(m, call.kwargs.get("gradient_accumulation_steps"))
    if window is not None and window > 1:
        m.emit(
            tape.Fact(
                at=at,
                what="accelerator-divides",
                detail=str(window),
                text=call.frame.text(call.node),
            )
        )
    is_setting = not isinstance(call.kwargs.get("gradient_accumulation_steps", NONE), Const)
    state = {
        "divides": window is not None and window > 1,
        "window": "setting" if is_setting else "",
        "unscales again": _unscales_again(call, window),
    }
    return Object(ACCELERATOR, at, state)


def _unscales_again(call: Call, window: int | None) -> str:
    """What says that the gradients of a window can be unscaled more than once: float16, and windows
    of several rounds.

    "" where something says that they cannot.
    """
    precision, rounds = (
        call.kwargs.get("mixed_precision"),
        call.kwargs.get("gradient_accumulation_steps"),
    )
    settings = [isinstance(given, Unknown) for given in (precision, rounds)]
    is_half = settings[0] or (isinstance(precision, Const) and precision.value == "fp16")
    if not is_half or not (settings[1] or (window or 0) > 1):
        return ""
    return "setting" if any(settings) else "written"


@guesses(*_OWN)
def by_name(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """A parameter called `accelerator` is one."""
    if unknown.symbol.text.rpartition(".")[2] != "accelerator":
        return None
    return m.attribute(Object(ACCELERATOR, at.frame.span(at.node)), name, at)


@typed(ACCELERATOR)
def typed_accelerator(
    m: Machine, symbol: Symbol, function_: Function, parameter: object
) -> Abstract:
    """A parameter annotated as an Accelerator."""
    return Object(ACCELERATOR, function_.node.code.span(function_.node.at))


@method(
    ACCELERATOR,
    "prepare",
    "prepare_model",
    "prepare_optimizer",
    "prepare_data_loader",
    "prepare_scheduler",
)
def prepare(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """What it was given, in order."""
    given = [
        value
        for name, value in call.kwargs.items()
        if name in ("model", "optimizer", "data_loader", "scheduler")
    ]
    models = [value for value in (*call.args, *given) if is_module(value)]
    accelerator.state["models"] = (*accelerator.state.get("models", ()), *models)
    return unchanged([*call.args, *given])


@method(ACCELERATOR, "backward")
def backward(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """`accelerator.backward(loss)`."""
    if accelerator.state.get("divides"):
        at = call.frame.span(call.node)
        names = ", ".join(_titles(call.frame, accelerator.state.get("models", ())))
        m.emit(
            tape.Fact(
                at=at,
                what="accelerator-backward",
                detail=names,
                related=((accelerator.at, "made"),),
            )
        )
    from gradlint.library import autograd

    kept = (
        call.constant(None, "retain_graph") is True or call.constant(None, "create_graph") is True
    )
    return autograd.backward(
        m,
        call.get(0, "loss") or NONE,
        call,
        "accelerator.backward",
        retain_graph=kept,
        loss=autograd.handed(call),
    )


def _titles(frame: Frame, models: tuple[Abstract, ...]) -> Iterator[str]:
    """What these are called where a frame sees them: a name, or an attribute of the object whose
    method runs.
    """
    owner, outer = frame.receiver, frame.parent
    named = list(frame.locals.items())
    if owner is not None:
        selves = [name for name, value in named if value is owner]
        named += [
            (f"{name}.{each}", value) for name in selves for each, value in owner.attrs.items()
        ]
    while outer is not None:
        named += outer.locals.items()
        outer = outer.parent
    for model in models:
        yield from itertools.islice((name for name, value in named if value is model), 1)


@method(ACCELERATOR, "clip_grad_norm_", "clip_grad_value_")
def clip_grad(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """`accelerator.clip_grad_norm_(parameters, …)`: it unscales first, whether this round ends a
    window or not.
    """
    from gradlint.library.clipping import clip

    said, is_inside = accelerator.state.get("unscales again"), accelerator.state.get("accumulates")
    if said and is_inside and accelerator.state.get("asked") != m.rounds:
        at = call.frame.span(call.node)
        m.emit(
            tape.Fact(
                at=at, what="accelerator-unscales", detail=said, text=call.frame.text(call.node)
            )
        )
    return clip(m, call.get(0, "parameters"), call)


@method(
    ACCELERATOR,
    "accumulate",
    "no_sync",
    "main_process_first",
    "local_main_process_first",
    "join_uneven_inputs",
    "profile",
    "split_between_processes",
    "maybe_context_parallel",
)
def region(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """A context that changes nothing about which gradients there are."""
    setting = accelerator.state.get("window", "")
    accumulates = accelerator.state.get("divides") or setting
    if call.called in ("accumulate", "no_sync") and accumulates:
        at, made = call.frame.span(call.node), ((accelerator.at, "made"),)
        m.emit(tape.Fact(at=at, what=_ENTERED, detail=setting, related=made))
    if call.called == "accumulate":
        return Object(_WINDOW, call.frame.span(call.node), {"accelerator": accelerator})
    return Object("builtins.harmless-context", call.frame.span(call.node))


@method(_WINDOW, "__enter__")
def enter_window(m: Machine, window: Object, call: Call) -> Abstract:
    """A round of a window begins."""
    window.state["accelerator"].state["accumulates"] = True
    return m.unknown("context", data=True)


@method(_WINDOW, "__exit__")
def leave_window(m: Machine, window: Object, call: Call) -> Abstract:
    """It ends."""
    window.state["accelerator"].state["accumulates"] = False
    return FALSE


@method(ACCELERATOR, "autocast")
def autocast(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """`with accelerator.autocast():`, which is that of the accelerator's own device and
    precision.
    """
    from gradlint.library import amp

    return amp.of_framework(call)


@method(
    ACCELERATOR,
    "unwrap_model",
    "gather",
    "gather_for_metrics",
    "reduce",
    "pad_across_processes",
    "prepare_for_eval",
)
def same(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """The argument itself, which it is in one process."""
    return call.values[0] if call.values else NONE


@attribute(ACCELERATOR, "sync_gradients")
def sync_gradients(m: Machine, accelerator: Object, at: Call) -> Abstract:
    """Whether this micro-batch ends a window: here each one does."""
    accelerator.state["asked"] = m.rounds
    m.emit(tape.Fact(at=at.frame.span(at.node), what="accelerator-synchronizes"))
    return TRUE


def _outside(name: str, kind: str) -> None:
    @attribute(ACCELERATOR, name)
    def handler(m: Machine, accelerator: Object, at: Call) -> Abstract:
        return Unknown(m.session.library_symbol(f"{ACCELERATOR}.{name}"), data=True, type=kind)


for _names, _kind in ((_NUMBERS, "number"), (_BOOLS, "bool"), (_OBJECTS, "object")):
    for _name in _names:
        _outside(_name, _kind)


@method(ACCELERATOR, "*")
def anything_else(m: Machine, accelerator: Object, call: Call) -> Abstract:
    """Logs, trackers, checkpoints, barriers."""
    return m.unknown(call.frame.text(call.node), data=True)


@function(
    "accelerate.utils.set_seed",
    "accelerate.logging.get_logger",
    "accelerate.notebook_launcher",
    "accelerate.debug_launcher",
)
def harmless(m: Machine, call: Call) -> Abstract:
    """What has nothing to do with gradients; a launcher calls its function."""
    if call.name.endswith("launcher") and call.args:
        return m.invoke(call.args[0], [], call)
    return m.unknown(call.frame.text(call.node), data=True, type="object")


@function("accelerate.utils.send_to_device", "accelerate.utils.operations.send_to_device")
def send_to_device(m: Machine, call: Call) -> Abstract:
    """The same tensors elsewhere: what carried no gradient carries none."""
    return call.get(0, "tensor") or NONE
