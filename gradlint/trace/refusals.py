"""What torch refuses in the step of an optimizer that the program writes itself."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.trace.frames import is_users
from gradlint.trace.operations import spec

if TYPE_CHECKING:
    from gradlint.trace.session import Session


def refusals(session: Session, step: Callable[..., Any]) -> contextlib.AbstractContextManager[Any]:
    """Watches a step for calls that raise, where the program defines it: its optimizer writes to
    leaves with grad mode on. torch's own steps are not watched.
    """
    code = getattr(inspect.unwrap(step), "__code__", None)
    if code is None or not is_users(code) or torch.compiler.is_compiling():
        return contextlib.nullcontext()
    return _Refusals(session)


class _Refusals(TorchFunctionMode):
    """Writes down calls that raise, and nothing else."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            writes = self.session.recorder.writes
            self.session.guarded(writes.refused, spec(func), args, kwargs, error)
            raise
