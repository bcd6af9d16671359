"""Fixes of grad mode: what switches it off taken away, or no longer around the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gradlint.finding import Edit
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import names_of

_SETS_MODE = "torch.set_grad_enabled"
_OFF = {
    "torch.no_grad",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.autograd.inference_mode",
}


def grad_mode_on(node: ast.expr, source: FixSource, lines: Iterable[int] = ()) -> tuple[Edit, ...]:
    """Takes away what switches grad mode off: the decorator, or the `with` around what `lines`
    compute.
    """
    for outer in source.around(node):
        match outer:
            case (
                ast.FunctionDef(decorator_list=[*decorators])
                | ast.AsyncFunctionDef(decorator_list=[*decorators])
            ):
                if node in decorators:
                    return source.remove_decorator(node)
                break
            case ast.Call(func=ast.Attribute(attr="enter_context"), args=[given]) if given is node:
                statement = source.statement(node)
                if isinstance(statement, ast.Expr) and statement.value is outer:
                    return source.remove(statement)
                break
            case ast.With(items=items) if any(item.context_expr is node for item in items):
                return _unwrapped(outer, node, set(lines), source)
            case ast.Expr(value=ast.Call(func=func, args=[ast.Constant(value=False)]) as call) if (
                call is node
            ):
                if source.called(func) == _SETS_MODE:
                    return _left_on(outer, source)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                return _without_named(name, set(lines), source)
    raise NoFixError("neither a decorator nor a `with`")


def _left_on(statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """Takes away `torch.set_grad_enabled(False)`, and what switches grad mode on again in the same
    block.
    """
    block = source.block(statement)
    gone = [statement]
    for each in block[block.index(statement) + 1 :]:
        match each:
            case ast.Expr(value=ast.Call(func=func, args=[ast.Constant(value=True)])):
                if source.called(func) == _SETS_MODE:
                    gone.append(each)
                    break
    return tuple(edit for each in gone for edit in source.remove(each))


def _without_named(name: str, lines: set[int], source: FixSource) -> tuple[Edit, ...]:
    """Takes what computes the loss out of the one `with` that enters a context by its name."""
    found = [
        (node, item.context_expr)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Name) and item.context_expr.id == name
        if _holds_any(node, lines)
    ]
    if len(found) != 1:
        raise NoFixError("where it is entered is not in view")
    ((compound, context),) = found
    return source.unwrap(compound, context, _meant(compound.body, lines, is_off=True))


def _unwrapped(
    compound: ast.With, context: ast.expr, lines: set[int], source: FixSource
) -> tuple[Edit, ...]:
    """Takes what computes the loss out of a `with`; where that wraps a function, maybe the
    decorator that does so.
    """
    if _is_used_as_entered(compound, context, source):
        raise NoFixError("what it is entered as is used")
    yielding = [
        each
        for each in compound.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield)
    ]
    # in a generator that is a context, what runs under the `with` is what the caller has there
    if yielding:
        return source.unwrap(compound, context, yielding)
    if not _is_wrapper(compound.body):
        meant = _meant(compound.body, lines, is_grad_mode(context, source))
        return source.unwrap(compound, context, meant)
    functions = [outer for outer in source.around(compound) if isinstance(outer, ast.FunctionDef)]
    decorated = _decorated_by(functions[-1].name, source) if functions else []
    if len(functions) > 1:
        uses = _uses(functions[-1].name, source)
        is_its_one_use = len(decorated) == 1 and uses == 1
        if not uses or is_its_one_use:  # where it is not used here, other files use it
            return source.unwrap(compound, context)
    applied = [decorator for node, decorator in decorated if _holds_any(node, lines)]
    if len(applied) != 1:
        raise NoFixError("what the wrapper is used on is not in view")
    return source.remove_decorator(applied[0])


def _is_used_as_entered(compound: ast.With, context: ast.expr, source: FixSource) -> bool:
    """Whether the name that a context is entered as is read anywhere."""
    entered = {
        name for item in compound.items if item.context_expr is context for name in _bound_by(item)
    }
    return any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in entered
        for n in ast.walk(source.tree)
    )


def _decorated_by(
    name: str, source: FixSource
) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.expr]]:
    """The functions that a decorator of this name wraps, each with the decorator."""
    return [
        (node, decorator)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name) and decorator.id == name
    ]


def _holds_any(node: ast.stmt, lines: set[int]) -> bool:
    """Whether one of these lines is a line of a statement."""
    return any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)


def _bound_by(item: ast.withitem) -> set[str]:
    return names_of(item.optional_vars, ast.Store) if item.optional_vars is not None else set()


def _uses(name: str, source: FixSource) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))


def _meant(body: Sequence[ast.stmt], lines: set[int], is_off: bool) -> list[ast.stmt]:
    """What of a body is to run with grad mode on: from the first of these lines to the last, and
    what follows.

    Where the context does nothing but switch grad mode off, what only measures the results, which
    it reads, stays.
    """
    places = [at for at, each in enumerate(body) if _holds_any(each, lines)]
    if not places:
        return []
    meant = body[places[0] : places[-1] + 1]
    results = {name for each in meant for name in names_of(each, ast.Store)}
    following = body[places[-1] + 1 :]
    return [
        *meant,
        *(each for each in following if not is_off or not results & names_of(each, ast.Load)),
    ]


def _is_wrapper(body: Sequence[ast.stmt]) -> bool:
    """Whether a body runs whatever it is given: it yields, or calls with `*args`."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    return any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Starred) for node in nodes)


def is_grad_mode(node: ast.expr, source: FixSource) -> bool:
    """Whether an expression is what switches grad mode off."""
    return source.called(node.func if isinstance(node, ast.Call) else node) in _OFF
