"""What stands in the source at an instruction: its span, its text, the name it is bound to, and the
loops around it.

Which statement a position is in is a question to the syntax tree; what code may do is one to
`source/effects.py`.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Concatenate, ParamSpec, TypeVar

from gradlint.finding import Span
from gradlint.source import document
from gradlint.source.lines import characters, split_lines
from gradlint.source.parse import SyntaxFault
from gradlint.source.places import Program
from gradlint.tape import GLANCES
from gradlint.trace.frames import Frame, Place, ipython_cell

_SHOWN = 72
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Position = tuple[int, int, int, int]
Places = ParamSpec("Places")
Answer = TypeVar("Answer")


def once(
    function: Callable[Concatenate[CodeType, Places], Answer],
) -> Callable[Concatenate[CodeType, Places], Answer]:
    """Answers a question about instructions once. Code goes by its id: hashing it reads all of its
    constants.
    """
    known: dict[tuple[object, ...], tuple[Answer, CodeType]] = {}

    def answer(code: CodeType, /, *at: Places.args, **named: Places.kwargs) -> Answer:
        key = (id(code), *at)
        found = known.get(key)
        if found is None:
            # kept, so that its id stays what it is
            found = known[key] = (function(code, *at, **named), code)
        return found[0]

    functools.update_wrapper(answer, function)
    return answer


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the source: where, over what, the names of its counters, and what it goes over as
    it is written.
    """

    path: str
    line: int
    column: int
    over: str
    names: tuple[str, ...]
    text: str = ""
    ends_early: bool = False


@dataclass(eq=False, slots=True)
class _File:
    """A source file: its lines, its bindings, and its loops by function."""

    lines: list[str]
    names: dict[Position, str] = field(default_factory=dict)
    functions: dict[tuple[int, str], ast.AST] = field(default_factory=dict)
    contexts: dict[Position, str] = field(default_factory=dict)
    returned: set[Position] = field(default_factory=set)
    # calls and items that are written, and nothing is made of
    statements: set[Position] = field(default_factory=set)
    comprehensions: list[Comprehension] = field(default_factory=list)


def shown(path: str) -> str:
    """The path as a report shows it: relative to where the run began, where it lies below; of a
    cell, its number.
    """
    cell = ipython_cell(path)
    if cell:
        _cells[cell] = path
        return cell
    relative = os.path.relpath(path, _began)
    return path if relative.startswith("..") else relative


def lines(at: Span) -> list[str]:
    """The lines that a reported place counts: those of its file, or of its cell."""
    if at.cell:
        found = _notebook(os.path.join(_began, at.path))
        return (
            list(split_lines(document.cell(found.text, at.cell)))
            if isinstance(found, Program)
            else []
        )
    path = _cells.get(at.path) or os.path.join(_began, at.path)
    return [line.rstrip("\n") for line in linecache.getlines(path)]


def line(at: Span) -> str:
    """The line of the source at which a reported place begins."""
    found = lines(at)
    return found[at.line - 1].strip() if 0 < at.line <= len(found) else ""


def located(at: Span) -> Span:
    """Where a place is for those who read: in a notebook, in which cell."""
    if not at.path.endswith(document.NOTEBOOK) or at.cell:
        return at
    found = _notebook(os.path.join(_began, at.path))
    return found.located(at) if isinstance(found, Program) else at


@functools.cache
def _notebook(path: str) -> Program | SyntaxFault:
    return document.program(path, document.read(pathlib.Path(path)))


def begin() -> None:
    """Paths are shown from the folder that the process is in now."""
    global _began
    _began = os.getcwd()


_began = os.getcwd()
_cells: dict[str, str] = {}  # the files in which IPython keeps its cells, by what they are called


@functools.cache
def source_file(path: str) -> _File:
    """What is known of a source file, which is read once."""
    lines = linecache.getlines(path)
    found = _File(lines)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return found
    found.functions[1, "<module>"] = tree
    for node in ast.walk(tree):
        if isinstance(node, _INDEXED):
            _index(found, node)
    return found


_INDEXED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Return, ast.With, ast.AsyncWith),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Subscript, ast.Compare),
    *(ast.Attribute, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def _index(found: _File, node: ast.AST) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.functions[first, node.name] = node
            for decorator in node.decorator_list:
                found.contexts[extent(decorator)] = "decorator"
        case (
            ast.Assign(targets=[target], value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
        ):
            found.names[extent(value)] = (
                ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
            )
        case ast.AugAssign(target=target):
            found.names[extent(node)] = ast.unparse(target)
        case ast.Return(value=ast.expr() as value):
            found.returned.add(extent(value))
        case ast.Expr(value=ast.Call() as value):
            found.statements.add(extent(value))
        case ast.Subscript(ctx=ast.Store()):
            found.statements.add(extent(node))
        case ast.Compare(
            left=ast.Attribute(attr="grad") as gradient, ops=[ast.Is() | ast.IsNot(), *_]
        ):
            found.contexts[extent(gradient)] = "glance"
        case ast.Attribute(attr=name, value=ast.Attribute() as gradient) if name in GLANCES:
            whole = gradient.value if gradient.attr == "data" else gradient
            found.contexts[extent(whole)] = "glance"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            found.comprehensions.append(node)
        case ast.Lambda():
            found.functions[node.lineno, "<lambda>"] = node
        case ast.With() | ast.AsyncWith():
            found.contexts[extent(node)] = "with"  # where Python 3.11 says that it enters one
            for item in node.items:
                found.contexts[extent(item.context_expr)] = "with"
                for call in _entered_on(item.optional_vars, node.body):
                    found.contexts[extent(call)] = "with"


def _entered_on(stack: ast.expr | None, body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """`stack.enter_context(…)` in the block of `with ExitStack() as stack`: that ends with the
    block.
    """
    if not isinstance(stack, ast.Name):
        return
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=stack.id), attr="enter_context")):
                yield node


