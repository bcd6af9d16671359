"""Loops over things of several kinds: `if layer["type"] == "conv": … elif layer["type"] == "yolo": outputs.append(x)`.

A few rounds of such a loop are run, which show as many kinds. Those that are asked for besides are there, too, in other
rounds; so a list that they alone fill is not known to be empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.values import Sequence, Test
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Machine

_FILLING = ("append", "extend", "insert")


def passed_over(m: Machine, asked: Test, node: ir.If, taken: bool, frame: Frame) -> None:
    """Leaves open the empty lists that the other side of a question about this round's kind would have filled."""
    if not (_is_about_kinds(asked) and _is_about_round(m, node)):
        return
    for name in _filled(node, not taken):
        held = frame.locals.get(name)
        if isinstance(held, Sequence) and held.kind == "list" and not held.items and not held.open:
            held.open, held.rest = True, m.unknown(name)


def _is_about_kinds(asked: Test) -> bool:
    """Whether it asks if something is called so: `== "yolo"`, `in ["conv", "pool"]`."""
    return asked.relation in ("==", "in") and isinstance(asked.operand, str | tuple)


def _is_about_round(m: Machine, node: ir.If) -> bool:
    """Whether the question speaks of what the innermost loop runs over, or of what is made of that in its rounds."""
    loop = m.loops[-1].node if m.loops else None
    return isinstance(loop, ir.For) and not _of_round(loop).isdisjoint(_names([node.test]))


@memo.of_programs
def _of_round(loop: ir.For) -> frozenset[str]:
    """The names that a loop binds to its items, and to what is made of them: `kind = layer["type"]`."""
    found, known = _names([loop.target]), -1
    bindings = [each for each in ir.within(loop.body) if isinstance(each, ir.Assign | ir.Walrus | ir.For)]
    while len(found) > known:
        known = len(found)
        for each in bindings:
            made_of = each.iterable if isinstance(each, ir.For) else each.value
            if not found.isdisjoint(_names([made_of])):
                targets = each.targets if isinstance(each, ir.Assign) else [each.target]
                found |= _names(target for target in targets if isinstance(target, ir.Name | ir.Display))
    return found


def _names(nodes: Iterable[ir.Node]) -> frozenset[str]:
    return frozenset(node.id for node in ir.within(nodes) if isinstance(node, ir.Name))


@memo.of_programs
def _filled(node: ir.If, side: bool) -> tuple[str, ...]:
    """The names of the lists that one side of a branch puts something into."""
    calls = (found for found in ir.within(node.then if side else node.otherwise) if isinstance(found, ir.Call))
    methods = (call.function for call in calls if isinstance(call.function, ir.Attribute))
    owners = (method.target for method in methods if method.name in _FILLING)
    return tuple(dict.fromkeys(owner.id for owner in owners if isinstance(owner, ir.Name)))
