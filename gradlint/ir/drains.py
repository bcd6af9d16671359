"""A `while True` that takes items by `next` until there are none is a `for`.

    while True:
        try:
            batch = next(batches)       # for batch in batches:
        except StopIteration:
            break
        step(batch)                     #     step(batch)

Both run the same, so that a rule need not know which of the two a program is written in.
"""

from __future__ import annotations

import ast


def as_for(loop: ast.While) -> ast.For | None:
    """The `for` that a `while` is, if it is one; the statements in it are the same nodes."""
    if not (isinstance(loop.test, ast.Constant) and loop.test.value and loop.body):
        return None
    first, *rest = loop.body
    match first:
        case ast.Try(
            body=[
                ast.Assign(
                    targets=[target],
                    value=ast.Call(
                        func=ast.Name(id="next"),
                        args=[ast.Name() | ast.Attribute() as iterator],
                        keywords=[],
                    ),
                )
            ],
            handlers=[
                ast.ExceptHandler(type=ast.Name(id="StopIteration"), name=None, body=[ast.Break()])
            ],
            orelse=before,
            finalbody=[],
        ):
            body = [*before, *rest]
            if not body or _speaks_of(body, iterator):
                return None
            made = ast.For(target=target, iter=iterator, body=body, orelse=[])
            return ast.copy_location(made, loop)
    return None


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
