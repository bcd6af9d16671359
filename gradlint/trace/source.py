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
from typing import Concatenate, ParamSpec, TypeGuard, TypeVar

from gradlint.evidence import is_loss_variable
from gradlint.finding import Span
from gradlint.ir.patterns import SUBJECT, as_ifs
from gradlint.source import document
from gradlint.source.blocks import ends_early
from gradlint.source.parse import SyntaxFault, characters, split_lines
from gradlint.source.places import Program
from gradlint.tape import GLANCES
from gradlint.trace.frames import Frame, Place, ipython_cell, users_files

_SHOWN = 72
_FOR_ITER = dis.opmap["FOR_ITER"]
_Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WINDOWS = ("islice", "batched")
_FRAMES = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")  # of comprehensions
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_STATEMENTS = (ast.stmt, ast.ExceptHandler)
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
    comprehensions: list[_Comprehension] = field(default_factory=list)


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
def _file(path: str) -> _File:
    lines = linecache.getlines(path)
    found = _File(lines)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return found
    found.functions[1, "<module>"] = tree
    for node in ast.walk(tree):
        _index(found, node)
    return found


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
    return _file(code.co_filename).functions.get((code.co_firstlineno, code.co_name))


def module(path: str) -> ast.AST | None:
    """The tree of a file; None where it has none."""
    return _file(path).functions.get((1, "<module>"))


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
    lines = _file(path).lines
    return lines[number - 1] if number <= len(lines) else ""


@once
def text(code: CodeType, instruction: int) -> str:
    """The source of the expression, on one line and shortened."""
    at = span(code, instruction)
    lines = _file(code.co_filename).lines[at.line - 1 : at.end_line]
    if not lines:
        return ""
    lines = list(lines)
    lines[-1] = lines[-1][: at.end_column - 1]
    lines[0] = lines[0][at.column - 1 :]
    whole = " ".join(" ".join(lines).split())
    return whole if len(whole) <= _SHOWN else whole[: _SHOWN - 3] + "..."


@once
def name(code: CodeType, instruction: int) -> str:
    """The variable or attribute that the expression is bound to, or ''."""
    return _file(code.co_filename).names.get(position(Frame(0, code, instruction)), "")


@once
def arguments(code: CodeType, instruction: int) -> tuple[str, ...]:
    """The names that the call at an instruction is given, by position; '' for what is no name, or
    no one tensor.
    """
    at = position(Frame(0, code, instruction))
    body = function(code) or ast.Module([], [])
    call = next(
        (node for node in ast.walk(body) if isinstance(node, ast.Call) and extent(node) == at), None
    )
    given = [
        each.elts[0] if _is_single(each) else each
        for each in (call.args if call is not None else ())
    ]
    return tuple(
        ast.unparse(each) if isinstance(each, ast.Name | ast.Attribute) else "" for each in given
    )


def _is_single(node: ast.expr) -> TypeGuard[ast.List | ast.Tuple]:
    return isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1


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
    return _file(code.co_filename).contexts.get(position(Frame(0, code, instruction)), "")


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
        for loop in _around(body, at, iterates(code, instruction))
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
        for each in _own([each for each in _file(path).comprehensions if _computes(each, at)], code)
        for generator in each.generators
    )


def _computes(node: _Comprehension, at: Position) -> bool:
    """Whether a comprehension comes there in each round."""
    parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    return any(_contains(part, at) for part in parts)


def _own(around: Sequence[_Comprehension], code: CodeType) -> Sequence[_Comprehension]:
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
    return isinstance(whole, ast.Module) or _contains(whole, extent(node))


def called(code: CodeType, instruction: int) -> Loop:
    """A loop over batches below a call, in a file of a library's."""
    line, column, _, _ = position(Frame(0, code, instruction))
    return Loop(code.co_filename, line, column, "data", ())


@once
def iterates(code: CodeType, instruction: int) -> bool:
    """Whether a `for` asks there for what is next."""
    return instruction >= 0 and code.co_code[instruction] == _FOR_ITER


def _around(node: ast.AST, at: Position, iterates: bool) -> Iterator[_Loop]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(child, _LOOPS):
            header = child.test if isinstance(child, ast.While) else child.iter
            inside = any(_contains(each, at) for each in child.body)
            tests = isinstance(child, ast.While) and _contains(header, at)
            if inside or tests or (iterates and at in (extent(header), extent(child))):
                yield child
        yield from _around(child, at, iterates)


def _contains(node: ast.AST, at: Position) -> bool:
    line, column, end_line, end_column = extent(node)
    return (line, column) <= at[:2] and at[2:] <= (end_line, end_column)


def _loop(path: str, node: _Loop, within: ast.AST) -> Loop:
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
    if not isinstance(iterable, ast.Name):
        return False
    turning = [each for each in ast.walk(within) if isinstance(each, _LOOPS)]
    return any(
        _takes_some(value)
        for loop in turning
        for name, value in _bound(loop)
        if name == iterable.id
    )


def _bound(loop: _Loop) -> Iterator[tuple[str, ast.expr]]:
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
    nodes = list(_around(body, at, False))
    rounds = counters(code, instruction)
    conditions = _conditions(nodes[-1] if nodes else body, at)
    return tuple(_branch(code.co_filename, test, side, rounds) for test, side in conditions)


def _conditions(node: ast.AST, at: Position) -> Iterator[tuple[ast.expr, bool]]:
    blocks = [block for _, block in ast.iter_fields(node) if isinstance(block, list)]
    for block in blocks:
        child = next(
            (each for each in block if isinstance(each, _STATEMENTS) and _contains(each, at)), None
        )
        if child is None:
            continue
        yield from ((each.test, False) for each in block[: block.index(child)] if _leaves(each))
        if isinstance(child, ast.Match):
            yield from _conditions(ast.Module(as_ifs(child), []), at)
            continue
        if isinstance(child, ast.If):
            holds = any(_contains(each, at) for each in child.body)
            if holds or any(_contains(each, at) for each in child.orelse):
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
        for (_, name), node in _file(path).functions.items()
        if name in branch.names
    )
    return max([branch.counting, *map(_counting, named)])


@once
def counters(code: CodeType, instruction: int) -> tuple[str, ...]:
    """The names of the counters of the loops around an instruction."""
    return tuple(name for loop in loops(code, instruction) for name in (loop.names[:1] or ("",)))


def loss_name(place: Place) -> str:
    """The variable that the expression is bound to, where its name says that it is a loss, or ''.

    What a function returns is bound where it was called.
    """
    for frame in place:
        bound = name(frame.code, frame.instruction)
        if bound or not _is_returned(frame.code, frame.instruction):
            return bound if is_loss_variable(bound.rpartition(".")[2]) else ""
    return ""


@once
def _is_returned(code: CodeType, instruction: int) -> bool:
    return position(Frame(0, code, instruction)) in _file(code.co_filename).returned


@once
def is_for_itself(code: CodeType, instruction: int, within: int) -> bool:
    """Whether what is evaluated at an instruction is for the statement around it alone:
    `x[mask].zero_()`.
    """
    statement = position(Frame(0, code, within))
    if statement not in _file(code.co_filename).statements:
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
    return any(ast.unparse(each) == "property" for each in decorators) and _is_returned(
        code, instruction
    )
