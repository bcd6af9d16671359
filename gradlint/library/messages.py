"""What code out of view makes of the values that it was given to keep: a graph that passes messages
among its nodes.

    graph.ndata["h"] = h
    graph.update_all(fn.copy_u("h", "m"), fn.mean("m", "mean"))
    h = graph.ndata["mean"]

The graph comes out of a data set, and is data. What it has under other names from there on can
carry the gradient of h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Unknown
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


@on("discarded")
def computed(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`graph.update_all(copy, mean)` as a statement: a method out of view of what keeps values with
    gradient.
    """
    keeps: set[Symbol] | None = m.state.get("keeps")
    if keeps and isinstance(value, Unknown) and isinstance(node, ir.Call):
        method = value.symbol.source or (
            value.symbol.twin.source if value.symbol.twin is not None else None
        )
        if method is not None and method.source in keeps:
            m.state.setdefault("made of what it keeps", set()).add(method.source)
