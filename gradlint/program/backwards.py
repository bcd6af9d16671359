"""The lines of a file on which something is back-propagated, and the conditions around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint import memo
from gradlint.coverage import Written
from gradlint.dataclass import dataclass
from gradlint.interpret.gaps import BACKWARDS
from gradlint.source import effects
from gradlint.source.parse import Source


def backwards(source: Source) -> tuple[Written, ...]:
    """The calls of `backward` in a file, by their lines, each once."""
    if not any(f".{name}(" in source.text for name in BACKWARDS):
        return ()
    found = {step.written.line: step.written for step in _backwards(source.tree, 0, ())}
    return tuple(found[line] for line in sorted(found))


@dataclass(frozen=True, slots=True)
class Step:
    """A call of `backward`, and the names that the tests around it ask."""

    written: Written
    asked: frozenset[str]


@memo.of_programs
def steps(tree: ast.AST, function: int) -> tuple[Step, ...]:
    """The calls of `backward` in a function or at the top of a file, less those of functions within
    it.
    """
    return tuple(
        step for step in _backwards(tree, function, ()) if step.written.function == function
    )


def _backwards(tree: ast.AST, function: int, tests: tuple[ast.expr, ...]) -> Iterator[Step]:
    """The calls of `backward` below a node, which stands in a function and behind some tests."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _backwards(node, node.lineno, ())
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in BACKWARDS
        ):
            around = tuple((test.lineno, test.end_lineno or test.lineno) for test in tests)
            yield Step(Written(node.lineno, function, around), effects.mentions(tests))
        inner = (*tests, node.test) if isinstance(node, ast.If | ast.While) else tests
        yield from _backwards(node, function, inner)
