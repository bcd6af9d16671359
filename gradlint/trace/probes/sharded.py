"""FSDP: what a forward computes with is gathered anew each time, and stands for the parameters of the optimizer."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from gradlint.trace.session import Session

_GATHERS = {
    ("torch.distributed.fsdp._fully_shard._fsdp_param", "FSDPParam", "to_unsharded"): "fully_shard",
    ("torch.distributed.fsdp._flat_param", "FlatParamHandle", "_use_unsharded_views"): "use_orig_params",
}


def install(session: Session) -> None:
    """Wait for the first optimizer: by then the modules are imported that shard its parameters, if any does."""
    session.on_optimizer.append(functools.partial(_watch, session, set()))


def _watch(session: Session, watched: set[str]) -> None:
    for (module, cls, name), way in _GATHERS.items():
        if module in sys.modules and way not in watched:
            watched.add(way)
            told = _parameter if way == "fully_shard" else _views
            owner = getattr(sys.modules[module], cls)
            session.replace(owner, name, functools.partial(_gathering, session, told))


def _gathering(
    session: Session, told: Callable[[Session, Any], None], original: Callable[..., Any]
) -> Callable[..., Any]:
    def gather(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(self, *args, **kwargs)
        if not session.quiet:
            session.guarded(told, session, self)
        return out

    return gather


def _parameter(session: Session, sharded: Any) -> None:
    """The whole parameter is the one of which the optimizer holds a shard."""
    session.memory.share(sharded._unsharded_param, session.memory.held(sharded.sharded_param))


def _views(session: Session, handle: Any) -> None:
    """A flat parameter's views are the parameters that the optimizer holds."""
    flat = handle.flat_param
    for view, parameter in zip(flat._tensors or (), flat._params or (), strict=False):
        if view is not None and parameter.requires_grad:
            session.memory.remember(view, session.leaf(session.memory.held(parameter)))
