"""A `while` that takes items by `next` until there are none is a `for`.

    while True:
        try:
            batch = next(batches)       # for batch in batches:
        except StopIteration:
            break
        step(batch)                     #     step(batch)

So is `while (batch := next(batches, None)) is not None:`, and a `while True` that breaks where the
default is what it got. All run the same, so that a rule need not know how a program is written.
"""

from __future__ import annotations

import ast


def as_for(loop: ast.While) -> ast.For | None:
    """The `for` that a `while` is, if it is one; the statements in it are the same nodes."""
    is_endless = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    if is_endless and loop.body:
        return _of_tries(loop) or _of_breaks(loop)
    return _of_test(loop)


def _of_tries(loop: ast.While) -> ast.For | None:
    first, *rest = loop.body
    match first:
        case ast.Try(
            body=[ast.Assign(targets=[target], value=value)],
            handlers=[
                ast.ExceptHandler(type=ast.Name(id="StopIteration"), name=None, body=[ast.Break()])
            ],
            orelse=before,
            finalbody=[],
        ):
            iterator = _iterator(value, has_default=False)
            return _made(loop, target, iterator, [*before, *rest], []) if iterator else None
    return None


def _of_breaks(loop: ast.While) -> ast.For | None:
    match loop.body:
        case [
            ast.Assign(targets=[ast.Name(id=name) as target], value=value),
            ast.If(
                test=ast.Compare(
                    left=ast.Name(id=asked), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
                ),
                body=[ast.Break()],
                orelse=[],
            ),
            *rest,
        ] if asked == name:
            iterator = _iterator(value, has_default=True)
            return _made(loop, target, iterator, rest, []) if iterator else None
    return None


def _of_test(loop: ast.While) -> ast.For | None:
    match loop.test:
        case ast.Compare(
            left=ast.NamedExpr(target=target, value=value),
            ops=[ast.IsNot()],
            comparators=[ast.Constant(value=None)],
        ):
            iterator = _iterator(value, has_default=True)
            return _made(loop, target, iterator, loop.body, loop.orelse) if iterator else None
    return None


def _iterator(taken: ast.expr, *, has_default: bool) -> ast.Name | ast.Attribute | None:
    """What `next` takes an item of, with the default None or with none."""
    match taken:
        case ast.Call(
            func=ast.Name(id="next"),
            args=[ast.Name() | ast.Attribute() as iterator, *default],
            keywords=[],
        ):
            is_none = [isinstance(each, ast.Constant) and each.value is None for each in default]
            return iterator if is_none == [True] * has_default else None
    return None


def _made(
    loop: ast.While,
    target: ast.expr,
    iterator: ast.expr,
    body: list[ast.stmt],
    otherwise: list[ast.stmt],
) -> ast.For | None:
    if not body or _speaks_of(body, iterator):
        return None
    made = ast.For(target=target, iter=iterator, body=body, orelse=otherwise)
    return ast.copy_location(made, loop)


def _speaks_of(body: list[ast.stmt], iterator: ast.expr) -> bool:
    """Whether the loop does something with the iterator besides: takes an item more, begins it
    anew.
    """
    written = ast.unparse(iterator)
    return any(
        isinstance(each, type(iterator)) and ast.unparse(each) == written
        for statement in body
        for each in ast.walk(statement)
    )
