"""How soon the other side of a branch is worth running, by what its sides may do.

    if i % 4 == 0: optimizer.step()         # 0: a part of a training step
    h = h.detach() if frozen else h         # 0: a gradient is cut
    if self.norm: x /= x.norm()             # 1: a tensor is written in place, or a gradient spoiled
    if x is None: return None               # 2: the block is left
    if verbose: print(loss)                 # 3: all others

A rank decides where steps go, and never what is reported: what is not in view has no effect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gradlint import memo
from gradlint.interpret.paths import LEAST
from gradlint.program import hazards
from gradlint.source import effects, meanings, sides
from gradlint.source.blocks import statements
from gradlint.tape import May

_STEPS = May.STEP | May.CLEAR | May.BACKWARD | May.CLIP | May.HOLD | May.SYNC
_ON_TENSORS = May.WRITE | May.SPOIL | May.LEAF
_BODIES = (ast.stmt, ast.ExceptHandler, ast.match_case)


@memo.of_programs
def rank(tree: ast.Module, test: sides.Place, side: bool | None = None) -> int:
    """How soon the sides of the branch at a place, or one of them, are worth taking: 0 is first."""
    found = sides.of(tree).get(test)
    if found is None:
        block = _header(tree, test)
    else:
        block = (*found.then, *found.otherwise) if side is None else found.of(side)
    if _may_step(tree, block) or _may_touch(tree, block, May.CUT):
        return 0
    if _may_touch(tree, block, _ON_TENSORS):
        return 1
    return 2 if sides.leaves(block) or _may_touch(tree, block, May.KEEP) else LEAST


def _header(tree: ast.Module, test: sides.Place) -> Sequence[ast.AST]:
    """The statement that holds what is asked there, less the statements in it:
    `model.train(flag)`.
    """
    around: ast.AST = tree
    for node in statements(tree):
        if isinstance(node, ast.stmt) and _holds(node, test):
            around = node
    return [each for each in ast.iter_child_nodes(around) if not isinstance(each, _BODIES)]


def _holds(node: ast.stmt, place: sides.Place) -> bool:
    begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return begin <= place[:2] and place[2:] <= end


def _may_touch(tree: ast.Module, block: Iterable[ast.AST], wanted: May) -> bool:
    return any(hazards.may(node, wanted, tree) for node in block)


def _may_step(tree: ast.Module, block: Iterable[ast.AST]) -> bool:
    """Whether a part of a training step stands in a block, or in what it calls in its own file."""
    return any(
        found.does.effects & _STEPS
        or any(_written_in(tree, call.name) & _STEPS for call in found.does.calls)
        for found in effects.of(block)
    )


@memo.of_programs
def _written_in(tree: ast.Module, name: str) -> May:
    """The effects that stand in the functions of a name, and in what they call in their file."""
    functions = meanings.of(tree).functions
    found, seen = May(0), {name}
    for each in (pending := [name]):
        for summary in effects.of(functions.get(each, ())):
            found |= summary.does.effects
            more = {call.name for call in summary.does.calls} - seen
            seen |= more
            pending += sorted(more & functions.keys())
    return found
