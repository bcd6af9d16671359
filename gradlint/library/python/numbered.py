"""Attributes that a program numbers, and finds by a number that is not known.

setattr(self, f"scaler{i}", GradScaler())
scaler = getattr(self, f"scaler{index}")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.values import Abstract, Call, Const, Instance, Object
from gradlint.ir import nodes as ir
from gradlint.library.handover import escapes

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def numbered(m: Machine, owner: Abstract, call: Call) -> Abstract | None:
    """The first of the attributes that `getattr` can find, which are all alike; the others may be
    found as well.
    """
    written = call.node.args if isinstance(call.node, ir.Call) else []
    is_bound = len(written) < len(call.args)  # `owner.__getattr__(name)`
    name = written[0 if is_bound else 1 :][:1]
    if not isinstance(owner, Instance) or not name or not isinstance(name[0], ir.Format):
        return None
    found = _alike(owner, *_around(m, name[0], call))
    escapes(m, found[1:], call)
    return found[0] if found else None


def _around(m: Machine, name: ir.Format, call: Call) -> tuple[str, str]:
    """What stands before and behind the one part of a name that is not known."""
    texts = [
        str(part.value) if isinstance(part, Const) else None
        for part in (m.evaluate(each, call.frame) for each in name.parts)
    ]
    if texts.count(None) != 1:
        return "", ""
    at = texts.index(None)
    return "".join(map(str, texts[:at])), "".join(map(str, texts[at + 1 :]))


def _alike(owner: Instance, before: str, behind: str) -> list[Abstract]:
    """The attributes that have a number in between, if they are of one kind."""
    found = [
        value
        for name, value in owner.attrs.items()
        if before
        and name.startswith(before)
        and name.endswith(behind)
        and name[len(before) : len(name) - len(behind)].isdigit()
    ]
    kinds = {(type(each), each.cls if isinstance(each, Object) else "") for each in found}
    return found if len(kinds) == 1 else []
