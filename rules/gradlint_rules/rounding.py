"""Fixes of steps without a slope: `x.round()` as `x + (x.round() - x).detach()`."""

from __future__ import annotations

import ast

from gradlint.finding import Edit
from gradlint.operations import Trait, has
from gradlint.rule import FixSource, NoFixError

_LAZY = (
    ast.Lambda,
    ast.ListComp,
    ast.GeneratorExp,
    ast.DictComp,
    ast.SetComp,
    ast.IfExp,
    ast.BoolOp,
)


def straight_through(node: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`x.round()` as `x + (x.round() - x).detach()`: the same value, with the gradient of `x`."""
    match node:
        case ast.Call(keywords=words) if rounded := [
            word for word in words if word.arg == "rounding_mode"
        ]:
            return _rounded_through(node, rounded[0], source)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=args) if has(
            name, Trait.ROUNDS
        ):
            inner = args[0] if source.called(node.func).startswith("torch.") and args else value
        case _:
            raise NoFixError("no step that can be passed straight through")
    return passed_through(node, inner, source)


def passed_through(node: ast.expr, inner: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """The value of `node`, with the gradient of `inner`, which stands in it."""
    outer = next(source.around(node))
    statement = source.statement(node)
    if isinstance(inner, ast.Name):
        return (source.replace(node, _through(inner.id, source.text(node))),)
    whole = isinstance(outer, ast.Return | ast.Assign | ast.AugAssign)
    if not whole and not _is_evaluated_once(node, statement, source):
        return (source.replace(node, source.text(inner)),)
    smooth = source.fresh("smooth", node)
    text = source.text(node).replace(source.text(inner), smooth, 1)
    head = source.before(statement, f"{smooth} = {_bare(inner, source)}")
    return (*head, source.replace(node, _through(smooth, text)))


def _bare(node: ast.expr, source: FixSource) -> str:
    """The source of an expression without the parentheses around it, where it stands on one
    line.
    """
    text = source.text(node)
    while (
        text.startswith("(")
        and "\n" not in text
        and not isinstance(node, ast.Tuple | ast.GeneratorExp)
    ):
        try:
            inner = ast.parse(text[1:-1].strip(), mode="eval").body
        except SyntaxError:
            return text
        if ast.dump(inner) != ast.dump(node):
            return text
        text = text[1:-1].strip()
    return text


def _rounded_through(node: ast.Call, rounded: ast.keyword, source: FixSource) -> tuple[Edit, ...]:
    """`torch.div(x, n, rounding_mode="floor")` as the quotient, and its rounding passed straight
    through.
    """
    statement = source.statement(node)
    whole = isinstance(next(source.around(node)), ast.Return | ast.Assign | ast.AugAssign)
    if not isinstance(rounded.value, ast.Constant) or not (
        whole or _is_evaluated_once(node, statement, source)
    ):
        return (source.remove_argument(node, rounded),)
    given = [source.text(each) for each in [*node.args, *node.keywords] if each is not rounded]
    smooth = source.fresh("smooth", node)
    quotient = f"{smooth} = {source.text(node.func)}({', '.join(given)})"
    steps = _through(smooth, f"{smooth}.{rounded.value.value!s}()")
    return (*source.before(statement, quotient), source.replace(node, steps))


def _through(name: str, text: str) -> str:
    return f"{name} + ({text} - {name}).detach()"


def _is_evaluated_once(node: ast.expr, statement: ast.stmt, source: FixSource) -> bool:
    """Whether an expression is evaluated once, and first, when its statement runs."""
    outers = []
    for outer in source.around(node):
        if outer is statement:
            break
        outers.append(outer)
    if any(isinstance(outer, _LAZY) for outer in outers):
        return False
    return isinstance(statement, ast.Assign | ast.Return | ast.AugAssign)


def cast_back(node: ast.Call, source: FixSource) -> ast.Call:
    """`x.long().to(x.dtype)` around the `x.long()` in it, which is a step as `x.trunc()` is."""
    outer, *_ = around = list(source.around(node))
    match outer:
        case ast.Attribute(attr=name, value=value) if (
            value is node and has(name, Trait.CASTS) and len(around) > 1
        ):
            if isinstance(around[1], ast.Call) and around[1].func is outer:
                return around[1]
    raise NoFixError("it stays a whole number")
