"""Fixes of what is kept beyond its round: kept without its graph."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import PLACES


def kept_detached(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is kept beyond its round kept without its graph."""
    statement = source.statement(finding.at)
    kept = _kept(statement, finding, source)
    scope = source.scope(statement)
    arguments = (
        []
        if isinstance(scope, ast.Module)
        else [a.arg for a in (*scope.args.args, *scope.args.kwonlyargs)]
    )
    inner = _item(kept) if isinstance(statement, ast.Expr) else kept
    if isinstance(inner, ast.Name) and inner.id in arguments:
        is_tensor, imports = source.reference("torch.is_tensor")
        name = inner.id
        line = f"{name} = {name}.detach() if {is_tensor}({name}) else {name}"
        return (*source.before(statement, line), *imports)
    return (source.replace(inner, f"{source.operand(inner)}.detach()"),)


def _item(kept: ast.expr) -> ast.expr:
    """The `x` of `[x]` and of `[x] * n`."""
    match kept:
        case ast.BinOp(left=ast.List(elts=[item])) | ast.List(elts=[item]):
            return item
    return kept


def _kept(statement: ast.stmt, finding: Finding, source: FixSource) -> ast.expr:
    match statement:
        case ast.AugAssign(value=value):
            return value
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as last])):
            return _within(last, finding, source)
        case ast.Assign(value=ast.ListComp(elt=ast.Call() as item)):
            return item
        case ast.Assign(value=ast.BinOp(op=ast.Add(), left=left, right=right), targets=[target]):
            if source.text(left) == source.text(target):
                return right
            if source.text(right) == source.text(target):
                return left
    match (
        statement
    ):  # what is computed here is not only kept: the backward of this round may need it
        case ast.Assign(value=value, targets=[target]):
            read = {source.text(node) for node in ast.walk(value) if isinstance(node, PLACES)}
            is_put_away = (
                isinstance(target, ast.Subscript | ast.Attribute) and "used" not in finding.hints
            )
            if isinstance(value, PLACES) or source.text(target) in read or is_put_away:
                return value
    raise NoFixError("nothing is kept here")


def _within(value: ast.expr, finding: Finding, source: FixSource) -> ast.expr:
    """What is kept of what is handed over: an item of a dict, a tuple or a record that is made
    there, or all of it.
    """
    kept = finding.hints.get("kept")
    if isinstance(value, ast.Dict):
        items = [item for item in value.values if source.text(item) == kept]
    elif isinstance(value, ast.Tuple | ast.Call) and source.text(value) != kept:
        parts = (
            value.elts
            if isinstance(value, ast.Tuple)
            else [*value.args, *(word.value for word in value.keywords)]
        )
        items = [part for part in parts if source.text(part) == kept]
    else:
        return value
    if len(items) != 1:
        raise NoFixError("which item is kept is not known")
    return items[0]
