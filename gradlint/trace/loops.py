"""Loops and comprehensions around an instruction, as the source has them."""

from __future__ import annotations

import ast
import dis
import functools
from collections.abc import Iterator, Sequence
from types import CodeType

from gradlint.source.blocks import ends_early
from gradlint.trace.frames import Frame
from gradlint.trace.source import (
    Comprehension,
    Loop,
    Position,
    extent,
    function,
    once,
    position,
    source_file,
)

_FOR_ITER = dis.opmap["FOR_ITER"]
AnyLoop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# what has statements of the same function inside
_BLOCKS = (
    *_LOOPS,
    *(ast.If, ast.Try, ast.TryStar, ast.ExceptHandler),
    *(ast.With, ast.AsyncWith, ast.Match, ast.match_case),
)
_WINDOWS = ("islice", "batched")
_FRAMES = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")  # of comprehensions


@once
def loops(code: CodeType, instruction: int) -> tuple[Loop, ...]:
    """The loops of its own function around an instruction, outermost first."""
    if code.co_name.startswith("<") and code.co_name != "<module>":
        return ()
    body = function(code)
    if body is None:
        return ()
    at = position(Frame(0, code, instruction))
    return tuple(
        _loop(code.co_filename, loop, body)
        for loop in around(body, at, iterates(code, instruction))
    )


@once
def comprehensions(code: CodeType, instruction: int) -> tuple[Loop, ...]:
    """The loops of comprehensions in whose rounds its own frame is at an instruction, outermost
    first.
    """
    if instruction < 0:
        return ()
    path, at = code.co_filename, position(Frame(0, code, instruction))
    return tuple(
        _going_over(
            path,
            extent(generator.target),
            generator,
            "range" if _counts(generator.iter) else "data",
        )
        for each in _own(
            [each for each in source_file(path).comprehensions if _computes(each, at)], code
        )
        for generator in each.generators
    )


def _computes(node: Comprehension, at: Position) -> bool:
    """Whether a comprehension comes there in each round."""
    parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    return any(contains(part, at) for part in parts)


def _own(around: Sequence[Comprehension], code: CodeType) -> Sequence[Comprehension]:
    """Of the comprehensions around a place, those that run in the frame of `code`.

    A generator has a frame of its own; a list, a set and a dict have one up to Python 3.11.
    """
    whole = function(code)
    first = len(around)
    if whole is None:
        separate = (
            (ast.GeneratorExp,)
            if code.co_name == "<genexpr>"
            else (ast.ListComp, ast.SetComp, ast.DictComp)
        )
        first = next(
            (index for index in reversed(range(first)) if isinstance(around[index], separate)),
            first,
        )
        return around[first:] if code.co_name in _FRAMES else ()
    while (
        first
        and not isinstance(around[first - 1], ast.GeneratorExp)
        and _lies_in(around[first - 1], whole)
    ):
        first -= 1
    return around[first:]


def _lies_in(node: ast.AST, whole: ast.AST) -> bool:
    return isinstance(whole, ast.Module) or contains(whole, extent(node))


def called(code: CodeType, instruction: int) -> Loop:
    """A loop over batches below a call, in a file of a library's."""
    line, column, _, _ = position(Frame(0, code, instruction))
    return Loop(code.co_filename, line, column, "data", ())


@once
def iterates(code: CodeType, instruction: int) -> bool:
    """Whether a `for` asks there for what is next."""
    return instruction >= 0 and code.co_code[instruction] == _FOR_ITER


def around(function: ast.AST, at: Position, iterates: bool) -> Iterator[AnyLoop]:
    """The loops of a function around a place, outermost first."""
    for loop in _loops_of(function):
        header = loop.test if isinstance(loop, ast.While) else loop.iter
        inside = any(contains(each, at) for each in loop.body)
        tests = isinstance(loop, ast.While) and contains(header, at)
        if inside or tests or (iterates and at in (extent(header), extent(loop))):
            yield loop


@functools.cache
def _loops_of(function: ast.AST) -> tuple[AnyLoop, ...]:
    """All loops of a function, an outer one before those inside of it."""
    return tuple(each for each in _statements(function) if isinstance(each, _LOOPS))


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, each before those inside of it; not those of a function or class
    that is defined there.
    """
    for _, part in ast.iter_fields(block):
        for each in part if isinstance(part, list) else ():
            if isinstance(each, _BLOCKS):
                yield each
                yield from _statements(each)


def contains(node: ast.AST, at: Position) -> bool:
    """Whether a place lies within a node."""
    line, column, end_line, end_column = extent(node)
    return (line, column) <= at[:2] and at[2:] <= (end_line, end_column)


@functools.cache
def _loop(path: str, node: AnyLoop, within: ast.AST) -> Loop:
    if isinstance(node, ast.While):
        return Loop(path, node.lineno, node.col_offset, "while", (), ast.unparse(node.test), True)
    return _going_over(
        path, extent(node), node, "window" if _is_window(node.iter, within) else _over(node)
    )


def _going_over(
    path: str, at: Position, node: ast.For | ast.AsyncFor | ast.comprehension, over: str
) -> Loop:
    names = tuple(each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))
    early = not isinstance(node, ast.comprehension) and ends_early(node)
    return Loop(path, *at[:2], over, names[:2], ast.unparse(node.iter), early)


def _over(node: ast.For | ast.AsyncFor) -> str:
    counts = _counts(node.iter)
    nested = any(isinstance(inner, (ast.For, ast.While)) for inner in node.body)
    if "epoch" in ast.unparse(node.target).lower() or (nested and counts):
        return "epochs"
    return "range" if counts else "data"


def _counts(iterable: ast.expr) -> bool:
    return ast.unparse(iterable).startswith("range(")


def _is_window(iterable: ast.expr, within: ast.AST) -> bool:
    """Whether it has, each time that it is gone over, the next few items of a stream, by how its
    name is bound.
    """
    if isinstance(iterable, ast.Subscript) and isinstance(iterable.slice, ast.Slice):
        return _is_next_slice(iterable.slice, within)
    if not isinstance(iterable, ast.Name):
        return False
    turning = [each for each in ast.walk(within) if isinstance(each, _LOOPS)]
    return any(
        _takes_some(value)
        for loop in turning
        for name, value in _bound(loop)
        if name == iterable.id
    )


def _is_next_slice(part: ast.Slice, within: ast.AST) -> bool:
    """Whether it is the part that a loop has come to: `batches[start : start + 4]`."""
    loops = (each for each in ast.walk(within) if isinstance(each, ast.For))
    moving = {each.target.id for each in loops if isinstance(each.target, ast.Name)}
    return isinstance(part.lower, ast.Name) and part.lower.id in moving and part.upper is not None


def _bound(loop: AnyLoop) -> Iterator[tuple[str, ast.expr]]:
    """What the rounds of a loop bind to names: of what it goes over, an item is bound."""
    for node in ast.walk(loop):
        match node:
            case (
                ast.For(target=ast.Name(id=name), iter=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _takes_some(value: ast.expr) -> bool:
    calls = (each.func for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(getattr(each, "attr", getattr(each, "id", "")) in _WINDOWS for each in calls)


@once
def counters(code: CodeType, instruction: int) -> tuple[str, ...]:
    """The names of the counters of the loops around an instruction."""
    return tuple(name for loop in loops(code, instruction) for name in (loop.names[:1] or ("",)))
