"""GradScaler: scaling, unscaling, stepping, updating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradlint.tape import Kind
from gradlint.trace.frames import here
from gradlint.trace.memory import tensors
from gradlint.trace.probes.modes import amp_made
from gradlint.trace.probes.optimizer import held
from gradlint.trace.records import Op, serial
from gradlint.trace.session import Session, Stop
from gradlint.trace.steppers import Stepper

SCALE = "GradScaler.scale"


def install(session: Session) -> None:
    """Put the probe in its place."""
    scaler = torch.amp.grad_scaler.GradScaler
    session.replace(scaler, "__init__", lambda original: _init(session, original))
    session.replace(scaler, "scale", lambda original: _scale(session, original))
    session.replace(scaler, "unscale_", lambda original: _unscale(session, original))
    session.replace(scaler, "step", lambda original: _step(session, original))
    session.replace(scaler, "get_scale", lambda original: _read(session, original))
    session.replace(scaler, "update", lambda original: _update(session, original))


def _record(session: Session, scaler: Any) -> Stepper:
    stepper = session.stepper(scaler, "GradScaler")
    stepper.enabled, stepper.device = scaler.is_enabled(), scaler._device
    return stepper


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session.guarded(_made, session, self, kwargs.get("enabled", True))

    return make


def _made(session: Session, scaler: Any, wanted: Any) -> None:
    stepper = _record(session, scaler)
    amp_made(session, "torch.amp.GradScaler", stepper.device, bool(wanted))


def _scale(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def scale(self: Any, outputs: Any) -> Any:
        if session.quiet or session.depth:
            return original(self, outputs)
        with session.paused():
            out = original(self, outputs)
        session.guarded(_scaled, session, self, outputs, out)
        return out

    return scale


def _scaled(session: Session, scaler: Any, outputs: Any, out: Any) -> None:
    place = here()
    session.scales = True
    for loss, scaled in zip(tensors([outputs]), tensors([out]), strict=False):
        source = session.memory.of(loss, place)
        made = Op(
            SCALE,
            Kind.OPERATION,
            (source,),
            place,
            next(serial),
            session.step,
            scaled.requires_grad,
            scaled.dtype,
        )
        made.number, made.cut = _record(session, scaler), source.cut
        if scaled is not loss:
            session.memory.remember(scaled, made)
        session.scaled[id(scaled)] = made


def _unscale(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def unscale_(self: Any, optimizer: Any) -> Any:
        if session.quiet or session.depth:
            return original(self, optimizer)
        session.guarded(_unscaled, session, self, optimizer)
        with session.paused():
            return original(self, optimizer)

    return unscale_


def _unscaled(session: Session, scaler: Any, optimizer: Any) -> None:
    session.happened("unscale", scaler=_record(session, scaler), stepper=held(session, optimizer))


def _step(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.scaler is not None:
            return original(self, optimizer, *args, **kwargs)
        session.scaler, session.scaler_stepped = session.guarded(_record, session, self), False
        try:
            out = original(self, optimizer, *args, **kwargs)
        except (RuntimeError, ValueError, AssertionError):
            session.guarded(_not_taken, session, self, optimizer)
            raise
        finally:
            stepped, session.scaler = session.scaler_stepped, None
        if not stepped:
            session.guarded(_not_taken, session, self, optimizer)
        if session.limit is not None and session.step >= session.limit:
            raise Stop(0)
        return out

    return step


def _not_taken(session: Session, scaler: Any, optimizer: Any) -> None:
    """The scaler refused the step, or left it out because the gradients were not finite."""
    stepper = held(session, optimizer)
    session.happened(
        "step", stepper=stepper, held=stepper.held, scaler=_record(session, scaler), closure=False
    )


def _read(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def get_scale(self: Any) -> Any:
        if not session.quiet and not session.depth:
            session.guarded(_scale_read, session)
        return original(self)

    return get_scale


def _scale_read(session: Session) -> None:
    session.happened("fact", what="scale-read", detail="")


def _update(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.depth:
            return original(self, *args, **kwargs)
        session.guarded(_updated, session, self)
        with session.paused():
            return original(self, *args, **kwargs)

    return update


def _updated(session: Session, scaler: Any) -> None:
    session.happened("update", scaler=_record(session, scaler))
