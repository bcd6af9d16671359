"""The branches of a constructor that decide what an object is made with, and those of a call that
hang on it.

    self.norm = nn.LayerNorm(width) if normed else None  # `normed` decides what `norm` is,
    if self.norm is not None:                            # and so whether a call comes here
        x = self.norm(x).detach()

That of the constructor is worth turning as soon as what it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.paths import Branching, Site
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


def decides(m: Machine, node: ir.If | ir.Assign, since: int) -> None:
    """Notes that the branches which were asked since then decide what a statement of a constructor
    gives its object.
    """
    if m.oracle.prepares and m.session.contract:
        _note(m, node, {free.site for free in m.oracle.free[since:]})


def hangs_on(m: Machine, node: ir.If | ir.Conditional, known: bool, frame: Frame) -> None:
    """Has the branches of the constructor turned as soon as the other side of one that has one
    answer alone, for what the object is made with.
    """
    names = _asked(node.test) & m.oracle.choosing.keys()
    sites = {site for name in names for site in m.oracle.choosing[name]}
    if m.oracle.prepares:
        _note(m, node, sites)
        return
    at = Branching(node.test, frame.code.path, whole=node)
    for site in sites:
        seen = m.oracle.visited.get(site)
        if seen is not None and len(seen.sides) == 1:
            seen.rank = min(seen.rank, m.session.rank(at, not known))


def _note(m: Machine, node: ir.Node, sites: set[Site]) -> None:
    for name in _given(node) if sites else ():
        m.oracle.choosing.setdefault(name, set()).update(sites)


@memo.of_programs
def _given(node: ir.Node) -> frozenset[str]:
    """The attributes that a statement gives an object: by an assignment, or by their names,
    `self.register_parameter("bias", None)`.
    """
    return frozenset(name for each in within([node]) for name in _names(each))


def _names(node: ir.Node) -> Iterator[str]:
    match node:
        case ir.Assign(targets=targets):
            yield from (each.name for each in targets if isinstance(each, ir.Attribute))
        case ir.Call(
            function=ir.Attribute(target=ir.Name()), args=[ir.Literal(value=str(name)), *_]
        ):
            yield name


@memo.of_programs
def _asked(test: ir.Node) -> frozenset[str]:
    return frozenset(each.name for each in within([test]) if isinstance(each, ir.Attribute))
