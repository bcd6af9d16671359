"""What the fixes of the training step share: statements that stand together, and the calls around a
finding.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from gradlint.finding import Finding, Role
from gradlint.rule import FixSource, NoFixError

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def nested(statement: ast.stmt, source: FixSource) -> list[ast.stmt]:
    """A statement and those around it, innermost first, as far as its function."""
    found = [statement]
    for outer in source.around(statement):
        if isinstance(outer, _DEFINITIONS):
            break
        if isinstance(outer, ast.stmt):
            found.append(outer)
    return found


def together(one: ast.stmt, other: ast.stmt, source: FixSource) -> tuple[ast.stmt, ast.stmt]:
    """The statements of one block that hold `one` and `other`, innermost."""
    for first in nested(one, source):
        block = source.block(first)
        for second in nested(other, source):
            if second in block:
                return first, second
    raise NoFixError("they stand in different functions")


def related_statement(finding: Finding, role: Role, source: FixSource) -> ast.stmt:
    """The statement at the related place with this role, in the file of the finding."""
    for related in finding.related:
        if related.role is role and related.at.path == finding.at.path:
            return source.statement(related.at)
    raise NoFixError(f"no related place is the {role.value}")


def calls_of(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    """The calls in `node` of methods (or functions) with these names, in the order of the
    source.
    """
    found = [
        each for each in ast.walk(node) if isinstance(each, ast.Call) and called_name(each) in names
    ]
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def called_name(call: ast.Call) -> str:
    """The last word of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def receiver(call: ast.Call, source: FixSource) -> str:
    """The `x` of `x.f()`."""
    if not isinstance(call.func, ast.Attribute):
        raise NoFixError("no method")
    return source.text(call.func.value)


def whole_call(statement: ast.stmt) -> ast.Call | None:
    """The call that a statement is, if it is nothing else."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    return None


def loop_around(statement: ast.AST, source: FixSource) -> ast.For | ast.While:
    """The innermost loop around a node, in its function."""
    for outer in source.around(statement):
        if isinstance(outer, ast.For | ast.While):
            return outer
        if isinstance(outer, _DEFINITIONS):
            break
    raise NoFixError("no loop stands around it")


def names_of(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    """The names that `node` loads or stores."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, context)
    }


def unused(wish: str, node: ast.AST) -> str:
    """A name like `wish` that nothing in `node` has: for a parameter, or the loop of a
    comprehension.
    """
    taken = {
        name
        for each in ast.walk(node)
        for name in (getattr(each, "id", ""), getattr(each, "arg", ""))
    }
    candidates = itertools.chain([wish], (f"{wish}_{number}" for number in itertools.count(1)))
    return next(name for name in candidates if name not in taken)
