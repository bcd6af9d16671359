"""Grad mode: `no_grad`, `enable_grad`, `inference_mode`, `set_grad_enabled`, as context, decorator
and call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions
from gradlint.interpret.lineage import alias, canonical
from gradlint.interpret.registry import function, method, on
from gradlint.interpret.scopes import GradState
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Lib,
    Object,
)
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.finding import Span
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_CONTEXTS = ("torch.no_grad", "torch.enable_grad", "torch.inference_mode")
MODES = (*_CONTEXTS, "torch.set_grad_enabled")
alias("torch.autograd.no_grad", "torch.no_grad")
alias("torch.autograd.enable_grad", "torch.enable_grad")
alias("torch.autograd.set_grad_enabled", "torch.set_grad_enabled")
alias("torch.autograd.inference_mode", "torch.inference_mode")
alias("torch.autograd.grad_mode", "torch")


@function(*MODES)
def mode(m: Machine, call: Call) -> Abstract:
    """The context manager. `set_grad_enabled(x)` acts at once; as a bare call nothing restores
    it.
    """
    if call.name in ("torch.no_grad", "torch.inference_mode", "torch.enable_grad") and call.args:
        wrapped = call.args[0]
        if isinstance(wrapped, Function | Builtin | Class):
            return decorated(
                m,
                Object(
                    call.name,
                    call.frame.span(call.node),
                    {"enabled": call.name == "torch.enable_grad"},
                ),
                wrapped,
            )
    given = call.get(0, "mode")
    enabled = call.name == "torch.enable_grad"
    if given is not None:
        truth = conditions.truth(m, given)
        if truth is None:
            truth = conditions.decide(m, given, call.node, call.frame)
        enabled = truth if call.name == "torch.set_grad_enabled" else not truth
    made = Object(call.name, call.frame.span(call.node), {"enabled": enabled, "before": m.grad})
    if call.name == "torch.set_grad_enabled":
        m.enter_grad_mode(enabled, made.at, by_call=True)
    return made


def decorated(m: Machine, made: Object, wrapped: Abstract) -> Abstract:
    """A function under the mode; each call of it enters the mode anew, and so does a generator that
    goes on.
    """
    function = wrapped
    while isinstance(function, Builtin) and function.wraps is not None:
        function = function.wraps

    def run(machine: Machine, call: Call) -> Abstract:
        before = machine.grad
        _enter(machine, made)
        try:
            result = machine.call(wrapped, call)
        finally:
            machine.restore_grad_mode(before, made.at)
        if (
            isinstance(result, Object)
            and result.cls == "builtins.generator"
            and result.state["function"] is function
        ):
            result.state.setdefault("around", partial(_go_on, made))
        return result

    return Builtin(made.cls, run, wraps=wrapped)


def _go_on(made: Object, m: Machine, run: Callable[[Visit], None], visit: Visit) -> None:
    """Runs a generator under the mode, which torch leaves where it yields."""
    before = m.grad

    def outside(value: Abstract) -> bool:
        m.restore_grad_mode(before, made.at)
        try:
            return visit(value)
        finally:
            _enter(m, made)

    _enter(m, made)
    try:
        run(outside)
    finally:
        m.restore_grad_mode(before, made.at)


@method(MODES, "__call__")
def decorate(m: Machine, made: Object, call: Call) -> Abstract:
    if made.cls == "torch.set_grad_enabled":
        m.restore_grad_mode(made.state["before"], made.at)
    return decorated(m, made, call.args[0]) if call.args else NONE


def _enter(m: Machine, made: Object, at: Span | None = None, *, by_call: bool = False) -> None:
    inference = made.cls == "torch.inference_mode" and not made.state["enabled"]
    if made.cls == "torch.inference_mode" and made.state["enabled"]:
        return
    m.enter_grad_mode(made.state["enabled"], at or made.at, inference=inference, by_call=by_call)


@method(MODES, "__with__")
def run_inside(m: Machine, made: Object, call: Call) -> Abstract:
    inside = m.state.pop("with")
    before = _before(m, made)
    made.state["entered"] = True
    if made.cls == "torch.set_grad_enabled":
        set_by_context(m, made)
    else:
        _enter(m, made)
    try:
        inside(NONE)
    finally:
        m.restore_grad_mode(before, made.at)
    return NONE


def _before(m: Machine, made: Object) -> GradState:
    """What the end of the context restores: `set_grad_enabled` has remembered it when it was
    called.
    """
    before = made.state["before"] if made.cls == "torch.set_grad_enabled" else m.grad
    assert isinstance(before, GradState)
    return before


def set_by_context(m: Machine, made: Object) -> None:
    """`with torch.set_grad_enabled(…)`, or a stack of contexts: what the call has set, the `with`
    restores.
    """
    m.grad.by_call = False
    for event in reversed(m.tape.events):
        if isinstance(event, tape.GradMode) and event.at == made.at:
            event.by_call = False
            return


@method(MODES, "__enter__")
def enter(m: Machine, made: Object, call: Call) -> Abstract:
    made.state["outer"] = _before(m, made)
    made.state["entered"] = True
    if m.grad.at != made.at:  # `set_grad_enabled(…)` has acted already
        _enter(m, made, _entered_at(made, call), by_call=True)
    return NONE


def _entered_at(made: Object, call: Call) -> Span:
    """Where `context.__enter__()` is called, by hand; or where the context was made, which
    something else enters.
    """
    node = call.node
    if (
        isinstance(node, ir.Call)
        and isinstance(node.function, ir.Attribute)
        and node.function.name == "__enter__"
    ):
        return call.frame.span(node)
    return made.at


@method(MODES, "__exit__")
def leave(m: Machine, made: Object, call: Call) -> Abstract:
    m.restore_grad_mode(made.state.get("outer") or _before(m, made), made.at)
    return FALSE


@function("torch.is_grad_enabled")
def is_grad_enabled(m: Machine, call: Call) -> Abstract:
    return TRUE if m.grad.enabled else FALSE


@function("torch.is_inference_mode_enabled")
def is_inference(m: Machine, call: Call) -> Abstract:
    return TRUE if m.grad.inference else FALSE


@on("discarded")
def not_entered(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`torch.no_grad()` as a statement: made, and never entered."""
    note_not_entered(m, value, _CONTEXTS, node, frame)