def function(code: CodeType) -> ast.AST | None:
    """The function, or the module, that a code object was made from; None for a class or a
    comprehension.
    """
    return source_file(code.co_filename).functions.get((code.co_firstlineno, code.co_name))


def module(path: str) -> ast.AST | None:
    """The tree of a file; None where it has none."""
    return source_file(path).functions.get((1, "<module>"))


def extent(node: ast.AST) -> Position:
    """Line, column, end line and end column of a node; columns in bytes from 0."""
    end_line, end_column = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0), end_line, end_column)


@functools.lru_cache(maxsize=4096)
def _positions(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    return tuple(code.co_positions())


def position(frame: Frame) -> Position:
    """Line, column, end line, end column of what the frame was executing; columns in bytes from
    0.
    """
    code = frame.code
    if frame.instruction < 0:
        return (code.co_firstlineno, 0, code.co_firstlineno, 0)
    line, end_line, column, end_column = _positions(code)[frame.instruction // 2]
    line = line or code.co_firstlineno
    return (line, column or 0, end_line or line, end_column or column or 0)


def seen_at(place: Place) -> str:
    """Where a place is, with the statement that stands there."""
    if not place:
        return "an unknown line"
    at = span(place[0].code, place[0].instruction)
    return f"{at.path}:{at.line} `{text(place[0].code, place[0].instruction)}`"


@once
def span(code: CodeType, instruction: int) -> Span:
    """Where that is, as a report says it."""
    if instruction < 0:
        return _whole_line(code.co_filename, code.co_firstlineno)
    return span_of(code.co_filename, position(Frame(0, code, instruction)))


def span_of(path: str, at: Position) -> Span:
    """What Python's parser gives as a position in a file, as a report says it: in characters from
    1.
    """
    line, column, end_line, end_column = at
    first, last = (
        characters(_line(path, line), column),
        characters(_line(path, end_line), end_column),
    )
    return Span(shown(path), line, first + 1, end_line, last + 1)


def _whole_line(path: str, line: int) -> Span:
    text = _line(path, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    return Span(shown(path), line, start + 1, line, len(text) + 1)


def _line(path: str, number: int) -> str:
    lines = source_file(path).lines
    return lines[number - 1] if number <= len(lines) else ""


@once
def text(code: CodeType, instruction: int) -> str:
    """The source of the expression, on one line and shortened."""
    at = span(code, instruction)
    lines = source_file(code.co_filename).lines[at.line - 1 : at.end_line]
    if not lines:
        return ""
    lines = list(lines)
    lines[-1] = lines[-1][: at.end_column - 1]
    lines[0] = lines[0][at.column - 1 :]
    whole = " ".join(" ".join(lines).split())
    return whole if len(whole) <= _SHOWN else whole[: _SHOWN - 3] + "..."


@once
def returning(code: CodeType, number: int) -> int:
    """The first instruction that returns from a function and may give None in this place of a
    tuple; else -1.
    """
    returns = (
        each
        for each in ast.walk(function(code) or ast.Module([], []))
        if isinstance(each, ast.Return)
    )
    fitting = {extent(each) for each in returns if _may_give_nothing(each.value, number)}
    found = (
        each.offset for each in dis.get_instructions(code) if each.opname.startswith("RETURN_")
    )
    return next((offset for offset in found if position(Frame(0, code, offset)) in fitting), -1)


def _may_give_nothing(value: ast.expr | None, number: int) -> bool:
    if not isinstance(value, ast.Tuple) or any(
        isinstance(each, ast.Starred) for each in value.elts
    ):
        return True
    given = value.elts[number] if number < len(value.elts) else None
    return not isinstance(given, ast.Constant) or given.value is None


def context(code: CodeType, instruction: int) -> str:
    """`with`, `decorator`, `glance` for a gradient that nothing is made of, or '' for a bare
    call.
    """
    if instruction < 0:
        return "decorator"
    return source_file(code.co_filename).contexts.get(position(Frame(0, code, instruction)), "")


def decorator_span(code: CodeType, words: Sequence[str]) -> Span:
    """The decorator of a function that is spelt with one of `words`; else the line where the
    function begins.
    """
    node = function(code)
    for decorator in getattr(node, "decorator_list", ()):
        if any(word in ast.unparse(decorator) for word in words):
            return span_of(code.co_filename, extent(decorator))
    return span(code, -1)


@once
def is_returned(code: CodeType, instruction: int) -> bool:
    """Whether what is evaluated at an instruction is returned."""
    return position(Frame(0, code, instruction)) in source_file(code.co_filename).returned


@once
def is_for_itself(code: CodeType, instruction: int, within: int) -> bool:
    """Whether what is evaluated at an instruction is for the statement around it alone:
    `x[mask].zero_()`.
    """
    statement = position(Frame(0, code, within))
    if statement not in source_file(code.co_filename).statements:
        return False
    line, column, end_line, end_column = position(Frame(0, code, instruction))
    begins = statement[:2] <= (line, column)
    return (
        begins
        and (end_line, end_column) <= statement[2:]
        and (line, column, end_line, end_column) != statement
    )


@once
def is_property(code: CodeType, instruction: int) -> bool:
    """Whether a function computes an attribute for each access, and returns what it evaluates at an
    instruction.
    """
    decorators = getattr(function(code), "decorator_list", ())
    return any(ast.unparse(each) == "property" for each in decorators) and is_returned(
        code, instruction
    )
