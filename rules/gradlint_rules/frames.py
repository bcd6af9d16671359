"""Fixes across functions: where two events meet in one function, and a call that moves there.

def fit(self, loader):
    for batch in loader:
        self.loss(batch).backward()
        self.update()                 # the step is in here
        clip_grad_norm_(self.model.parameters(), 1.0)
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence

from gradlint.finding import Finding, Fix, Span
from gradlint.rule import FixSource, NoFixError
from gradlint.tape import Event
from gradlint_rules.order import called_name, calls_of, together, whole_call
from gradlint_rules.translated import FUNCTIONS, Function, lifted, sunk
from gradlint_rules.uncut import safe, unsafe


def hints_of(moved: Event, one: Event, other: Event) -> Mapping[str, str]:
    """Where two events stand in the innermost function that leads to both, and by which calls one
    comes there from the event that is to be moved: `out` of its function, and `into` that one.

    Nothing where these are not all in one file.
    """
    depth = _common(one.stack, other.stack)
    shared = _common(moved.stack, one.stack[:depth])
    out, into = moved.stack[shared:], one.stack[shared:depth]
    first, second = (*one.stack, one.at)[depth], (*other.stack, other.at)[depth]
    file = (moved.at.path, moved.at.cell)
    if any((each.path, each.cell) != file for each in (first, second, *out, *into)):
        return {}
    return {
        "first": str(first.line),
        "second": str(second.line),
        "out": _lines(out),
        "into": _lines(into),
    }


def _common(one: Sequence[Span], other: Sequence[Span]) -> int:
    """With how many calls both begin."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len(list(pairs))


def _lines(calls: Sequence[Span]) -> str:
    return " ".join(str(each.line) for each in calls)


def meeting(finding: Finding, source: FixSource) -> tuple[ast.stmt, ast.stmt]:
    """The statements that lead to the two events of `hints_of`."""
    if "first" not in finding.hints:
        raise NoFixError("they stand in different files")
    first, second = (source.statement_on(int(finding.hints[name])) for name in ("first", "second"))
    return first, second


def moved_before(
    message: str, statement: ast.stmt, anchor: ast.stmt, finding: Finding, source: FixSource
) -> Fix:
    """A call of another function moved before a statement of the function where two events meet."""
    statement, lines = _carried(statement, finding, source)
    if lines:
        return unsafe(message, (*source.remove(statement), *source.before(anchor, *lines)))
    return safe(message, source.move_before([statement], _beside(statement, anchor, source)))


def moved_after(
    message: str, statement: ast.stmt, anchor: ast.stmt, finding: Finding, source: FixSource
) -> Fix:
    """A call of another function moved behind a statement of the function where two events meet."""
    statement, lines = _carried(statement, finding, source)
    if lines:
        return unsafe(message, (*source.remove(statement), *source.after(anchor, *lines)))
    return safe(message, source.move_after([statement], _beside(statement, anchor, source)))


def _beside(statement: ast.stmt, anchor: ast.stmt, source: FixSource) -> ast.stmt:
    """What holds `anchor` in the block of a statement, which leaves no condition behind."""
    here, there = together(statement, anchor, source)
    if here is not statement:
        raise NoFixError("it stands under a condition of its own")
    return there


def _carried(
    statement: ast.stmt, finding: Finding, source: FixSource
) -> tuple[ast.stmt, list[str]]:
    """The statement that moves, and its lines in the other function; none where it stands in that
    function already.

    What is the whole of a function moves by the call of that.
    """
    out, into = ([int(line) for line in finding.hints[name].split()] for name in ("out", "into"))
    if whole_call(statement) is None:
        raise NoFixError("what moves is more than a call")
    statement = _guarded(statement, source)
    while out and is_all_of_it(statement, source):
        outer = source.statement(_only_call(source.scope(statement), out.pop(), source))
        if whole_call(outer) is None:
            raise NoFixError("the function is called within something else")
        statement = _guarded(outer, source)
    if not out and not into:
        return statement, []
    if len(out) + len(into) > 1 or (out and statement not in source.scope(statement).body):
        raise NoFixError("it does not move from one function straight into another")
    if out:
        call = _only_call(source.scope(statement), out[0], source)
        return statement, lifted(statement, call, source)
    function = _called_on(into[0], source)
    return statement, sunk(statement, _only_call(function, into[0], source), function, source)


def _guarded(statement: ast.stmt, source: FixSource) -> ast.stmt:
    """A statement with the `if` that is about nothing else."""
    outer = next(source.around(statement))
    while isinstance(outer, ast.If) and outer.body == [statement] and not outer.orelse:
        statement, outer = outer, next(source.around(outer))
    return statement


def is_all_of_it(statement: ast.stmt, source: FixSource) -> bool:
    """Whether a function does nothing but `statement`."""
    scope = source.scope(statement)
    body = [each for each in scope.body if not _is_docstring(each)]
    return isinstance(scope, FUNCTIONS) and body == [statement]


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _only_call(function: ast.AST, line: int, source: FixSource) -> ast.Call:
    """The call of a function on a line; no other place of the file calls it."""
    if not isinstance(function, FUNCTIONS):
        raise NoFixError("no function is called")
    calls = list(calls_of(source.tree, function.name))
    if len(calls) != 1 or source.statement(calls[0]) is not source.statement_on(line):
        raise NoFixError("the function is called from elsewhere, too")
    return calls[0]


def _called_on(line: int, source: FixSource) -> Function:
    """The function of the file that is called on a line."""
    calls = (node for node in ast.walk(source.statement_on(line)) if isinstance(node, ast.Call))
    names = {called_name(call) for call in calls}
    functions = (node for node in ast.walk(source.tree) if isinstance(node, FUNCTIONS))
    found = [function for function in functions if function.name in names]
    if len(found) != 1:
        raise NoFixError("which function is called is not known")
    return found[0]
