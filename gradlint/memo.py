"""What was worked out about parts of programs, for as long as these are looked at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])
_kept: list[Callable[[], None]] = []


def of_programs(function: _Function) -> _Function:
    """Has `function` answer the same question about trees and nodes once, until all are forgotten.

    A cache with a bound would hold on to the trees that its last questions were about, thousands of them in a long run.
    """
    cached = functools.cache(function)
    _kept.append(cached.cache_clear)
    return cast("_Function", cached)


def forget() -> None:
    """Lets go of every answer, and so of the programs that they are about."""
    for clear in _kept:
        clear()
