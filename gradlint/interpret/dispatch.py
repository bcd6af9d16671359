"""Dispatch over kinds in a loop: lists that only the iterations which are not unrolled fill.

    for layer in config:
        if layer["type"] == "conv": …
        elif layer["type"] == "yolo": outputs.append(x)

Only k iterations are unrolled, so only k dispatch cases are seen. A list appended to only in unseen
cases is widened to an unknown length. So is one that is filled unless it is full already:
`if len(self.models) != count: self.models.append(…)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import Abstract, Instance, Object, Sequence
from gradlint.ir import nodes as ir
from gradlint.ir.walk import path_of, within
from gradlint.source import effects
from gradlint.source.effects import How
from gradlint.source.reach import Path

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


def passed_over(m: Machine, asked: Test, node: ir.If, taken: bool, frame: Frame) -> None:
    """Leaves open the empty lists that the other side of a question would have filled.

    It is a question about this round's kind, or about how much they hold.
    """
    if _is_about_kinds(asked) and _is_about_round(m, node):
        for path in _filled(node, not taken):
            match path:
                case (str(name),) if name in frame.locals:
                    _leave_open(m, frame.locals[name], name)
    for owner in _counted(node):
        if path_of(owner) in _filled(node, not taken):
            _leave_open(m, m.evaluate(owner, frame), frame.text(owner))


def _leave_open(m: Machine, value: Abstract, name: str) -> None:
    """An empty list, or `nn.ModuleList`, holds what is not known."""
    held = value.state.get("items") if isinstance(value, Instance | Object) else value
    if isinstance(held, Sequence) and held.kind == "list" and not held.items and not held.open:
        held.open, held.rest = True, m.unknown(name)


def _is_about_kinds(asked: Test) -> bool:
    """Whether it asks if something is called so: `== "yolo"`, `in ["conv", "pool"]`."""
    return asked.relation in ("==", "in") and isinstance(asked.operand, str | tuple)


def _is_about_round(m: Machine, node: ir.If) -> bool:
    """Whether the question speaks of what the innermost loop runs over, or of what is made of that
    in its rounds.
    """
    loop = m.loops[-1].node if m.loops else None
    return isinstance(loop, ir.For) and not _of_round(loop).isdisjoint(_names([node.test]))


@memo.of_programs
def _of_round(loop: ir.For) -> frozenset[str]:
    """The names that a loop binds to its items, and to what is made of them:
    `kind = layer["type"]`.
    """
    found, known = _names([loop.target]), -1
    bindings = [
        each for each in within(loop.body) if isinstance(each, ir.Assign | ir.Walrus | ir.For)
    ]
    while len(found) > known:
        known = len(found)
        for each in bindings:
            made_of = each.iterable if isinstance(each, ir.For) else each.value
            if not found.isdisjoint(_names([made_of])):
                targets = each.targets if isinstance(each, ir.Assign) else [each.target]
                found |= _names(
                    target for target in targets if isinstance(target, ir.Name | ir.Display)
                )
    return found


def _names(nodes: Iterable[ir.Node]) -> frozenset[str]:
    return frozenset(node.id for node in within(nodes) if isinstance(node, ir.Name))


def _counted(node: ir.If) -> list[ir.Node]:
    """What a branch compares the length of."""
    sides = [node.test.left, *node.test.rights] if isinstance(node.test, ir.Compare) else []
    calls = [side for side in sides if isinstance(side, ir.Call) and len(side.args) == 1]
    return [
        call.args[0]
        for call in calls
        if isinstance(call.function, ir.Name) and call.function.id == "len"
    ]


@memo.of_programs
def _filled(node: ir.If, side: bool) -> tuple[Path, ...]:
    """What one side of a branch puts something into."""
    block = node.source.body if side else node.source.orelse
    written = (each for found in effects.of(block, functions=False) for each in found.does.written)
    return tuple(dict.fromkeys(path for path, how in written if how is How.FILLED and path))
