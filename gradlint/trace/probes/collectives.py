"""Collectives that cut: what another rank sent carries no gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace.explain import lineage
from gradlint.trace.frames import here, nearest
from gradlint.trace.memory import tensors
from gradlint.trace.records import Op, serial
from gradlint.trace.session import Session

_GATHERS = {
    "all_gather": 0,
    "all_gather_into_tensor": 0,
    "gather": 1,
    "all_to_all": 0,
    "reduce_scatter": 0,
}
_IN_PLACE = ("all_reduce", "broadcast", "reduce", "all_reduce_coalesced")
_OTHERS = ("barrier", "scatter")


def install(session: Session) -> None:
    """Put the probe in its place."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    for module in (dist, dist.distributed_c10d):
        for name in _GATHERS:
            session.replace(module, name, functools.partial(_gather, session, name))
        for name in _IN_PLACE:
            session.replace(module, name, functools.partial(_reduce, session, name))
        for name in (*_GATHERS, *_IN_PLACE, *_OTHERS):
            session.replace(module, name, functools.partial(_counted, session, name))


def _counted(session: Session, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def counted(*args: Any, **kwargs: Any) -> Any:
        called = session.collectives
        if (
            session.quiet or called.inside
        ):  # torch calls some of them again, for the modes that are on
            return original(*args, **kwargs)
        session.guarded(_called, session, name, signature, args, kwargs)
        called.inside = True
        try:
            return original(*args, **kwargs)
        finally:
            called.inside = False

    return counted


def _called(
    session: Session, name: str, signature: inspect.Signature, args: Any, kwargs: Any
) -> None:
    """A collective begins; those of a part of the ranks are their own affair."""
    group = signature.bind(*args, **kwargs).arguments.get("group")
    if group is None or group is torch.distributed.group.WORLD:
        session.collectives.add(name, nearest())


def _gather(session: Session, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def gather(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        if not session.quiet and not session.depth:
            session.guarded(_gathered, session, name, (*args, *kwargs.values()))
        return out

    return gather


def _gathered(session: Session, name: str, args: tuple[Any, ...]) -> None:
    place = here()
    first, second = tensors(args[:1]), tensors(args[1:2])
    into, sent = (second, first) if _GATHERS[name] else (first, second)
    inputs = tuple(session.memory.of(tensor, place) for tensor in sent)
    _exchanged(session, name, inputs)
    for tensor in into:
        made = Op(
            f"torch.distributed.{name}",
            Kind.OPERATION,
            inputs,
            place,
            next(serial),
            session.step,
            tensor.requires_grad,
            tensor.dtype,
        )
        made.cut = Cut.COLLECTIVE if any(op.requires_grad for op in inputs) else None
        session.memory.remember(tensor, made)


def _reduce(session: Session, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(*args: Any, **kwargs: Any) -> Any:
        if not session.quiet and not session.depth:
            for tensor in tensors([*args[:1], *kwargs.values()]):
                session.guarded(_reduced, session, name, tensor)
        return original(*args, **kwargs)

    return reduce


def _reduced(session: Session, name: str, tensor: torch.Tensor) -> None:
    """Data changed in place that autograd knows nothing of; or gradients reduced by hand."""
    op = session.memory.of(tensor, here())
    if tensor.requires_grad and torch.is_grad_enabled():
        session.happened("fact", what="collective", op=op, detail=name)
    else:
        _exchanged(session, name, [op])


def _exchanged(session: Session, name: str, sent: Iterable[Op]) -> None:
    """Gradients are sent, or parameters: what a program does that keeps its ranks alike by
    itself.
    """
    for op in (op for op in sent if not op.requires_grad):
        same = (op, *op.inputs) if op.cut is Cut.DETACH else (op,)
        held = next((each.held for each in same if each.held), None)
        if any(
            "grad" in each.flags or each.name == "torch.autograd.grad" for each in lineage([op])
        ):
            session.happened("fact", what="gradients-reduced", op=op, detail=name)
        elif held is not None:
            session.happened("fact", what="parameters-reduced", held=held, detail=name)
