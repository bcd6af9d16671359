"""Scopes: which names a function binds, and what it returns and leaves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradlint import memo
from gradlint.ir import nodes as ir
from gradlint.source import blocks

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVES = (ast.expr_context, ast.Constant, ast.Name)


def _own(statements: list[ast.stmt] | list[ast.expr]) -> Iterator[ast.AST]:
    """The nodes of a function's own scope, in no order, less the names and constants in it."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _SCOPES):
            continue
        for inner in vars(node).values():  # `ast.iter_child_nodes` takes three times as long
            if isinstance(inner, list):
                pending += [each for each in inner if isinstance(each, ast.AST)]
            elif isinstance(inner, ast.AST) and not isinstance(inner, _LEAVES):
                pending.append(inner)


def scope(function: ir.Function) -> None:
    """Notes whether a function yields, what it declares global, and how long its tuples are."""
    source = function.source
    inside: Any = [source.body] if isinstance(source, ast.Lambda) else source.body
    # few can: the expressions of the others are passed over
    can_yield = "yield" in function.code.rows(function.at)
    function.is_generator = can_yield and any(
        isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(inside)
    )
    for node in blocks.statements(source, _SCOPES):
        if isinstance(node, ast.Global):
            function.globals |= frozenset(node.names)
        elif isinstance(node, ast.Nonlocal):
            function.nonlocals |= frozenset(node.names)
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            function.arities |= {len(node.value.elts)}


@memo.of_programs
def arities(tree: ast.Module) -> dict[str, frozenset[int]]:
    """The lengths of the tuples that the methods of a file's classes write down to return, by the
    methods' names.
    """
    found: dict[str, frozenset[int]] = {}
    for each in (each for each in blocks.statements(tree) if isinstance(each, ast.ClassDef)):
        for method in (member for member in each.body if isinstance(member, ast.FunctionDef)):
            values = (
                node.value
                for node in blocks.statements(method, _SCOPES)
                if isinstance(node, ast.Return)
            )
            lengths = frozenset(len(value.elts) for value in values if isinstance(value, ast.Tuple))
            found[method.name] = found.get(method.name, frozenset()) | lengths
    return found


def leaves(node: ir.If, behind: list[ir.Node]) -> bool | None:
    """By which answer to what it asks, without a `not`, the loop is left, or the function with
    nothing to give back.
    """
    is_denied = isinstance(node.test, ir.Unary) and node.test.op == "not"
    if _is_way_out(node.then):
        return not is_denied
    return is_denied if _is_way_out(behind if _jumps(node) else node.otherwise) else None


def _jumps(node: ir.If) -> bool:
    """Whether what stands behind it is its other side: `if …: continue`."""
    return bool(node.then) and isinstance(node.then[-1], ir.Jump) and not node.otherwise


def _is_way_out(block: list[ir.Node]) -> bool:
    match block:
        case [*_, ir.Jump(kind="break") | ir.Return(value=None)]:
            return True
    return False
