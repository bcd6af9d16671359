"""What an object is made of: its modules, and the tensors put away in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint.interpret.values import (
    Abstract,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def state(m: Machine, owner: Abstract) -> list[object]:
    """What an object is made of, down to the nodes of its tensors: the same things until something
    in it is written.

    It holds them, so that nothing new can come to stand in the place of one that was let go.
    """
    found: list[object] = []
    seen: set[int] = set()
    pending = [owner]
    for held in pending:
        if id(held) in seen:
            continue
        seen.add(id(held))
        found.append(held)
        if isinstance(held, Unknown):
            held = m.tensors.get(held.symbol, held)
        if isinstance(held, Tensor):
            found.append(held.node)
        elif isinstance(held, Instance | Object | Mapping | Sequence):
            pending += _inside(held)
    return found


def modules(owner: Abstract) -> list[Instance]:
    """An object that is driven, and those in it."""
    found: list[Instance] = []
    pending, seen = [owner], {id(owner)}
    for held in pending:
        if isinstance(held, Instance):
            found.append(held)
        inner = _inside(held) if isinstance(held, Instance | Object | Mapping | Sequence) else ()
        pending += [each for each in inner if id(each) not in seen]
        seen.update(map(id, inner))
    return found


def computed(owner: Abstract) -> list[Value]:
    """What was computed and is put away in the object that is driven, or in a module of it."""
    found: list[Value] = []
    seen: set[int] = set()
    pending = [owner]
    for held in pending:
        if id(held) in seen or not isinstance(
            held, Instance | Object | Mapping | Sequence | Tensor
        ):
            continue
        seen.add(id(held))
        if isinstance(held, Tensor):
            found += [held.node] if held.node.records else []
        else:
            pending += _inside(held)
    return found


def _inside(held: Instance | Object | Mapping | Sequence) -> Iterable[Abstract]:
    if isinstance(held, Sequence):
        return held.items
    if isinstance(held, Mapping):
        return held.items.values()
    own = held.state.get("items")
    return [*held.attrs.values(), *([own] if isinstance(own, Abstract) else ())]
