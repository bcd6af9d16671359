"""Hooks that see gradients on their way: what a backward computed may be of use although no step
finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradlint.trace import source
from gradlint.trace.session import Session

_OF_MODULES = (
    "register_full_backward_pre_hook",
    "register_full_backward_hook",
    "register_backward_hook",
)
_OF_ALL = (
    "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_backward_hook",
)


def install(session: Session) -> None:
    """Put the probe in its place."""
    for owner, names in ((torch.nn.Module, _OF_MODULES), (torch.nn.modules.module, _OF_ALL)):
        for name in names:
            session.replace(owner, name, lambda original: _register(session, original))
    session.on_end.append(lambda: _read_hooks(session))
    session.replace(
        torch.autograd.graph,
        "register_multi_grad_hook",
        lambda original: _register(session, original),
    )


def _read_hooks(session: Session) -> None:
    """At the end: what the hooks of accumulated gradients do with the parameter that they are
    given.
    """
    if not session.hooks:
        return
    from gradlint.library.hooks import mistaken

    for code, (when, place, op, given) in session.hooks.items():
        body = source.function(code)
        for node, how in mistaken(body, given) if body is not None else ():
            at = source.span_of(code.co_filename, source.extent(node))
            session.noted_then(
                when, "fact", place, what="parameter-for-gradient", op=op, at=at, detail=how
            )


def _register(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def register(*args: Any, **kwargs: Any) -> Any:
        if not session.quiet:
            session.guarded(session.tapped)
        return original(*args, **kwargs)

    return register
