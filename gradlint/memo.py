"""What was worked out about parts of programs, for as long as these are looked at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

# characters of the files that a batch leaves to those that come after: some 150 MiB of trees
MOST = 4_000_000
_Function = TypeVar("_Function", bound=Callable[..., Any])
_kept: list[Callable[[], None]] = []
_made: list[tuple[dict[tuple[object, str], Any], Callable[[Any], object]]] = []


def of_programs(function: _Function) -> _Function:
    """Has `function` answer the same question about trees and nodes once, until all are forgotten.

    A cache with a bound would hold on to the trees that its last questions were about, thousands of
    them in a long run.
    """
    cached = functools.cache(function)
    _kept.append(cached.cache_clear)
    return cast("_Function", cached)


def of_texts(function: _Function, leave: Callable[[Any], object] = lambda _: None) -> _Function:
    """Has `function` answer once for the same path and text, in one batch and in those that come
    soon after.

    `leave` takes apart the circles of an answer that is let go of.
    """
    made: dict[tuple[object, str], Any] = {}
    _made.append((made, leave))

    def asked(path: object, text: str, *more: object) -> object:
        key = (path, text)
        answer = made.pop(key) if key in made else function(path, text, *more)
        made[key] = answer  # as the last that was asked for
        return answer

    return cast("_Function", functools.wraps(function)(asked))


def forget(most: int = 0) -> None:
    """Lets go of every answer, and so of the programs that they are about.

    What was made of the texts asked for last stays, as long as these have no more than so many
    characters.
    """
    for clear in _kept:
        clear()
    for made, leave in _made:
        size = sum(len(text) for _, text in made)
        while size > most:
            size -= len((oldest := next(iter(made)))[1])
            leave(made.pop(oldest))
