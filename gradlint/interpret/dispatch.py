"""Loops over things of several kinds: `if layer["type"] == "conv": … elif layer["type"] == "yolo": outputs.append(x)`.

A few rounds of such a loop are run, which show as many kinds. Those that are asked for besides are there, too, in other
rounds; so a list that they alone fill is not known to be empty.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from gradlint.interpret.values import Sequence, Test
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Machine

_FILLING = ("append", "extend", "insert")
_WORD = re.compile(r"[^\W\d]\w*")


def passed_over(m: Machine, asked: Test, node: ir.If, taken: bool, frame: Frame) -> None:
    """Leaves open the empty lists that the other side of a question about this round's kind would have filled."""
    if not (_is_about_kinds(asked) and _is_about_round(m, node, frame)):
        return
    for name in _filled(node, not taken):
        held = frame.locals.get(name)
        if isinstance(held, Sequence) and held.kind == "list" and not held.items and not held.open:
            held.open, held.rest = True, m.unknown(name)


def _is_about_kinds(asked: Test) -> bool:
    """Whether it asks if something is called so: `== "yolo"`, `in ["conv", "pool"]`."""
    return asked.relation in ("==", "in") and isinstance(asked.operand, str | tuple)


def _is_about_round(m: Machine, node: ir.If, frame: Frame) -> bool:
    """Whether the question speaks of what the innermost loop runs over."""
    loop = m.loops[-1].node if m.loops else None
    if not isinstance(loop, ir.For):
        return False
    asked = frame.text(node.test.left) if isinstance(node.test, ir.Compare) else ""
    return not set(_WORD.findall(frame.text(loop.target))).isdisjoint(_WORD.findall(f"{asked} {frame.text(node.test)}"))


@functools.lru_cache(maxsize=1024)
def _filled(node: ir.If, side: bool) -> tuple[str, ...]:
    """The names of the lists that one side of a branch puts something into."""
    calls = (found for found in ir.within(node.then if side else node.otherwise) if isinstance(found, ir.Call))
    methods = (call.function for call in calls if isinstance(call.function, ir.Attribute))
    owners = (method.target for method in methods if method.name in _FILLING)
    return tuple(dict.fromkeys(owner.id for owner in owners if isinstance(owner, ir.Name)))
