"""What modules keep between calls, once code out of view has been given them.

    functional.reset_net(net)

Whether what `net` computed last is still there, nobody in view can say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint.interpret.registry import on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Call,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.escape import receiver

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MAX_DEPTH = 2  # of containers in what a module keeps


@on("unknown call")
def changed(m: Machine, symbol: Symbol, call: Call) -> None:
    """Code out of view is called: it can replace what the modules that it is given keep of earlier
    calls.
    """
    seen: set[int] = set()
    for value in [*call.values, *receiver(m, symbol)]:
        for module in _modules(m, value, seen):
            for name, kept in module.attrs.items():
                module.attrs[name] = _another(m, kept, name)


def _modules(m: Machine, given: Abstract, seen: set[int]) -> Iterator[Instance | Object]:
    """The modules that are given, in containers too, and those that they hold."""
    if id(given) in seen:
        return
    seen.add(id(given))
    match given:
        case Bound():
            yield from _modules(m, given.receiver, seen)
        case Sequence():
            for item in given.items:
                yield from _modules(m, item, seen)
        case Mapping():
            for item in given.items.values():
                yield from _modules(m, item, seen)
        case Instance() | Object() if _is_module(m, given):
            yield given
            for part in [*given.attrs.values(), given.state.get("items", NONE)]:
                yield from _modules(m, part, seen)


def _is_module(m: Machine, made: Instance | Object) -> bool:
    """Whether an object is a module, or looks like one whose base class is out of view."""
    if made.module is not None:
        return True
    return isinstance(made, Instance) and m.session.member_of(made.cls, "forward") is not None


def _another(m: Machine, kept: Abstract, name: str, depth: int = 0) -> Abstract:
    """Something unknown in the place of what carries a gradient, in containers too; anything else
    as it is.
    """
    match kept:
        case Tensor() if kept.node.records:
            return m.unknown(name)
        case Unknown() if _is_computed(m, kept.symbol):
            return m.unknown(name)
        case Sequence() if depth < MAX_DEPTH:
            items = [_another(m, item, name, depth + 1) for item in kept.items]
            if kept.kind == "tuple":
                return Sequence("tuple", items, kept.open, kept.rest, at=kept.at)
            kept.items[:] = items
        case Mapping() if depth < MAX_DEPTH:
            kept.items.update(
                {key: _another(m, item, name, depth + 1) for key, item in kept.items.items()}
            )
    return kept


def _is_computed(m: Machine, symbol: Symbol) -> bool:
    """Whether something unknown was computed from what is in view, and is no module."""
    node = m.nodes.get(symbol)
    return node is not None and node.records and not node.assumed and symbol not in m.leaves
