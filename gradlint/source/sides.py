"""The branches of a file, by the places of their tests, and what runs on each of their sides.

if clip is not None:        # `clip is not None`: then clip_grad_norm_(…), otherwise nothing
    clip_grad_norm_(…)
x = h if skip else f(h)     # `skip`: then `h`, otherwise `f(h)`; each gives a value
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source.blocks import walk

_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)
Place = tuple[int, int, int, int]  # of a test: its first line and column, its last


@dataclass(frozen=True, slots=True)
class Sides:
    """What runs where a test holds and where it does not, as far as its own statement says."""

    then: tuple[ast.AST, ...]
    otherwise: tuple[ast.AST, ...]
    around: ast.AST  # the function, or the module: what can follow a side
    gives: bool = False  # each is a value: `a if test else b`

    def of(self, holds: bool) -> tuple[ast.AST, ...]:
        """The code that only this answer leads to; what follows, too, where the other answer can
        leave the block, and this one does not.
        """
        own, other = (self.then, self.otherwise) if holds else (self.otherwise, self.then)
        stays = not own or not isinstance(own[-1], _EXITS)
        leads_on = stays and any(isinstance(each, _EXITS) for each in other)
        return (*own, self.around) if leads_on else own


def leaves(block: Iterable[ast.AST]) -> bool:
    """Whether running it can end what is around it, by itself."""
    return any(isinstance(part, _EXITS) for node in block for part in walk(node, _BLOCKS))


@memo.of_programs
def of(tree: ast.Module) -> dict[Place, Sides]:
    """The sides of every branch of a file, by the place of its test, or of a part of that."""
    found: dict[Place, Sides] = {}
    for test, sides in _branches(tree, tree):
        found.setdefault(test, sides)
    return found


def _branches(node: ast.AST, around: ast.AST) -> Iterator[tuple[Place, Sides]]:
    """Every branch below a node, by the place of its test; a branch comes before those in its
    test.
    """
    pending: list[tuple[ast.AST, ast.AST]] = [(node, around)]
    while pending:
        node, around = pending.pop()
        inner = node if isinstance(node, _BLOCKS) else around
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]
        match node:
            case ast.If():
                yield from _tested(node.test, Sides(tuple(node.body), tuple(node.orelse), inner))
            case ast.IfExp():
                yield from _tested(
                    node.test, Sides((node.body,), (node.orelse,), inner, gives=True)
                )
            case ast.comprehension():
                for test in node.ifs:
                    yield _place(test), Sides((inner,), (), inner)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    is_and = isinstance(node.op, ast.And)
                    then = (right,) if is_and else ()
                    yield _place(left), Sides(then, () if is_and else (right,), inner, gives=True)


def _tested(test: ast.expr, sides: Sides) -> Iterator[tuple[Place, Sides]]:
    """A test and its sides, and those of its parts.

    Of `a and not b`, the side on which `a` does not hold is that of the whole; on the other, `b` is
    asked, which can lead to either (and stands behind them: no statement that surely exits).
    """
    yield _place(test), sides
    either = (*sides.then, *sides.otherwise)
    match test:
        case ast.UnaryOp(op=ast.Not()):
            turned = Sides(sides.otherwise, sides.then, sides.around, sides.gives)
            yield from _tested(test.operand, turned)
        case ast.BoolOp():
            for number, operand in enumerate(test.values, 1):
                asked = test.values[number:]
                then, otherwise = sides.then, sides.otherwise
                if asked and isinstance(test.op, ast.And):
                    then = (*either, *asked)
                elif asked:
                    otherwise = (*either, *asked)
                yield from _tested(operand, Sides(then, otherwise, sides.around, sides.gives))
        case _:
            any_of_it = Sides((*either, test), (*either, test), sides.around, sides.gives)
            parts = (part for part in ast.walk(test) if isinstance(part, ast.expr))
            yield from ((_place(part), any_of_it) for part in parts if part is not test)


def _place(node: ast.expr) -> Place:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
