"""Ways into torch that are no torch functions: `from_numpy`, `Variable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace import escapes
from gradlint.trace.frames import here
from gradlint.trace.records import Op, serial
from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(
        torch, "from_numpy", lambda original: _convert(session, original, "torch.from_numpy")
    )
    session.add(
        type(torch.autograd.Variable),
        "__call__",
        lambda *args, **kwargs: _variable(session, *args, **kwargs),
    )


def _variable(session: Session, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`Variable(x, requires_grad=True)`: the same numbers without their graph."""
    out = type.__call__(cls, *args, **kwargs)
    if not session.quiet and args and isinstance(args[0], torch.Tensor):
        session.guarded(_wrapped, session, args[0], out)
    return out


def _wrapped(session: Session, given: torch.Tensor, out: torch.Tensor) -> None:
    place = here()
    origin = session.memory.of(given, place)
    kind = Kind.LEAF if out.requires_grad else Kind.OPERATION
    made = Op(
        "torch.autograd.Variable",
        kind,
        (origin,),
        place,
        next(serial),
        session.step,
        out.requires_grad,
    )
    made.dtype = out.dtype
    if origin.requires_grad and not out.requires_grad:
        made.cut = Cut.DETACH
    session.memory.remember(out, made)


def _convert(session: Session, original: Callable[..., Any], title: str) -> Callable[..., Any]:
    def convert(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        if not session.quiet:
            session.guarded(_converted, session, title, args, out)
        return out

    return convert


def _converted(session: Session, title: str, args: tuple[Any, ...], out: torch.Tensor) -> None:
    place = here()
    inputs = escapes.linked(session.memory, args, place)
    kind = Kind.OPERATION if inputs else Kind.DATA
    made = Op(title, kind, inputs, place, next(serial), session.step, False, out.dtype)
    if any(source.requires_grad for source in inputs):
        made.cut = Cut.COPY
    session.memory.remember(out, made)
