"""What one node of a syntax tree does to tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradlint.source.reach import last, path_of
from gradlint.tape import May

FILLS = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])


def _touches_by_assignment(node: ast.Assign | ast.Return) -> May:
    return _of_comparison(node.value)


def _touches_by_update(node: ast.AugAssign) -> May:
    return May.WRITE | (May.SPOIL if isinstance(node.op, _QUOTIENTS) else May(0))


def _touches_by_item(node: ast.Subscript) -> May:
    return _of_comparison(node.slice) if isinstance(node.ctx, ast.Load) else May.WRITE | May.KEEP


def _touches_by_attribute(node: ast.Attribute) -> May:
    if isinstance(node.ctx, ast.Load):
        return May(0)
    return (
        May.CUT | May.LEAF
        if node.attr in _FLAGS
        else May.KEEP
        if isinstance(node.value, ast.Attribute)
        else May(0)
    )


def _touches_by_operator(node: ast.BinOp) -> May:
    own = May.SPOIL if isinstance(node.op, _QUOTIENTS) else May(0)
    return own | _of_comparison(node.left) | _of_comparison(node.right)


def _touches_by_call(node: ast.Call) -> May:
    found = May(0)
    for each in node.keywords:
        found |= _BY_KEYWORD.get(each.arg or "", May(0)) | _of_comparison(each.value)
    for argument in node.args:
        found |= _of_comparison(argument)
    match node.func:
        case ast.Attribute(attr=name, value=owner):
            is_written = name.endswith("_") and not name.endswith("__") and last(owner) != "init"
            found |= _of_comparison(owner) | (May.WRITE if is_written else May(0))
            found |= May.KEEP if name in FILLS else May(0)
            is_function = name == "apply" and path_of(owner) != ("self",)  # MyFunction.apply(x)
            return found | (May.CUT if is_function else May(0))
        case ast.Name(id=name):
            return found | (
                May.KEEP if name in _CONTAINERS and (node.args or node.keywords) else May(0)
            )
    return found


def _touches_by_items(node: ast.List | ast.Tuple | ast.Dict | ast.Set) -> May:
    items = node.values if isinstance(node, ast.Dict) else node.elts
    return May.KEEP if any(isinstance(each, ast.Call) for each in items) else May(0)


def _touches_by_loop(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> May:
    item = node.value if isinstance(node, ast.DictComp) else node.elt
    return May.KEEP if isinstance(item, ast.Call) else May(0)


def _of_comparison(node: ast.AST | None) -> May:
    """What is computed from where a comparison holds gets no gradient from there; what a branch
    asks is no value.
    """
    is_value = isinstance(node, ast.Compare) and not all(
        isinstance(op, _NO_TENSOR) for op in node.ops
    )
    return May.CUT if is_value else May(0)


_QUOTIENTS = (ast.Div, ast.Pow)
_NO_TENSOR = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_FLAGS = frozenset(["requires_grad", "data"])
_BY_KEYWORD = {"out": May.WRITE, "inplace": May.WRITE, "requires_grad": May.CUT | May.LEAF}
_CONTAINERS = frozenset(
    ["list", "tuple", "dict", "set", "setattr", "deque", "OrderedDict", "defaultdict"]
)
TOUCHES: dict[type[ast.AST], Callable[[Any], May]] = {
    ast.Assign: _touches_by_assignment,
    ast.Return: _touches_by_assignment,
    ast.AugAssign: _touches_by_update,
    ast.Subscript: _touches_by_item,
    ast.Attribute: _touches_by_attribute,
    ast.BinOp: _touches_by_operator,
    ast.Call: _touches_by_call,
    ast.List: _touches_by_items,
    ast.Tuple: _touches_by_items,
    ast.Set: _touches_by_items,
    ast.Dict: _touches_by_items,
    ast.ListComp: _touches_by_loop,
    ast.SetComp: _touches_by_loop,
    ast.GeneratorExp: _touches_by_loop,
    ast.DictComp: _touches_by_loop,
}
