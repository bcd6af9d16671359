"""Walks over the IR: the nodes of a block, and the path by which a node is reached from a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradlint.ir.nodes import (
    Attribute,
    Class,
    For,
    Function,
    Handler,
    Jump,
    Literal,
    Name,
    Node,
    Return,
    Subscript,
    While,
)
from gradlint.source.reach import Path


def path_of(node: Node) -> Path:
    """How something is reached from a name, as `reach.path_of` says it of the syntax tree."""
    match node:
        case Name(id=name):
            return (name,)
        case Attribute(target=owner, name=name):
            above = path_of(owner)
            return (*above, name) if above else ()
        case Subscript(target=owner, index=Literal(value=key)):
            above = path_of(owner)
            return (*above, (key,)) if above else ()
    return ()


def within(block: Iterable[Node], *, loops: bool = True) -> Iterator[Node]:
    """The nodes of a block in the order of its text, but for inner functions and classes.

    Of inner loops only these themselves where `loops` is false.
    """
    pending: list[object] = list(reversed(list(block)))
    while pending:
        node = pending.pop()
        if isinstance(node, list | tuple):
            pending.extend(reversed(node))
        elif isinstance(node, Handler):
            pending.append(node.body)
        elif isinstance(node, Node) and not isinstance(node, Function | Class):
            yield node
            if loops or not isinstance(node, For | While):
                pending.extend(_inner(node))


def goes_on(block: Iterable[Node]) -> bool:
    """Whether a block never comes to its end: `while True:` without a `break` or a `return`."""
    for node in block:
        if isinstance(node, While) and isinstance(node.test, Literal) and node.test.value:
            here = within(node.body, loops=False)
            leaves = any(isinstance(each, Jump) and each.kind == "break" for each in here)
            return not leaves and not any(isinstance(each, Return) for each in within(node.body))
    return False


class _Holding(dict[type, tuple[str, ...]]):
    """Where nodes of each kind hold others, the last first."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        slots = [slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())]
        self[kind] = tuple(
            slot for slot in reversed(slots) if slot not in ("at", "cached", "source", "behind")
        )
        return self[kind]


_HOLDING = _Holding()


def _inner(node: Node) -> list[object]:
    """What a node holds, the last first."""
    return [getattr(node, slot) for slot in _HOLDING[type(node)]]
