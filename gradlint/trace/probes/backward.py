"""Backward passes: of what, where, and what went wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace import explain, recurrent
from gradlint.trace.capture import is_captured
from gradlint.trace.explain import lineage
from gradlint.trace.frames import here, is_direct, is_within
from gradlint.trace.pause import Differentiation
from gradlint.trace.records import Note, Op, serial
from gradlint.trace.session import Session, Stop
from gradlint.trace.steppers import Stepper

_NO_GRAPH = "does not require grad"  # torch 2.13: "element 0 of tensors does not …"


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(torch.autograd, "backward", lambda original: _backward(session, original))
    session.replace(torch.autograd, "grad", lambda original: _grad(session, original))


def _is_anothers(session: Session) -> bool:
    """Whether it is not the program that asks for gradients: a step or another backward that runs,
    our own code, or torch's compiler, which differentiates what it compiles.
    """
    return bool(session.depth or session.quiet or torch.compiler.is_compiling())


def _backward(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def backward(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        def run() -> Any:
            return original(tensors, grad_tensors, retain_graph, create_graph, *args, **kwargs)

        if _is_anothers(session):
            return run()
        if _is_in_transform():  # it raises
            session.happened("fact", what="autograd-in-transform", detail="backward")
            return run()
        wanted = kwargs.get("inputs", args[1] if len(args) > 1 else None)
        facts = {
            "sink": "backward",
            "retain": bool(create_graph if retain_graph is None else retain_graph),
            "create": create_graph,
        }
        return _run(
            session, run, _listed(tensors), None if wanted is None else _listed(wanted), facts
        )

    return backward


def _grad(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def grad(
        outputs: Any,
        inputs: Any,
        grad_outputs: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if isinstance(
            inputs, Iterator
        ):  # `model.parameters()`, which is used up by who looks at it
            inputs = tuple(inputs)

        def run() -> Any:
            return original(
                outputs, inputs, grad_outputs, retain_graph, create_graph, *args, **kwargs
            )

        if _is_anothers(session):
            return run()
        if _is_functorch(_listed(outputs)):
            return _in_transform(session, run)
        facts = {
            "sink": "autograd.grad",
            "retain": bool(create_graph if retain_graph is None else retain_graph),
            "create": create_graph,
        }
        out = _run(session, run, _listed(outputs), _listed(inputs), facts)
        session.guarded(_remember, session, _listed(out), _listed(outputs) + _listed(inputs))
        return out

    return grad


def _listed(things: Any) -> list[torch.Tensor]:
    if isinstance(things, torch.Tensor):
        return [things]
    return (
        [thing for thing in things or () if isinstance(thing, torch.Tensor)]
        if not isinstance(things, str)
        else []
    )


def _is_functorch(tensors: Sequence[torch.Tensor]) -> bool:
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    return any(map(functorch.is_functorch_wrapped_tensor, tensors))


def _is_in_transform() -> bool:
    """Whether a transform of `torch.func` is running."""
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    return functorch.peek_interpreter_stack() is not None


def _in_transform(session: Session, run: Callable[[], Any]) -> Any:
    """Ask for a gradient of what a transform has wrapped: it may keep no graph of that."""
    try:
        return run()
    except RuntimeError as error:
        if _NO_GRAPH in str(error) or explain.UNUSED in str(error):
            session.happened("fact", what="autograd-in-transform", detail="autograd.grad")
        raise


def _run(
    session: Session,
    run: Callable[[], Any],
    losses: list[torch.Tensor],
    inputs: list[torch.Tensor] | None,
    facts: dict[str, Any],
) -> Any:
    note = session.guarded(_noted, session, losses, inputs, facts)
    try:
        with session.paused() as pause:
            before, session.differentiation = session.differentiation, Differentiation(pause)
            try:
                out = run()
            finally:
                ran, session.differentiation = session.differentiation, before
    except RuntimeError as error:
        if note is not None:
            session.guarded(explain.backward_failed, session, note, losses, error)
            session.guarded(recurrent.backward_failed, session, note, error)
            if inputs and explain.UNUSED in str(error):
                session.guarded(explain.grad_failed, session, note, losses, inputs)
        raise
    if ran.has_stepped:
        session.guarded(session.go_on)
        if session.limit is not None and session.step >= session.limit:
            raise Stop(0)
    return out


def _noted(
    session: Session,
    losses: list[torch.Tensor],
    inputs: list[torch.Tensor] | None,
    facts: dict[str, Any],
) -> Note:
    note = session.happened("backward", direct=is_direct(), **facts)
    memory = session.memory
    note.facts["ops"] = ops = [memory.of(loss, note.place) for loss in losses]
    note.facts["inputs"] = (
        None if inputs is None else [memory.of(tensor, note.place) for tensor in inputs]
    )
    note.facts["scaler"] = _scaler(session, losses, ops)
    is_callers = bool(session.autocasts) and is_within(note.place, session.autocasts[-1])
    note.facts["autocast"] = None if is_callers else session.autocast
    session.names.name_parameters()
    session.attention.seen_sink(note.place)
    session.attention.trained_in_eval()
    session.collectives.add("backward", note.place)
    if session.timeline.wanted and not any(map(is_captured, losses)):
        for loss in losses:
            value = float(loss.detach().sum())
            session.timeline.losses.append((session.step, value))
            session.timeline.look("the loss", value, session.step, note.place)
    for each in session.on_loss:
        each(losses[0], ops[0])
    if session.without_cuda:
        session.without_cuda = False
        session.note("fact", note.place, what="placed", detail=f"cuda {losses[0].device.type}")
    explain.overwritten_unseen(session, note, losses)
    return note


def _scaler(session: Session, losses: list[torch.Tensor], ops: list[Op]) -> Stepper | None:
    """The scaler that scaled what is back-propagated."""
    if not session.scales:
        return None
    for loss in losses:
        scaled = session.scaled.get(id(loss))
        if scaled is not None and isinstance(scaled.number, Stepper):
            return scaled.number
    for op in itertools.islice(lineage(ops), 8):
        if isinstance(op.number, Stepper):
            return op.number
    return None


def _remember(session: Session, gradients: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Gradients come from what they were computed from: with a graph (`create_graph=True`), or cut
    off from it.
    """
    place = here()
    inputs = tuple(session.memory.of(source, place) for source in sources)
    comes = any(source.requires_grad for source in inputs)
    for gradient in gradients:
        op = Op(
            "torch.autograd.grad",
            Kind.OPERATION if comes else Kind.DATA,
            inputs if comes else (),
            place,
            next(serial),
            session.step,
            gradient.requires_grad,
            gradient.dtype,
            cut=Cut.DETACH if comes and not gradient.requires_grad else None,
        )
        session.memory.remember(gradient, op)
