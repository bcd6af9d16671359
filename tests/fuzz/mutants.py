"""Programs that went wrong on the way: parts of a program deleted, doubled, swapped or put in the
place of others.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable

_Place = tuple[ast.AST, str, int]  # a node, its field that holds a list, and a position in it


def mutant(text: str, seed: int, changes: int = 4) -> str:
    """The program after a few changes to its tree; it parses, and rarely means anything."""
    return changed(text, random.Random(seed), changes)


def changed(text: str, choose: random.Random, changes: int) -> str:
    """The program after changes that somebody chooses."""
    tree = ast.parse(text)
    for _ in range(choose.randint(1, changes)):
        if _statements(tree):  # an empty file stays one
            choose.choice(_CHANGES)(tree, choose)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _statements(tree: ast.AST) -> list[_Place]:
    return [
        (node, field, position)
        for node in ast.walk(tree)
        for field, held in ast.iter_fields(node)
        if isinstance(held, list)
        for position, item in enumerate(held)
        if isinstance(item, ast.stmt)
    ]


def _expressions(tree: ast.AST) -> list[tuple[ast.AST, str, ast.expr]]:
    """What is read, with the node that reads it, where one node holds it alone."""
    return [
        (node, field, held)
        for node in ast.walk(tree)
        if not isinstance(node, ast.FormattedValue | ast.JoinedStr | ast.pattern)
        for field, held in ast.iter_fields(node)
        if isinstance(held, ast.expr) and isinstance(getattr(held, "ctx", ast.Load()), ast.Load)
    ]


def _delete(tree: ast.AST, choose: random.Random) -> None:
    node, field, position = choose.choice(_statements(tree))
    held = getattr(node, field)
    held[position : position + 1] = [] if len(held) > 1 or field != "body" else [ast.Pass()]


def _double(tree: ast.AST, choose: random.Random) -> None:
    node, field, position = choose.choice(_statements(tree))
    held = getattr(node, field)
    held.insert(position, held[position])


def _move(tree: ast.AST, choose: random.Random) -> None:
    node, field, position = choose.choice(_statements(tree))
    held = getattr(node, field)
    held.append(held.pop(position))


def _loop(tree: ast.AST, choose: random.Random) -> None:
    node, field, position = choose.choice(_statements(tree))
    held = getattr(node, field)
    head = choose.choice(
        [
            "while x: pass",
            "for x in y: pass",
            "with x as y: pass",
            "if x: pass",
            "class X: pass",
            "def x(*x): pass",
        ]
    )
    block = ast.parse(head).body[0]
    block.body = [held[position]]  # type: ignore[attr-defined]
    held[position] = block


def _replace(tree: ast.AST, choose: random.Random) -> None:
    places = _expressions(tree)
    if not places:
        return
    node, field, _ = choose.choice(places)
    # else a part could come to hold itself
    setattr(node, field, copy.deepcopy(choose.choice(places)[2]))


def _wrap(tree: ast.AST, choose: random.Random) -> None:
    places = _expressions(tree)
    if not places:
        return
    node, field, held = choose.choice(places)
    form = choose.choice(["x.detach()", "x[0]", "[x, x]", "(x,)", "{x: x}", "-x", "not x", "x(x)",
        "lambda: x", "x.data", "x if x else x",
                          "[x for x in x]", "sum(x)", "x @ x", "float(x)", "{**x}", "f'{x}'",
                          "len(x)", "x is None", "x.y.z"])  # fmt: skip
    setattr(node, field, _filled(ast.parse(form, mode="eval").body, held))


def _filled(form: ast.expr, held: ast.expr) -> ast.expr:
    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return held if node.id == "x" and isinstance(node.ctx, ast.Load) else node

    filled: ast.expr = Fill().visit(form)
    return filled


def _constant(tree: ast.AST, choose: random.Random) -> None:
    places = _expressions(tree)
    if not places:
        return
    node, field, _ = choose.choice(places)
    setattr(
        node,
        field,
        ast.Constant(
            choose.choice([None, True, 0, -1, 10**30, 0.0, 1e308, "", "x" * 99, b"x", ..., 1j])
        ),
    )


_CHANGES: tuple[Callable[[ast.AST, random.Random], None], ...] = (
    _delete, _double, _move, _loop, _replace, _replace, _wrap, _wrap, _constant,
)  # fmt: skip
