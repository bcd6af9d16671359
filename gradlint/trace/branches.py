"""Conditions on the way to an instruction, and how likely each is to ask a counter."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TypeGuard

from gradlint.finding import Span
from gradlint.ir.patterns import SUBJECT, as_ifs
from gradlint.trace.frames import Frame, users_files
from gradlint.trace.loops import around, contains, counters
from gradlint.trace.source import Position, extent, function, once, position, source_file, span_of

_STATEMENTS = (ast.stmt, ast.ExceptHandler)


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition, and the side of it that something stands on; what it names, and how it asks by
    itself.
    """

    at: Span
    text: str
    side: bool
    names: frozenset[str]
    counting: int


@once
def branches(code: CodeType, instruction: int) -> tuple[Branch, ...]:
    """The conditions on the way to an instruction, inside the innermost loop of its function,
    outermost first.
    """
    body = function(code)
    if body is None:
        return ()
    at = position(Frame(0, code, instruction))
    nodes = list(around(body, at, False))
    rounds = counters(code, instruction)
    conditions = _conditions(nodes[-1] if nodes else body, at)
    return tuple(_branch(code.co_filename, test, side, rounds) for test, side in conditions)


def _conditions(node: ast.AST, at: Position) -> Iterator[tuple[ast.expr, bool]]:
    blocks = [block for _, block in ast.iter_fields(node) if isinstance(block, list)]
    for block in blocks:
        child = next(
            (each for each in block if isinstance(each, _STATEMENTS) and contains(each, at)), None
        )
        if child is None:
            continue
        yield from ((each.test, False) for each in block[: block.index(child)] if _leaves(each))
        if isinstance(child, ast.Match):
            yield from _conditions(ast.Module(as_ifs(child), []), at)
            continue
        if isinstance(child, ast.If):
            holds = any(contains(each, at) for each in child.body)
            if holds or any(contains(each, at) for each in child.orelse):
                yield child.test, holds
        yield from _conditions(child, at)


def _leaves(statement: ast.AST) -> TypeGuard[ast.If]:
    """Whether nothing after it is done where its condition holds: `if not is_due: return`."""
    leave = ast.Return | ast.Continue | ast.Break
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], leave)
    )


def _branch(path: str, test: ast.expr, side: bool, rounds: Sequence[str]) -> Branch:
    text = ast.unparse(test)
    if SUBJECT in text:  # a pattern, quoted as it is written
        line, column, _, end = extent(test)
        text = linecache.getline(path, line)[column:end]
    names = frozenset(getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(test))
    return Branch(
        span_of(path, extent(test)),
        text,
        side,
        names,
        max(_counting(test), 2 * bool(names & {*rounds})),
    )


def _counting(test: ast.AST) -> int:
    """How something asks: by a remainder, by numbers held against each other, by a call, or by a
    truth.
    """
    asked = list(ast.walk(test))
    if any(isinstance(each, ast.Mod) for each in asked):
        return 3
    if any(isinstance(each, ast.Compare) and _compares_numbers(each) for each in asked):
        return 2
    return int(any(isinstance(each, ast.Call) for each in asked))


def _compares_numbers(test: ast.Compare) -> bool:
    is_text = any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) for each in test.comparators
    )
    return not is_text and not any(
        isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in test.ops
    )


@functools.cache
def counts(branch: Branch) -> int:
    """How likely a condition is to ask a counter: by itself, or by the functions and properties
    that it names.
    """
    files = users_files() if branch.counting < 3 else []
    named = (
        node
        for path in files
        for (_, name), node in source_file(path).functions.items()
        if name in branch.names
    )
    return max([branch.counting, *map(_counting, named)])
