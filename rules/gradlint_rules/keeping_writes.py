"""Fixes of writes in place that are lost or that nobody notices: what is written is assigned."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import whole_call

_TORCH_INIT = "torch.nn.init."


def assigned(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`x[mask].copy_(y)` as `x[mask] = y`, `layer.weight.clamp_(0, 1)` as
    `layer.weight = layer.weight.clamp_(0, 1)`, `init.zeros_(layer.weight)` alike.
    """
    statement = source.statement(finding.at)
    call = whole_call(statement)
    if call is None:
        raise NoFixError("the write is part of something else")
    written, value = _write(call, source)
    if not isinstance(written, ast.Subscript | ast.Attribute):
        raise NoFixError("what is written has no place of its own")
    is_copied = isinstance(written, ast.Subscript) and value is not None
    new = source.text(value) if is_copied and value is not None else source.text(call)
    return (source.rewrite(statement, f"{source.text(written)} = {new}"),)


def _write(call: ast.Call, source: FixSource) -> tuple[ast.expr, ast.expr | None]:
    """What a call writes, and, of a mere copy, what it brings."""
    if source.called(call.func).startswith(_TORCH_INIT) and call.args:
        return call.args[0], None
    if not isinstance(call.func, ast.Attribute):
        raise NoFixError("the write is no call")
    is_copy = call.func.attr == "copy_" and len(call.args) == 1 and not call.keywords
    return call.func.value, call.args[0] if is_copy else None


def rebound(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`p.data.clamp_(0, 1)` as `p.data = p.data.clone().clamp_(0, 1)`, and `p.data -= g` as
    `p.data = p.data - g`: what was saved stays as it was.
    """
    statement = source.statement(finding.at)
    match statement:
        case ast.AugAssign(target=ast.Attribute(attr="data") as data, op=op, value=value):
            sign = _SIGNS.get(type(op))
            if sign is not None:
                name = source.text(data)
                new = f"{name} = {name} {sign} {source.operand(value)}"
                return (source.rewrite(statement, new),)
        case ast.Expr(
            ast.Call(func=ast.Attribute(value=ast.Attribute(attr="data") as data) as func) as call
        ) if func.attr.endswith("_"):
            name = source.text(data)
            rest = source.text(call)[len(name) :]
            return (source.rewrite(statement, f"{name} = {name}.clone(){rest}"),)
    raise NoFixError("what is written is no parameter's `data` as a whole")


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
