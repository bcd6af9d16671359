"""DistributedDataParallel: calls of the wrapper, and ways around it."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace.frames import is_users
from gradlint.trace.session import Session

# torch 2.13: "… Parameter indices which did not receive grad for rank 0: 2 3"
_LEFT_OUT = re.compile(r"did not receive grad for rank \d+: ([\d ]+)")


def install(session: Session) -> None:
    """Put the probe in its place."""
    wrapper = torch.nn.parallel.DistributedDataParallel
    if not torch.distributed.is_available():
        return
    from torch._C import _distributed_c10d as distributed_c10d

    session.replace(wrapper, "__init__", lambda original: _init(session, original))
    session.replace(wrapper, "forward", lambda original: _forward(session, original))
    session.add(wrapper, "module", property(lambda self: _module(session, self)))
    session.replace(
        distributed_c10d.Reducer,
        "prepare_for_backward",
        lambda original: _prepare(session, original),
    )
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        session.replace(torch.Tensor, name, lambda original: _hook(session, original))


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not session.quiet:
            session.wrappers.append(weakref.ref(self))
            session.guarded(_told, session, "ddp-made", self)

    return make


def _prepare(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def prepare_for_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not session.quiet:
            session.guarded(_prepared, session, self)
        return original(self, *args, **kwargs)

    return prepare_for_backward


def _prepared(session: Session, reducer: Any) -> None:
    """The next backward exchanges gradients: a forward sees to it, or the program does by hand."""
    wrappers = [wrapper for each in session.wrappers if (wrapper := each()) is not None]
    for wrapper in wrappers:
        if getattr(wrapper, "reducer", None) is reducer:
            _told(session, "ddp-prepared", wrapper)


def _hook(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def register(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not session.quiet and isinstance(self, torch.nn.Parameter):
            session.guarded(_hooked, session, self)
        return original(self, *args, **kwargs)

    return register


def _hooked(session: Session, parameter: torch.nn.Parameter) -> None:
    session.happened(
        "fact", what="parameter-hooked", held=session.memory.held(parameter), detail=""
    )


def _forward(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not session.quiet:
            session.guarded(_told, session, "ddp-forward", self)
        try:
            return original(self, *args, **kwargs)
        except RuntimeError as error:
            session.guarded(_failed, session, self, error)
            raise

    return forward


def _module(session: Session, wrapper: Any) -> Any:
    """`ddp.module`, read by the program."""
    if not session.quiet and is_users(sys._getframe(2).f_code):
        session.guarded(_told, session, "ddp-module", wrapper)
    inner = wrapper.__dict__.get("_modules", {})
    if "module" not in inner:
        raise AttributeError(f"'{type(wrapper).__name__}' object has no attribute 'module'")
    return inner["module"]


def _told(session: Session, what: str, wrapper: Any) -> None:
    inner = wrapper.__dict__.get("_modules", {}).get("module")
    if inner is not None:
        session.happened("fact", what=what, first=session.names.first_parameter(inner), detail="")


def _failed(session: Session, wrapper: Any, error: RuntimeError) -> None:
    """DDP waited for gradients that the backward before this forward did not give."""
    found = _LEFT_OUT.search(str(error))
    if found is None:
        return
    names = [
        name
        for name, parameter in wrapper.module.named_parameters()
        if parameter.requires_grad and name not in wrapper.parameters_to_ignore
    ]
    parameters = dict(wrapper.module.named_parameters())
    left_out = [names[int(index)] for index in found[1].split() if int(index) < len(names)]
    session.left_out += [(name, session.memory.held(parameters[name])) for name in left_out]
