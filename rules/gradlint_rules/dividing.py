"""Fixes of accumulation: the loss of a micro-batch divided by the window."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import back_propagated, call_of, skip, window_of
from gradlint_rules.order import (
    calls_of,
    names_of,
    nested,
    related_statement,
)
from gradlint_rules.uncut import values_of


def divided(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The loss of a micro-batch divided by the window."""
    backward = source.statement(finding.at)
    step = related_statement(finding, Role.STEP, source)
    if source.scope(step) is not source.scope(backward):
        step = call_of(source.scope(step), backward, source)
    window = _rounds_before(step, backward, source, is_sized="sized" in finding.hints)
    if window is None:
        gate = next(
            (outer for outer in nested(step, source) if isinstance(outer, ast.If)), None
        ) or skip(step, source)
        window = _divisor(_window(gate.test, source), source)
    loss = back_propagated(backward, source)
    return (source.replace(loss, f"{source.operand(loss)} / {window}"),)


def _window(condition: ast.expr, source: FixSource) -> ast.expr:
    """The N of `if (i + 1) % N == 0:`, or of `last = (i + 1) % N == 0` before `if last:`."""
    try:
        return window_of(condition, source)
    except NoFixError:
        match condition:
            case ast.Name():
                bound = values_of(condition, source, condition)
                if len(bound) == 1:
                    return window_of(bound[0], source)
        raise


def _rounds_before(
    step: ast.stmt, backward: ast.stmt, source: FixSource, *, is_sized: bool
) -> str | None:
    """How often the loop around a backward goes round, where the step stands behind it."""
    loops = [outer for outer in source.around(backward) if isinstance(outer, ast.For | ast.While)]
    behind = set(source.around(step))
    match [loop for loop in loops if loop not in behind]:
        case [ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[number]))]:
            return _divisor(number, source)
        case [ast.For(iter=ast.Name() | ast.Attribute() as listed)] if is_sized:
            return f"len({source.text(listed)})"
        case [ast.For(iter=ast.Name() as listed)] if _is_list(listed, source) or _is_given_list(
            listed, source
        ):
            return f"len({listed.id})"
        case [ast.For(iter=over)]:
            return _pieces(over, source)
    return None


def _divisor(number: ast.expr, source: FixSource) -> str:
    return source.text(number) if isinstance(number, ast.Constant) else source.operand(number)


def _pieces(over: ast.expr, source: FixSource) -> str | None:
    """Into how many pieces something is cut to go over them: the N of `x.chunk(N)`,
    `zip(x.chunk(N), y.chunk(N))`, `batches[start : start + N]`.
    """
    match over:
        case ast.Call(func=ast.Attribute(attr="chunk") as func, args=[*_, number]):
            return (
                None
                if isinstance(number, ast.Starred)
                else _divisor(_pieces_of(over, func, source), source)
            )
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=[first, *_]):
            return _pieces(first, source)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=ast.expr() as upper, step=None)):
            return _length(lower, upper, source)
        case ast.Name():
            found = {
                _pieces(value, source)
                for value in values_of(over, source, over)
                if isinstance(value, ast.Call)
            }
            return found.pop() if len(found) == 1 else None
    return None


def _length(lower: ast.expr | None, upper: ast.expr, source: FixSource) -> str | None:
    """How many items `batches[:4]` and `batches[start : start + 4]` have, but for the last."""
    match upper:
        case ast.BinOp(op=ast.Add(), left=start, right=number) if lower is not None:
            is_from_there = source.text(start) == source.text(lower)
            return _divisor(number, source) if is_from_there else None
        case _ if lower is None and not isinstance(upper, ast.UnaryOp):
            return _divisor(upper, source)
    return None


def _pieces_of(call: ast.Call, func: ast.Attribute, source: FixSource) -> ast.expr:
    """How many pieces `x.chunk(4)` and `torch.chunk(x, 4)` make."""
    place = 1 if source.called(func).startswith("torch.") else 0
    if len(call.args) <= place:
        raise NoFixError("the number of pieces is not written there")
    return call.args[place]


def _is_given_list(name: ast.Name, source: FixSource) -> bool:
    """Whether an argument is a list in all calls of its function in this file, and there are
    some.
    """
    scope = source.scope(name)
    if isinstance(scope, ast.Module):
        return False
    names = [argument.arg for argument in scope.args.args if argument.arg != "self"]
    if name.id not in names or name.id in names_of(scope, ast.Store):
        return False
    given = [call.args[names.index(name.id) :][:1] for call in calls_of(source.tree, scope.name)]
    values = [value for each in given for value in each]
    return (
        bool(values)
        and len(values) == len(given)
        and all(_is_made_list(value, source) for value in values)
    )


def _is_made_list(value: ast.expr, source: FixSource) -> bool:
    match value:
        case ast.List() | ast.ListComp() | ast.Tuple() | ast.Call(func=ast.Name(id="list")):
            return True
        case ast.Subscript(slice=ast.Slice(), value=whole):
            return _is_made_list(whole, source)
        case ast.Name():
            values = values_of(value, source, value)
            return bool(values) and all(_is_made_list(each, source) for each in values)
    return False


def _is_list(name: ast.Name, source: FixSource) -> bool:
    """Whether all that its function binds a name to is a list that is made there."""
    scope = source.scope(name)
    same = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name.id]
    bound = [
        node for node in same if isinstance(node.ctx, ast.Store) and source.scope(node) is scope
    ]
    is_given = any(isinstance(node, ast.arg) and node.arg == name.id for node in ast.walk(scope))
    return (
        bool(bound)
        and not is_given
        and all(_makes_list(next(source.around(node))) for node in bound)
    )


def _makes_list(binding: ast.AST) -> bool:
    """Whether `x = list(…)`, `x := list(…)` or `x = [… for …]` stands there."""
    match binding:
        case (
            ast.Assign(
                targets=[ast.Name()], value=ast.ListComp() | ast.Call(func=ast.Name(id="list"))
            )
            | ast.NamedExpr(value=ast.ListComp() | ast.Call(func=ast.Name(id="list")))
        ):
            return True
    return False
