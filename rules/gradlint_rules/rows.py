"""The fix of rows of a parameter that are frozen, or unfrozen, as if they were one by themselves: a
hook of the parameter zeroes the gradient of the rows that are to stay.
"""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError


def kept_by_a_hook(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`weight[rows].requires_grad_(False)` as a hook of `weight`."""
    statement = source.statement(finding.at)
    rows, flag = _set(statement)
    parameter = source.operand(_whole(rows.value))
    index = source.text(rows.slice)
    name = source.fresh("frozen", statement)
    zeros, imports = source.reference("torch.zeros_like" if not flag else "torch.ones_like")
    kind, others = source.reference("torch.bool")
    return (
        *source.instead(
            statement,
            f"{name} = {zeros}({parameter}, dtype={kind})",
            f"{name}[{index}] = {not flag}",
            *([f"{parameter}.requires_grad_(True)"] if flag else []),
            f"{parameter}.register_hook("
            f"lambda grad, {name}={name}: grad.masked_fill({name}.to(grad.device), 0.0))",
        ),
        *dict.fromkeys((*imports, *others)),
    )


def _set(statement: ast.stmt) -> tuple[ast.Subscript, bool]:
    """The rows whose flag a statement sets, and to what."""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Subscript() as rows, attr="requires_grad")],
            value=ast.Constant(value=bool() as flag),
        ):
            return rows, flag
        case ast.Expr(
            ast.Call(
                func=ast.Attribute(value=ast.Subscript() as rows, attr="requires_grad_"),
                args=[ast.Constant(value=bool() as flag)],
            )
        ):
            return rows, flag
        case ast.Expr(
            ast.Call(
                func=ast.Attribute(value=ast.Subscript() as rows, attr="requires_grad_"), args=[]
            )
        ):
            return rows, True
    raise NoFixError("no flag of rows is set")


def _whole(parameter: ast.expr) -> ast.expr:
    """A parameter, of which the rows are taken by its `data`, too."""
    if isinstance(parameter, ast.Attribute) and parameter.attr == "data":
        return parameter.value
    return parameter
