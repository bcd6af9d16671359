"""Activation checkpointing: `torch.utils.checkpoint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, tensors
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.tape import Cut, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_OWN = (
    "use_reentrant",
    "context_fn",
    "determinism_check",
    "debug",
    "preserve_rng_state",
    "early_stop",
)


@function("torch.utils.checkpoint.checkpoint")
def checkpoint(m: Machine, call: Call) -> Abstract:
    """`checkpoint(function, *args)`."""
    called = call.get(0, "function")
    if called is None:
        return NONE
    kwargs = {name: value for name, value in call.kwargs.items() if name not in (*_OWN, "function")}
    args = call.args[1:]
    return checkpointed(
        m,
        lambda: m.call(called, Call(call.name, args, kwargs, call.node, call.frame, call.open)),
        args,
        call,
    )


def is_reentrant(m: Machine, call: Call) -> bool:
    """Whether the reentrant variant is asked for: the default where nothing is given (torch
    2.13).
    """
    given = call.kwargs.get("use_reentrant")
    if given is None:
        return not call.open
    return (isinstance(given, Const) and given.value is None) or conditions.truth(m, given) is True


def checkpointed(
    m: Machine, run: Callable[[], Abstract], args: list[Abstract], call: Call
) -> Abstract:
    """What `run` gives under activation checkpointing with these arguments."""
    reentrant = is_reentrant(m, call)
    before, m.checkpoint = m.checkpoint, "reentrant" if reentrant else "non-reentrant"
    try:
        result = run()
    finally:
        m.checkpoint = before
    return _given_back(m, result, args, call) if reentrant else result


def _given_back(m: Machine, result: Abstract, args: list[Abstract], call: Call) -> Abstract:
    """The reentrant variant looks at the tensors among its arguments alone: none requires grad, no
    result does.
    """
    given = [
        node for arg in args if (node := tensors.node_of(m, arg, call.node, call.frame)) is not None
    ]
    cut = (
        None if any(node.requires_grad for node in given) or not m.grad.enabled else Cut.CHECKPOINT
    )
    return over_tensors(m, result, call, lambda node: _wrapped(m, node, given, cut, call))


def _wrapped(m: Machine, node: Value, given: list[Value], cut: Cut | None, call: Call) -> Value:
    if not node.requires_grad:
        return node
    made = tensors.operation(
        m, "torch.utils.checkpoint.checkpoint", [*given, node], call.node, call.frame, cut=cut
    )
    made.storage, made.dtype, made.checkpointed = tape.Storage(), node.dtype, "reentrant"
    return made


def over_tensors(
    m: Machine, value: Abstract, call: Call, change: Callable[[Value], Value]
) -> Abstract:
    """`value` with `change` done to each tensor in it."""
    match value:
        case Sequence():
            items = [over_tensors(m, item, call, change) for item in value.items]
            return Sequence(value.kind, items, value.open, value.rest, value.consumed, value.at)
        case Mapping():
            held = {key: over_tensors(m, item, call, change) for key, item in value.items.items()}
            return Mapping(held, value.open, value.factory, value.at, value.symbol)
        case Tensor() | Unknown():
            node = tensors.node_of(m, value, call.node, call.frame)
            if node is not None and node.in_torch and (made := change(node)) is not node:
                return Tensor(made)
    return value


@function("torch.utils.checkpoint.checkpoint_sequential")
def checkpoint_sequential(m: Machine, call: Call) -> Abstract:
    """All segments but the last are checkpointed; the last one runs as it is (torch 2.13)."""
    functions, value = call.get(0, "functions"), call.get(2, "input") or NONE
    if functions is None or isinstance(functions, Unknown):
        return m.invoke(functions, [value], call) if functions is not None else NONE
    parts = m.items(functions, call)
    segments = call.constant(1, "segments")
    size = len(parts) // segments if isinstance(segments, int) and segments > 0 else 1
    cut = (
        list(range(0, size * ((segments if isinstance(segments, int) else 2) - 1), size))
        if size
        else []
    )
    for start in cut:
        value = _segment(m, parts[start : start + size], value, call)
    return _run(m, parts[cut[-1] + size if cut else 0 :], value, call)


def _segment(m: Machine, parts: list[Abstract], value: Abstract, call: Call) -> Abstract:
    return checkpointed(m, lambda: _run(m, parts, value, call), [value], call)


def _run(m: Machine, parts: list[Abstract], value: Abstract, call: Call) -> Abstract:
    for part in parts:
        value = m.invoke(part, [value], call)
    return value


@function(
    "torch.utils.checkpoint.set_checkpoint_early_stop",
    "torch.utils.checkpoint.set_checkpoint_debug_enabled",
    "torch.autograd.graph.save_on_cpu",
    "torch.autograd.graph.saved_tensors_hooks",
    "torch.autograd.graph.allow_mutation_on_saved_tensors",
)
def harmless(m: Machine, call: Call) -> Abstract:
    """A context that changes nothing about which gradients there are."""
    return Object("builtins.harmless-context", call.frame.span(call.node))