@on("yielded")
def not_entered_in(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`yield torch.no_grad()` by a context manager: made there, and never entered."""
    note_not_entered(m, value, _CONTEXTS, node, frame, is_yielded=True)


def note_not_entered(
    m: Machine,
    value: Abstract,
    names: tuple[str, ...],
    node: ir.Node,
    frame: Frame,
    *,
    is_yielded: bool = False,
) -> None:
    """The fact that a context is thrown away unentered, or (`detail` is `not-called`) that its
    class is.
    """
    if isinstance(value, Lib) and canonical(value.name) in names:
        m.emit(
            tape.Fact(
                at=frame.span(node),
                what="context-not-entered",
                detail="not-called",
                text=frame.text(node),
            )
        )
    elif isinstance(value, Object) and value.cls in names and not value.state.get("entered"):
        is_lost_here = isinstance(node, ir.Call) and not is_yielded
        at = frame.span(node) if is_lost_here else value.at
        m.emit(
            tape.Fact(at=at, what="context-not-entered", detail=value.cls, text=frame.text(node))
        )


@function(
    "torch.autograd.set_detect_anomaly",
    "torch.autograd.detect_anomaly",
    "torch.autograd.profiler.profile",
    "torch.profiler.profile",
    "torch.profiler.record_function",
    "torch.backends.cudnn.flags",
    "torch.random.fork_rng",
    "torch.cuda.stream",
)
def harmless(m: Machine, call: Call) -> Abstract:
    return Object("builtins.harmless-context", call.frame.span(call.node))


@method("builtins.harmless-context", "__enter__")
def enter_harmless(m: Machine, made: Object, call: Call) -> Abstract:
    return m.unknown("context", data=True)


@method("builtins.harmless-context", "__exit__")
def leave_harmless(m: Machine, made: Object, call: Call) -> Abstract:
    return Const(False)
