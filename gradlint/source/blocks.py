"""Fast walks over a syntax tree: its statements, or its nodes outside of inner functions."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # where statements stand in a node


def statements(tree: ast.AST, closed: tuple[type[ast.AST], ...] = ()) -> Iterator[ast.AST]:
    """A tree and all statements and handlers in it, outer ones first: a tenth of what `ast.walk`
    visits.

    Of statements that are `closed` and stand in the tree, nothing but they themselves. A lambda
    holds none.
    """
    if isinstance(tree, ast.Lambda):
        yield tree
        return
    pending = [tree]
    for node in pending:
        yield node
        if node is tree or not isinstance(node, closed):
            for block in _BLOCKS:
                pending.extend(getattr(node, block, ()))


_CLOSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def ends_early(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether something in a loop can end it before it has run over everything: `while`, `break`,
    `return`.
    """
    exits: list[ast.AST] = [
        each for each in statements(loop, _CLOSED) if isinstance(each, ast.Return)
    ]
    exits += [each for each in statements(loop, _CLOSED + _LOOPS) if isinstance(each, ast.Break)]
    if isinstance(loop, ast.While):
        return not (isinstance(loop.test, ast.Constant) and exits and _are_of_iterator(loop, exits))
    return bool(exits)


def _are_of_iterator(loop: ast.While, exits: list[ast.AST]) -> bool:
    """Whether a loop ends only where an iterator has no more: `except StopIteration: break`."""
    handlers = [each for each in ast.walk(loop) if isinstance(each, ast.ExceptHandler)]
    drained = [
        each
        for each in handlers
        if isinstance(each.type, ast.Name) and each.type.id == "StopIteration"
    ]
    inside = {id(each) for handler in drained for each in ast.walk(handler)}
    return all(id(each) in inside for each in exits)


class _Held(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that hold nodes, but for contexts and operators."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = (
            ()
            if kind is ast.Constant
            else tuple(name for name in kind._fields if name not in _BARE)
        )
        self[kind] = fields
        return fields


_BARE = frozenset(
    [
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "module",
        "level",
        "type_comment",
        "kind",
        "kwd_attrs",
    ]
)
_held = _Held()


def walk(tree: ast.AST, closed: Container[type[ast.AST]] = ()) -> Iterator[ast.AST]:
    """A tree and all nodes in it, outer ones first, as by `ast.walk`; contexts and operators are
    left out.

    Of nodes that are `closed` and stand in the tree, nothing but they themselves.
    """
    pending = [tree]
    for node in pending:
        yield node
        if type(node) in closed and node is not tree:
            continue
        own = node.__dict__
        for name in _held[type(node)]:
            part = own.get(name)
            if type(part) is list:
                pending.extend([each for each in part if isinstance(each, ast.AST)])
            elif isinstance(part, ast.AST):
                pending.append(part)
