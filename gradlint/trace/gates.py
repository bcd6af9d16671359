"""Gates: the guards on the way to a step, and which of them failed in an iteration without one."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from gradlint.finding import Span
from gradlint.trace.branches import Branch, counts

Condition: TypeAlias = tuple[Branch, tuple[Span, ...]]  # with the calls around it
Way: TypeAlias = tuple[Condition, ...]  # outermost first


def asked(way: Way, taken: AbstractSet[Branch]) -> Iterator[tuple[Condition, bool]]:
    """The guards on the way that an iteration evaluated, and whether each held.

    If the step did not execute, exactly one guard on its control-dependence chain failed, and the
    guards behind it were not evaluated. Of those that may be the one, it is the one that counts
    best: `i % n == 0`, and not `loss.isfinite()`.
    """
    shut = [branch for branch, _ in way if branch not in taken]
    gate = max(reversed(shut), key=counts, default=None)
    for branch, calls in way:
        yield (branch, calls), branch is not gate
        if branch is gate:
            return
