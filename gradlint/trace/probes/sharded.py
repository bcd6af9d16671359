"""FSDP: what a forward computes with is gathered anew each time, and stands for the parameters of
the optimizer.

Only private parts of torch tell which parameter that is. Where they are others, the report says so.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from gradlint.trace.frames import nearest
from gradlint.trace.session import Session

_PUBLIC = "torch.distributed.fsdp"
# by the public name of a way to shard: the method that gathers, in each module that torch had it in
_GATHERS = {
    "fully_shard": (
        ("torch.distributed.fsdp._fully_shard._fsdp_param", "FSDPParam", "to_unsharded"),
        # before 2.6
        ("torch.distributed._composable.fsdp._fsdp_param", "FSDPParam", "to_unsharded"),
    ),
    "FullyShardedDataParallel": (
        ("torch.distributed.fsdp._flat_param", "FlatParamHandle", "_use_unsharded_views"),
    ),
}  # fmt: skip


def install(session: Session) -> None:
    """Wait for the first optimizer: by then the modules are imported that shard its parameters, if
    any does.
    """
    session.on_optimizer.append(functools.partial(_watch, session, set()))


def _watch(session: Session, watched: set[str]) -> None:
    for way, gathers in _GATHERS.items():
        loaded = [gather for gather in gathers if gather[0] in sys.modules]
        if way in watched or not (loaded or hasattr(sys.modules.get(_PUBLIC), way)):
            continue
        watched.add(way)
        told = _parameter if way == "fully_shard" else _views
        for module, cls, name in loaded:
            owner = getattr(sys.modules[module], cls, None)
            if owner is not None and name in vars(owner):
                session.replace(owner, name, functools.partial(_gathering, session, way, told))
                if way == "fully_shard":
                    session.replace(
                        owner, "__init__", functools.partial(_gathering, session, way, _made)
                    )
                break
        else:
            _lost(session, way)


def _lost(session: Session, way: str) -> None:
    session.blind[
        f"this torch does not show what {way} gathers: which of its parameters a cut starves "
        "is not told"
    ] = None
    session.happened("fact", what="hidden-shards", detail=way)


def _gathering(
    session: Session, way: str, told: Callable[[Session, Any], None], original: Callable[..., Any]
) -> Callable[..., Any]:
    def gather(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(self, *args, **kwargs)
        if not session.quiet:
            session.guarded(tell, self)
        return out

    def tell(gathered: Any) -> None:
        try:
            told(session, gathered)
        except AttributeError:
            _lost(session, way)

    return gather


def _made(session: Session, sharded: Any) -> None:
    """The shard takes the place of the parameter in its module: an optimizer that was made before
    holds the other.
    """
    session.memory.held(sharded.sharded_param, nearest())


def _parameter(session: Session, sharded: Any) -> None:
    """The whole parameter is the one of which the optimizer holds a shard."""
    session.memory.share(sharded._unsharded_param, session.memory.held(sharded.sharded_param))


def _views(session: Session, handle: Any) -> None:
    """A flat parameter's views are the parameters that the optimizer holds."""
    flat = handle.flat_param
    for view, parameter in zip(flat._tensors or (), flat._params or (), strict=False):
        if view is not None and parameter.requires_grad:
            session.memory.remember(view, session.leaf(session.memory.held(parameter)))
