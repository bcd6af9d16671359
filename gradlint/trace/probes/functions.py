"""Custom autograd functions and activation checkpointing: calls that torch functions do not see as
one.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Frame, here, is_users
from gradlint.trace.memory import tensors
from gradlint.trace.private import sequence_number
from gradlint.trace.records import Op, serial
from gradlint.trace.session import Session
from gradlint.trace.source import returning

_CHECKPOINT = "CheckpointFunction"


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(torch.autograd.Function, "apply", lambda original: _apply(session, original))


def _apply(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.depth:
            return original(cls, *args, **kwargs)
        began = len(session.notes)
        before = sequence_number()
        given = session.guarded(_given, session, args)
        off, session.gradmode.off = session.gradmode.off, ()
        try:
            out = original(cls, *args, **kwargs)
        finally:
            session.gradmode.off = off
        session.guarded(_applied, session, cls, args, given or (), out, before, began)
        return out

    return apply


def _given(session: Session, args: tuple[Any, ...]) -> tuple[Op, ...]:
    place = here()
    return tuple(session.memory.of(tensor, place) for tensor in tensors(args))


def _applied(
    session: Session,
    cls: Any,
    args: tuple[Any, ...],
    given: tuple[Op, ...],
    out: Any,
    before: int,
    began: int,
) -> None:
    place = here()
    after = sequence_number()
    _unmarked(session, cls, args, given, out, began)
    for tensor in tensors([out]):
        inner = session.memory.known(tensor)
        inputs = given
        checkpointed = cls.__name__ == _CHECKPOINT
        if tensor.requires_grad and not (session.recording or checkpointed):
            continue  # which of the inputs its backward gives a gradient is not looked at
        if checkpointed and inner is not None:
            inputs += tuple(
                op for op in lineage([inner]) if op.held is not None and op.requires_grad
            )
        title = "torch.utils.checkpoint.checkpoint" if checkpointed else cls.__name__
        made = Op(
            title,
            Kind.OPERATION,
            inputs,
            place,
            next(serial),
            session.step,
            tensor.requires_grad,
            tensor.dtype,
        )
        made.sequence, made.checkpointed = (before, after), "reentrant" if checkpointed else ""
        if not tensor.requires_grad and any(source.requires_grad for source in inputs):
            made.cut = Cut.CHECKPOINT if checkpointed else Cut.NON_DIFFERENTIABLE
            if not torch.is_grad_enabled():
                made.cut, made.cut_place = Cut.GRAD_MODE, session.gradmode.off
        session.memory.remember(tensor, made)
        if session.recording and tensor.requires_grad and not checkpointed:
            _await_gradients(session, cls, args, made, tensor.grad_fn)


def _await_gradients(
    session: Session, cls: Any, args: tuple[Any, ...], made: Op, node: Any
) -> None:
    """Looks, in the backward, which inputs of a function get a gradient, or have one written by
    hand.
    """
    given = [(index, each) for index, each in enumerate(args) if isinstance(each, torch.Tensor)]
    inputs = [(index, session.memory.of(each, ())) for index, each in given]
    held = [weakref.ref(each) for _, each in given]
    before: list[object] = []

    def begin(_: object) -> None:
        before[:] = map(_gradient_of, held)

    def see(gradients: tuple[Any, ...], _: object) -> None:
        if before == [*map(_gradient_of, held)]:  # none was written by hand
            session.guarded(_came_back, session, cls, made, inputs, gradients)

    if getattr(node, "_forward_cls", None) is cls:
        node.register_prehook(begin)
        node.register_hook(see)


def _gradient_of(held: weakref.ref[torch.Tensor]) -> tuple[int, int] | None:
    """Which gradient a leaf has, and how often that was written; None without one."""
    leaf = held()
    found = leaf.grad if leaf is not None and leaf.is_leaf else None
    return None if found is None else (id(found), found._version)


def _came_back(
    session: Session,
    cls: Any,
    made: Op,
    inputs: list[tuple[int, Op]],
    gradients: tuple[torch.Tensor | None, ...],
) -> None:
    """The inputs that `backward` gives None for get no gradient this way, whoever asked for all of
    them.
    """
    sink = next((note for note in reversed(session.notes) if note.kind == "backward"), None)
    if sink is None or sink.facts["inputs"] is not None or len(gradients) != len(inputs):
        return
    reached = {
        id(op) for (_, op), gradient in zip(inputs, gradients, strict=True) if gradient is not None
    }
    stopped: dict[int, Op] = {}
    for number, op in inputs:
        if op.requires_grad and id(op) not in reached and id(op) not in stopped:
            stopped[id(op)] = _stopped(session, cls, number, op, made)
    made.inputs = tuple(stopped.get(id(op), op) for op in made.inputs)


def _stopped(session: Session, cls: Any, number: int, op: Op, made: Op) -> Op:
    """What stands between an input and the function whose `backward` returns None for it."""
    code = getattr(inspect.unwrap(cls.backward), "__code__", None)
    place = made.place
    if code is not None and is_users(code):
        place = (Frame(0, code, returning(code, number)), *place)
    stopped = Op(
        f"{cls.__name__}.backward",
        Kind.OPERATION,
        (op,),
        place,
        next(serial),
        made.step,
        True,
        op.dtype,
    )
    stopped.flags = frozenset({"zero-gradient", "returned"})
    return stopped


def _unmarked(
    session: Session, cls: Any, args: tuple[Any, ...], given: tuple[Op, ...], out: Any, began: int
) -> None:
    """`forward` wrote an input in place; with `ctx.mark_dirty` torch returns that very tensor."""
    returned = tensors([out])
    inputs = tensors(args)
    for note in list(session.notes[began:]):
        if note.kind != "inplace" or cls.__name__ == _CHECKPOINT:
            continue
        cell = note.facts["after"].cell
        for tensor, op in zip(inputs, given, strict=False):
            if session.memory.cell(tensor) is not cell:
                continue
            dirty = any(each is tensor for each in returned)
            aliases = any(session.memory.cell(each) is cell for each in returned)
            if not dirty and aliases and any(each.requires_grad for each in returned):
                after = note.facts["after"]
                session.note(
                    "fact",
                    note.place,
                    what="input-written",
                    op=after,
                    detail=note.facts["written"].name,
                )
            session.memory.remember(tensor, op)
