"""Answers about paths that several rules ask for: each is worked out once, and lives as long as the
paths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, cast

from gradlint.paths import Paths
from gradlint.tape import Tape

_Answer = TypeVar("_Answer")


def of_tape(function: Callable[[Tape], _Answer]) -> Callable[[Tape], _Answer]:
    """Has `function` work out its answer about a tape once."""

    @functools.wraps(function)
    def ask(tape: Tape) -> _Answer:
        if function not in tape.answers:
            tape.answers[function] = function(tape)
        return cast("_Answer", tape.answers[function])

    return ask


def of_paths(function: Callable[[Paths], _Answer]) -> Callable[[Paths], _Answer]:
    """Has `function` work out its answer about the paths of an entry once."""

    @functools.wraps(function)
    def ask(paths: Paths) -> _Answer:
        if function not in paths.answers:
            paths.answers[function] = function(paths)
        return cast("_Answer", paths.answers[function])

    return ask
