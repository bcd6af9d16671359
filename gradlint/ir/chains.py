"""Chains of `if` and `elif`, and what leaves the block in which they stand."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.ir import nodes as ir


def last(node: ir.If) -> ir.If:
    """The last `elif` of a chain; the `if` itself where there is none."""
    *_, found = _chain(node)
    return found


def mark_answers(block: list[ir.Node]) -> None:
    """Marks the `if` of a block that ends in `raise` by which a function returns before it."""
    for node in (each for each in block if isinstance(each, ir.If)):
        for branch in _chain(node):
            branch.answers = bool(branch.then) and isinstance(branch.then[-1], ir.Return)


def escapes(block: list[ir.Node]) -> bool:
    """Whether a block ends in a `return`, a `break` or a `continue`."""
    return bool(block) and isinstance(block[-1], ir.Jump | ir.Return)


def _chain(node: ir.If) -> Iterator[ir.If]:
    """An `if` and each `elif` behind it."""
    yield node
    while len(node.otherwise) == 1 and isinstance(node.otherwise[0], ir.If):
        node = node.otherwise[0]
        yield node
