"""Modes: inference mode, autocast, train and eval."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.frames import here, is_users
from gradlint.trace.gradmode import switch
from gradlint.trace.session import Session

_DIFFERS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.RNNBase,
)


def install(session: Session) -> None:
    """Put the probe in its place."""
    autocast = torch.amp.autocast_mode.autocast
    session.replace(autocast, "__init__", lambda original: _made(session, original))
    session.replace(torch.nn.Module, "train", lambda original: _train(session, original))
    for manager in (torch.no_grad, torch.inference_mode):
        session.replace(manager, "__init__", lambda original: _manager(session, original))
    for name, enters in (("__enter__", True), ("__exit__", False)):
        session.replace(torch.inference_mode, name, lambda original: _inference(session, original))
        session.replace(autocast, name, functools.partial(_autocast, session, enters))


def _manager(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not session.quiet:
            session.guarded(session.gradmode.manager_made, self)

    return make


def _inference(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def switch(self: Any, *args: Any) -> Any:
        had = torch.is_grad_enabled()
        out = original(self, *args)
        if not session.quiet and torch.is_grad_enabled() != had:
            session.guarded(session.gradmode.changed, not had, self, True)
        return out

    return switch


def _autocast(session: Session, enters: bool, original: Callable[..., Any]) -> Callable[..., Any]:
    def switch(self: Any, *args: Any) -> Any:
        out = original(self, *args)
        if not session.quiet:
            session.guarded(_switched, session, self, enters)
        return out

    return switch


def _made(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, device_type: Any, *args: Any, **kwargs: Any) -> None:
        original(self, device_type, *args, **kwargs)
        wanted = kwargs.get("enabled", args[1] if len(args) > 1 else True)
        if not session.quiet and not session.depth:
            session.guarded(session.gradmode.manager_made, self)
            session.guarded(amp_made, session, "torch.autocast", str(device_type), bool(wanted))

    return make


def amp_made(session: Session, name: str, device: str, wanted: bool) -> None:
    """An autocast or a scaler was made; where its device is not there, the program runs on
    another.
    """
    enabled = "true" if wanted else "false"
    session.happened("fact", what="amp", detail=f"{name} device={device} enabled={enabled}")
    if wanted and device == "cuda" and not torch.cuda.is_available():
        session.without_cuda = True


def _switched(session: Session, autocast: Any, enters: bool) -> None:
    device, around = str(autocast.device), session.autocast
    is_off = enters and device == "cuda" and not autocast._enabled
    if is_off and around not in (None, device) and not torch.cuda.is_available():
        session.without_cuda = True  # the one around it, of another device, stays on
    session.autocast = next(
        (each for each in (device, "cuda", "cpu") if torch.is_autocast_enabled(each)), None
    )
    if enters:
        session.autocasts.append(here())
    elif session.autocasts:
        session.autocasts.pop()
    place = session.gradmode.entered_by(autocast, switch())
    session.note("autocast", place, device=device, enabled=bool(autocast._enabled), entered=enters)


def _train(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def train(self: Any, mode: bool = True) -> Any:
        if session.quiet or session.in_train:
            return original(self, mode)
        awake = [] if mode else session.guarded(_awake, self) or []
        session.in_train = True
        try:
            return original(self, mode)
        finally:
            session.in_train = False
            session.guarded(_mode_set, session, self, mode, awake)

    return train


def _asks(module: torch.nn.Module) -> bool:
    """Whether a module of the program's asks in its `forward` whether it is trained."""
    code = getattr(type(module).forward, "__code__", None)
    return code is not None and is_users(code) and "training" in code.co_names


def _awake(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The parts of a module that compute something else in train mode, and are in it."""
    return [part for part in module.modules() if part.training and _differs(part)]


def _differs(part: torch.nn.Module) -> bool:
    if isinstance(part, torch.nn.modules.dropout._DropoutNd):
        return part.p > 0
    return isinstance(part, _DIFFERS) or _asks(part)


def _mode_set(
    session: Session, module: torch.nn.Module, mode: bool, awake: list[torch.nn.Module]
) -> None:
    """A module, with its parts, was put into train mode or eval mode."""
    parts = [part for part in module.modules() if _differs(part)]
    if (
        parts
        and not mode
        and not awake
        and all(session.attention.asleep_by(part) is module for part in parts)
    ):
        return  # `model.train(was_training)` in a model that an `eval()` has left in eval mode
    session.happened("train", module=session.names.part(module), training=mode, matters=bool(parts))
    for part in parts:
        session.attention.asleep.pop(part, None)
    session.attention.asleep.update((part, weakref.ref(module)) for part in awake)
    if parts and not mode:
        session.attention.evaluated(module)
