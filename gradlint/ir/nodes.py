"""The nodes of the IR: Python's statements and expressions, less the spellings that mean the same.

Every node knows its position as (line, column, end line, end column), as `ast` gives it: lines from
1, columns in UTF-8 bytes from 0. `Code.span` turns it into a `Span` for those that are reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.source.lines import characters, split_lines

Position = tuple[int, int, int, int]
Answer = TypeVar("Answer")
LONGEST = 60  # characters of a quoted expression


class Kept(dict["Node", Answer]):
    """What is worked out about each node from its position when it is first asked for; every path
    asks again.
    """

    def __init__(self, work_out: Callable[[Position], Answer]) -> None:
        super().__init__()
        self.work_out = work_out

    def __missing__(self, node: Node) -> Answer:
        found = self[node] = self.work_out(node.at)
        return found


@dataclass(eq=False, slots=True)
class Code:
    """The file that nodes come from."""

    path: str
    text: str
    lines: list[str] = field(default_factory=list)
    places: Kept[Span] = field(init=False)  # of nodes, as `span` gives them
    texts: Kept[str] = field(init=False)  # of nodes, as `source` gives them
    _spans: dict[Position, Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = list(split_lines(self.text))
        self.places, self.texts = Kept(self.span), Kept(self.source)

    def close(self) -> None:
        """Lets go of what is kept of nodes, which hold it in turn: no more is asked about them."""
        del self.places, self.texts

    def span(self, at: Position) -> Span:
        """The position in characters from 1, as findings have it."""
        found = self._spans.get(at)
        if found is None:
            found = self._spans[at] = self._span(at)
        return found

    def source(self, at: Position) -> str:
        """The source text of a node on one line, shortened."""
        text = self.whole(at)
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

    def _span(self, at: Position) -> Span:
        line, column, end_line, end_column = at
        return Span(
            self.path,
            line,
            self._character(line, column),
            end_line,
            self._character(end_line, end_column),
        )

    def whole(self, at: Position) -> str:
        """The source text of a node on one line."""
        line, column, end_line, end_column = at
        if line > len(self.lines):
            return ""
        first = self.lines[line - 1].encode()
        if end_line == line:
            return first[column:end_column].decode(errors="replace")
        middle = self.lines[line : end_line - 1]
        last = self.lines[end_line - 1].encode()[:end_column].decode(errors="replace")
        return " ".join(
            part.strip() for part in [first[column:].decode(errors="replace"), *middle, last]
        )

    def rows(self, at: Position) -> str:
        """The lines that a node stands on."""
        return "\n".join(self.lines[at[0] - 1 : at[2]])

    def _character(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return characters(text, column) + 1


@dataclass(eq=False, slots=True)
class Node:
    at: Position


@dataclass(eq=False, slots=True)
class Literal(Node):
    value: object
    cached: object = None  # the interpreter's value for it


@dataclass(eq=False, slots=True)
class Name(Node):
    id: str


@dataclass(eq=False, slots=True)
class Attribute(Node):
    target: Node
    name: str
    is_called: bool = False


@dataclass(eq=False, slots=True)
class Subscript(Node):
    target: Node
    index: Node


@dataclass(eq=False, slots=True)
class Slice(Node):
    lower: Node | None
    upper: Node | None
    step: Node | None


@dataclass(eq=False, slots=True)
class Star(Node):
    """`*value` in a call, a display or a target."""

    value: Node


@dataclass(eq=False, slots=True)
class Call(Node):
    function: Node
    args: list[Node]
    kwargs: list[tuple[str | None, Node]]  # (None, x) is **x


@dataclass(eq=False, slots=True)
class Binary(Node):
    op: str
    left: Node
    right: Node


@dataclass(eq=False, slots=True)
class Unary(Node):
    op: str  # "-", "+", "~", "not"
    operand: Node


@dataclass(eq=False, slots=True)
class Boolean(Node):
    op: str  # "and", "or"
    values: list[Node]


@dataclass(eq=False, slots=True)
class Compare(Node):
    left: Node
    ops: list[str]
    rights: list[Node]


@dataclass(eq=False, slots=True)
class Conditional(Node):
    test: Node
    then: Node
    otherwise: Node


@dataclass(eq=False, slots=True)
class Display(Node):
    kind: str  # "list", "tuple", "set"
    items: list[Node]


@dataclass(eq=False, slots=True)
class DictDisplay(Node):
    items: list[tuple[Node | None, Node]]  # (None, x) is **x


@dataclass(eq=False, slots=True)
class Comprehension(Node):
    kind: str  # "list", "set", "generator", "dict"
    element: Node
    value: Node | None  # of a dict
    clauses: list[tuple[Node, Node, list[Node]]]  # target, iterable, conditions


@dataclass(eq=False, slots=True)
class Format(Node):
    parts: list[Node]


@dataclass(eq=False, slots=True)
class Formatted(Node):
    """A part of a format that is not written as it is: `{value!r:spec}`."""

    value: Node
    conversion: str  # "", "r", "s", "a"
    spec: Node | None


@dataclass(eq=False, slots=True)
class Walrus(Node):
    target: Node
    value: Node


@dataclass(eq=False, slots=True)
class Yield(Node):
    value: Node | None
    delegates: bool = False  # yield from


@dataclass(eq=False, slots=True)
class Parameter:
    name: str
    default: Node | None
    kind: str  # "positional", "keyword", "args", "kwargs"
    annotation: Node | None = None


@dataclass(eq=False, slots=True)
class Function(Node):
    """`def` or `lambda`. The body is lowered when it is first asked for."""

    name: str
    parameters: list[Parameter]
    decorators: list[Node]
    source: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    code: Code
    is_generator: bool | None = None
    globals: frozenset[str] = frozenset()
    nonlocals: frozenset[str] = frozenset()
    arities: frozenset[int] = frozenset()  # the lengths of the tuples that it writes down to return
    cached: list[Node] | None = None


@dataclass(eq=False, slots=True)
class Class(Node):
    name: str
    bases: list[Node]
    keywords: list[tuple[str | None, Node]]
    decorators: list[Node]
    body: list[Node]


@dataclass(eq=False, slots=True)
class Assign(Node):
    targets: list[Node]
    value: Node
    annotation: Node | None = None


@dataclass(eq=False, slots=True)
class Unlisted(Node):
    """Syntax that is not known, by the name of its kind: an expression, a statement or a pattern of
    a later Python.
    """

    kind: str
    parts: list[Node]  # the expressions in it


@dataclass(eq=False, slots=True)
class Declare(Node):
    """`name: annotation` without a value."""

    name: str
    annotation: Node


@dataclass(eq=False, slots=True)
class Augment(Node):
    target: Node
    op: str
    value: Node


@dataclass(eq=False, slots=True)
class Delete(Node):
    targets: list[Node]


@dataclass(eq=False, slots=True)
class Expression(Node):
    value: Node


@dataclass(eq=False, slots=True)
class Shown(Node):
    value: Node  # what a notebook shows, being the last of a cell


@dataclass(eq=False, slots=True)
class If(Node):
    test: Node
    then: list[Node]
    otherwise: list[Node]
    source: ast.If
    # by which answer, without a `not`, the loop or a function that gives nothing is left
    leaves: bool | None = None
    # its other side, where it is left: `if micro < 16: continue; …`
    behind: tuple[ast.stmt, ...] = ()
    is_last: bool = False  # a `raise` follows the chain of which it is the last `if`
    answers: bool = False  # it returns from a block that ends in `raise`


@dataclass(eq=False, slots=True)
class While(Node):
    test: Node
    body: list[Node]
    otherwise: list[Node]
    source: ast.While


@dataclass(eq=False, slots=True)
class For(Node):
    target: Node
    iterable: Node
    body: list[Node]
    otherwise: list[Node]
    source: ast.For | ast.AsyncFor


@dataclass(eq=False, slots=True)
class With(Node):
    context: Node
    target: Node | None
    body: list[Node]


@dataclass(eq=False, slots=True)
class Handler:
    types: Node | None
    name: str | None
    body: list[Node]


@dataclass(eq=False, slots=True)
class Try(Node):
    body: list[Node]
    handlers: list[Handler]
    otherwise: list[Node]
    finally_: list[Node]


@dataclass(eq=False, slots=True)
class Return(Node):
    value: Node | None


@dataclass(eq=False, slots=True)
class Raise(Node):
    value: Node | None


@dataclass(eq=False, slots=True)
class Jump(Node):
    kind: str  # "break", "continue"


@dataclass(eq=False, slots=True)
class Assert(Node):
    test: Node


@dataclass(eq=False, slots=True)
class Import(Node):
    """`import a.b as c`: binds `name` to the module `module` (to its first part where there is no
    `as`).
    """

    module: str
    name: str
    whole: bool  # True: bind the module itself, False: its first part


@dataclass(eq=False, slots=True)
class ImportFrom(Node):
    module: str
    level: int
    names: list[tuple[str, str]]  # (name, bound as); ("*", "*")
