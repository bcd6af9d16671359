"""A fix of context managers that freeze: they unfreeze when their context ends.

@contextlib.contextmanager
def frozen(module):
    module.requires_grad_(False)
    yield module
"""

from __future__ import annotations

import ast
import copy

from gradlint.finding import Edit
from gradlint.rule import FixSource

_MANAGERS = {"contextlib.contextmanager", "contextlib.asynccontextmanager"}


def thawed_behind(freezing: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """What a context manager freezes unfrozen behind its `yield`, whatever happens in its context;
    nothing in any other function.
    """
    scope = source.scope(freezing)
    if isinstance(scope, ast.Module) or freezing not in scope.body:
        return ()
    if not any(source.called(each) in _MANAGERS for each in scope.decorator_list):
        return ()
    following = scope.body[scope.body.index(freezing) + 1 :]
    given = next((each for each in following if _yields(each)), None)
    if given is None or _sets_flags(following):
        return ()
    behind = ast.unparse(_Unfrozen().visit(copy.deepcopy(freezing))).splitlines()
    lines = ["try:", f"    {source.text(given)}", "finally:", *(f"    {line}" for line in behind)]
    return source.instead(given, *lines)


def _yields(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)


def _sets_flags(statements: list[ast.stmt]) -> bool:
    """Whether the context manager unfreezes something by itself."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("requires_grad", "requires_grad_")
        for statement in statements
        for node in ast.walk(statement)
    )


class _Unfrozen(ast.NodeTransformer):
    """`True` for `False`."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(True) if node.value is False else node
