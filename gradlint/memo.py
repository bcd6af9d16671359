"""What was worked out about parts of programs, for as long as these are looked at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

MOST = 3_000_000  # characters of the files that batches read and leave to those that come after: some 100 MiB of trees
_Function = TypeVar("_Function", bound=Callable[..., Any])
_kept: list[Callable[[], None]] = []
_sizes: list[int] = []


def of_programs(function: _Function) -> _Function:
    """Has `function` answer the same question about trees and nodes once, until all are forgotten.

    A cache with a bound would hold on to the trees that its last questions were about, thousands of them in a long run.
    """
    cached = functools.cache(function)
    _kept.append(cached.cache_clear)
    return cast("_Function", cached)


def reads(size: int) -> None:
    """Counts a file of so many characters among those that answers hold on to."""
    _sizes.append(size)


def forget(most: int = 0) -> None:
    """Lets go of every answer, and so of the programs that they are about, where these have more characters."""
    if not most or sum(_sizes) > most:
        _sizes.clear()
        for clear in _kept:
            clear()
