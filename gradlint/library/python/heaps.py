"""The modules heapq and bisect: lists that are kept in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import function
from gradlint.interpret.values import NONE, Abstract, Call, Const
from gradlint.library.python.results import argument

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@function(
    "heapq.heappush",
    "heapq.heappush_max",
    "bisect.insort",
    "bisect.insort_left",
    "bisect.insort_right",
)
def push(m: Machine, call: Call) -> Abstract:
    """`heappush(heap, item)`, `insort(items, item)`."""
    return _done(m, "append", call, call.args[1:2])


@function("heapq.heappop", "heapq.heappop_max")
def pop(m: Machine, call: Call) -> Abstract:
    """`heappop(heap)`: an item, the first one."""
    return _done(m, "pop", call, [Const(0)])


@function(
    "heapq.heappushpop", "heapq.heapreplace", "heapq.heappushpop_max", "heapq.heapreplace_max"
)
def replace(m: Machine, call: Call) -> Abstract:
    """`heappushpop(heap, item)`: puts one in and takes one out."""
    push(m, call)
    return pop(m, call)


@function("heapq.heapify", "heapq.heapify_max")
def heapify(m: Machine, call: Call) -> Abstract:
    """`heapify(items)`: the same items in another order."""
    return NONE


def _done(m: Machine, name: str, call: Call, given: list[Abstract]) -> Abstract:
    """What a method of the list makes of it, at the place of this call."""
    return m.invoke(m.attribute(argument(m, call), name, call), given, call)
