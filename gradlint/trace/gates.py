"""Gates: the conditions on the way to a step, and which of them a round failed that did not come to
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from gradlint.finding import Span
from gradlint.trace.source import Branch, counts

Condition: TypeAlias = tuple[Branch, tuple[Span, ...]]  # with the calls around it
Way: TypeAlias = tuple[Condition, ...]  # outermost first


def asked(way: Way, taken: AbstractSet[Branch]) -> Iterator[tuple[Condition, bool]]:
    """The conditions on the way that a round asked, and whether it went on there.

    Where it did not come to the step, one of them was in its way, and what lies behind that one was
    not asked. Of those that no other step shows to be passed it is the one that counts best:
    `i % n == 0`, and not `loss.isfinite()`.
    """
    shut = [branch for branch, _ in way if branch not in taken]
    gate = max(reversed(shut), key=counts, default=None)
    for branch, calls in way:
        yield (branch, calls), branch is not gate
        if branch is gate:
            return
