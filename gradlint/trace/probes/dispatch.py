"""How torch takes a mode off while it handles a call of a Python function: here by a class, not by
a generator.

For each such call torch makes a context manager out of a generator, which is most of what a mode
costs there.
"""

from __future__ import annotations

from typing import Any

from torch import overrides

from gradlint.trace.private import pop_mode, push_mode
from gradlint.trace.session import Session

_NAME = "_pop_mode_temporarily"


def install(session: Session) -> None:
    """Put the class in its place, until something is compiled: torch's compiler knows the function
    that stood there.
    """
    if all(callable(getattr(overrides, name, None)) for name in ("_pop_mode", "_push_mode", _NAME)):
        session.attention.before_compiling.append(session.put(overrides, _NAME, _WithoutMode))


class _WithoutMode:
    """The mode on top of the stack is off within."""

    __slots__ = ("_mode",)

    def __enter__(self) -> Any:
        self._mode = pop_mode()
        return self._mode

    def __exit__(self, *_: object) -> None:
        push_mode(self._mode)
