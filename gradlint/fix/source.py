"""The file of a finding, as its fix sees it: what stands where, and edits that leave all the rest as it is."""

from __future__ import annotations

import ast
import functools
import itertools
import pathlib
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Span
from gradlint.fix import names, pins
from gradlint.fix.layout import Layout, blocks, first_line, last_line
from gradlint.rule import NoFixError
from gradlint.source import document

_ATOMS = (
    ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp,
    ast.SetComp, ast.JoinedStr,
)  # fmt: skip
_ENCLOSED = (ast.Call, ast.keyword, ast.List, ast.Dict, ast.Set, ast.FormattedValue)  # what brackets delimit
_WHOLE = (
    ast.withitem,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Expr,
    ast.If,
    ast.While,
)  # statements whose value stands alone


@dataclass(frozen=True)
class File:
    """One file as a `FixSource`."""

    path: str
    layout: Layout

    @property
    def tree(self) -> ast.Module:
        return self.layout.tree

    @property
    def unit(self) -> str:
        return self.layout.unit

    # what stands where

    @property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return self.layout.parents

    @functools.cached_property
    def _stretches(self) -> list[tuple[int, int, ast.expr | ast.stmt]]:
        """Where each expression and statement begins and ends, the outer ones first."""
        return [(*self._stretch(node), node) for node in self._parents if isinstance(node, ast.expr | ast.stmt)]

    @functools.cached_property
    def _bound(self) -> frozenset[str]:
        return frozenset(names.bound(self.tree))

    @functools.cached_property
    def _imported(self) -> dict[str, str]:
        return names.imported(self.tree)

    def _stretch(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg), node
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.layout.byte_offset(node.lineno, node.col_offset), self.layout.byte_offset(end_line, end_column)

    def _around(self, at: Span, kind: type[ast.AST]) -> ast.AST:
        """The smallest node of this kind around a place; of several of one size, the outermost."""
        start, end = self.layout.stretch(at)
        found = [
            (last - first, node)
            for first, last, node in self._stretches
            if first <= start and end <= last and isinstance(node, kind)
        ]
        if not found:
            raise NoFixError(f"nothing stands at {at}")
        return min(found, key=lambda each: each[0])[1]

    def expression(self, at: Span) -> ast.expr:
        node = self._around(at, ast.expr)
        assert isinstance(node, ast.expr)
        return node

    def statement(self, place: Span | ast.AST) -> ast.stmt:
        if isinstance(place, ast.stmt):
            return place
        node = self._around(place, ast.stmt) if isinstance(place, Span) else self._enclosing(place, ast.stmt)
        assert isinstance(node, ast.stmt)
        return node

    def statement_on(self, line: int) -> ast.stmt:
        found = [
            node
            for _, _, node in self._stretches
            if isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node)
        ]
        if not found:
            raise NoFixError(f"no statement stands on line {line}")
        return min(found, key=lambda node: last_line(node) - node.lineno)

    def _enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST:
        for outer in self.around(node):
            if isinstance(outer, kinds):
                return outer
        raise NoFixError("nothing stands around it")

    def scope(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        found = self._enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
        return found

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self._parents.get(statement, self.tree)
        for block in itertools.chain(blocks(parent), *(blocks(case) for case in getattr(parent, "cases", ()))):
            if statement in block:
                return block
        raise NoFixError("the statement stands in no block")

    def text(self, node: ast.AST) -> str:
        start, end = self._parenthesised(node) if isinstance(node, ast.expr) else self._stretch(node)
        return self.layout.text[start:end]

    def operand(self, node: ast.expr) -> str:
        return _enclosed(self.text(node))

    def called(self, node: ast.AST) -> str:
        return names.dotted(node, self._imported)

    def fresh(self, wish: str, near: ast.AST) -> str:
        taken = {*names.bound(self.scope(near)), *self._bound}
        candidates = itertools.chain([wish], (f"{wish}_{number}" for number in itertools.count(1)))
        return next(name for name in candidates if name not in taken)

    def reference(self, name: str) -> tuple[str, tuple[Edit, ...]]:
        content, line = names.written(name, self.tree, self._bound)
        return content, (self._import(line),) if line else ()

    def _import(self, line: str) -> Edit:
        anchor, is_behind = names.import_anchor(self.tree)
        if anchor is None:
            raise NoFixError("the file is empty")
        if is_behind:
            return self.after(anchor, line)
        start = self.layout.starts[first_line(anchor) - 1]  # below a license or a coding comment
        return self._edit(start, start, self._joined([line], ""))

    def allows_torch(self, *version: int) -> bool:
        return pins.allows_torch(pathlib.Path(document.file_of(self.path)), version)

    # edits

    def replace(self, node: ast.expr, content: str) -> Edit:
        start, end = self._stretch(node)
        if not self._stands_alone(node, content) and not self._is_parenthesised(node):
            content = _enclosed(content)
        elif self._is_parenthesised(node) and isinstance(ast.parse(f"({content})", mode="eval").body, _ATOMS):
            start, end = self._parenthesised(node)
        return self._edit(start, end, content)

    def rewrite(self, statement: ast.stmt, content: str) -> Edit:
        return self._edit(*self._stretch(statement), content)

    def before_text(self, node: ast.expr | ast.stmt | ast.keyword, content: str) -> Edit:
        start = self._parenthesised(node)[0] if isinstance(node, ast.expr) else self._stretch(node)[0]
        return self._edit(start, start, content)

    def behind_text(self, node: ast.expr, content: str) -> Edit:
        end = self._parenthesised(node)[1]
        return self._edit(end, end, content)

    def replace_name(self, attribute: ast.Attribute, name: str) -> Edit:
        end = self._stretch(attribute)[1]
        return self._edit(end - len(attribute.attr), end, name)

    def remove(self, statement: ast.stmt) -> Edit:
        if len(self.block(statement)) == 1:
            return self._edit(*self._stretch(statement), "pass")
        if not self.layout.owns_its_lines(statement):
            return self._remove_from_line(statement)
        return self._lines(first_line(statement), last_line(statement), "")

    def _remove_from_line(self, statement: ast.stmt) -> Edit:
        """Takes out one of several statements that share a line, and the semicolon behind (or before) it."""
        start, end = self._stretch(statement)
        text = self.layout.text
        behind = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
        if text[behind : behind + 1] == ";":
            rest = text[behind + 1 :]
            return self._edit(start, behind + 1 + len(rest) - len(rest.lstrip(" \t")), "")
        before = text[:start].rstrip(" \t")
        if before.endswith(";"):
            return self._edit(len(before) - 1, end, "")
        raise NoFixError("the statement shares its line with a header")

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        arguments = _arguments(call)
        index = arguments.index(argument)
        start, end = self._whole(argument)
        if index + 1 < len(arguments):
            return self._edit(start, self._whole(arguments[index + 1])[0], "")
        if index:
            return self._edit(self._whole(arguments[index - 1])[1], end, "")
        return self._edit(start, end, "")

    def _whole(self, argument: ast.expr | ast.keyword) -> tuple[int, int]:
        return self._parenthesised(argument) if isinstance(argument, ast.expr) else self._stretch(argument)

    def add_argument(self, call: ast.Call, content: str) -> Edit:
        arguments = _arguments(call)
        if arguments:
            end = self._whole(arguments[-1])[1]
            return self._edit(end, end, f", {content}")
        end = self._stretch(call)[1] - 1
        return self._edit(end, end, content)

    def remove_decorator(self, decorator: ast.expr) -> Edit:
        return self._lines(decorator.lineno, decorator.end_lineno or decorator.lineno, "")

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        if self.layout.owns_its_lines(statement):
            start = self.layout.starts[self.layout.leading(statement) - 1]
            return self._edit(start, start, self._joined(lines, self.layout.indent(first_line(statement))))
        if any(line.endswith(":") for line in lines) or hasattr(statement, "body"):
            raise NoFixError("the statement shares its line")
        start = self._stretch(statement)[0]
        return self._edit(start, start, "".join(f"{line}; " for line in lines))

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        if self.layout.owns_its_lines(statement):
            offset = self.layout.starts[last_line(statement)]
            content = self._joined(lines, self._indent(statement))
            return self._edit(offset, offset, self._newline_before(offset) + content)
        if any(line.endswith(":") for line in lines) or hasattr(statement, "body"):
            raise NoFixError("the statement shares its line")
        end = self._stretch(statement)[1]
        return self._edit(end, end, "".join(f"; {line}" for line in lines))

    def first(self, block: Sequence[ast.stmt], *lines: str) -> Edit:
        if len(block) > 1 and names.is_docstring(block[0]):
            return self.before(block[1], *lines)
        return self.before(block[0], *lines)

    def move_before(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> tuple[Edit, ...]:
        return self._moved(statements, self._line_start(first_line(anchor)), self._indent(anchor), anchor)

    def move_after(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> tuple[Edit, ...]:
        return self._moved(statements, self._line_start(last_line(anchor) + 1), self._indent(anchor), anchor)

    def _moved(self, statements: Sequence[ast.stmt], offset: int, indent: str, anchor: ast.stmt) -> tuple[Edit, ...]:
        if not all(self.layout.owns_its_lines(statement) for statement in (*statements, anchor)):
            raise NoFixError("a statement shares its line")
        stretches = [(self.layout.leading(statement), last_line(statement)) for statement in statements]
        content = "".join(
            self.layout.reindented(first, last, self._indent(statement), indent)
            for statement, (first, last) in zip(statements, stretches, strict=True)
        )
        gone = [self._lines(first, last, "") for first, last in stretches]
        kept = [each for each in self.block(statements[0]) if each not in statements]
        if not kept:
            first, last = stretches[0]
            gone[0] = self._lines(first, last, f"{self._indent(statements[0])}pass{self.layout.newline}")
        return (*gone, self._edit(offset, offset, self._newline_before(offset) + content))

    def wrap(self, statements: Sequence[ast.stmt], header: str) -> Edit:
        if not all(self.layout.owns_its_lines(statement) for statement in statements):
            raise NoFixError("a statement shares its line")
        first, last = first_line(statements[0]), last_line(statements[-1])
        indent = self._indent(statements[0])
        body = self.layout.reindented(first, last, indent, indent + self.layout.unit)
        return self._lines(first, last, f"{indent}{header}{self.layout.newline}{body}")

    def unwrap(self, compound: ast.With) -> Edit:
        first, last = compound.body[0], compound.body[-1]
        if not self.layout.owns_its_lines(first) or not self.layout.owns_its_lines(compound):
            raise NoFixError("the body shares the line of its header")
        start = self.layout.leading(first)
        body = self.layout.reindented(start, last_line(last), self._indent(first), self._indent(compound))
        between = [self.layout.bare(line).strip() for line in range(compound.lineno, start)]
        comments = [text[text.index("#") :] for text in between if "#" in text and '"' not in text and "'" not in text]
        return self._lines(compound.lineno, last_line(last), self._joined(comments, self._indent(compound)) + body)

    # how it is done

    def _edit(self, start: int, end: int, content: str) -> Edit:
        (line, column), (end_line, end_column) = self.layout.place(start), self.layout.place(end)
        return Edit(Span(self.path, line, column, end_line, end_column), content)

    def _lines(self, first: int, last: int, content: str) -> Edit:
        """Replaces whole lines."""
        return self._edit(self.layout.starts[first - 1], self.layout.starts[last], content)

    def _line_start(self, line: int) -> int:
        return self.layout.starts[line - 1]

    def _indent(self, statement: ast.stmt) -> str:
        return self.layout.indent(first_line(statement))

    def _joined(self, lines: Sequence[str], indent: str) -> str:
        return "".join(f"{indent}{line}{self.layout.newline}" for line in lines)

    def _newline_before(self, offset: int) -> str:
        """A line end where the text ends without one."""
        at_end = offset == len(self.layout.text) and not self.layout.text.endswith(("\n", "\r"))
        return self.layout.newline if at_end else ""

    def _parenthesised(self, node: ast.expr) -> tuple[int, int]:
        """Where an expression stands with the parentheses around it; those of a call are not its own."""
        start, end = self._stretch(node)
        text, limit = self.layout.text, self._limit(node)
        while True:
            before, behind = _back(text, start), _forth(text, end)
            if before <= limit[0] or behind >= limit[1] or text[before - 1] != "(" or text[behind] != ")":
                return start, end
            start, end = before - 1, behind + 1

    def _limit(self, node: ast.expr) -> tuple[int, int]:
        """How far parentheses around `node` can reach: to the edges of what it is part of."""
        parent = self._parents[node]
        if not isinstance(parent, ast.expr | ast.stmt | ast.keyword):
            return self._stretch(self.statement(node))
        start, end = self._stretch(parent)
        if isinstance(parent, ast.Call) and node is not parent.func:
            return _forth(self.layout.text, self._parenthesised(parent.func)[1]) + 1, end - 1
        if isinstance(parent, ast.GeneratorExp):
            return start + 1, end - 1
        return start, end

    def _is_parenthesised(self, node: ast.expr) -> bool:
        return self._parenthesised(node) != self._stretch(node)

    def _stands_alone(self, node: ast.expr, content: str) -> bool:
        """Whether `content` needs no parentheses in the place of `node`, for brackets or a statement delimit it."""
        parent = self._parents[node]
        if isinstance(parent, ast.IfExp):
            return isinstance(ast.parse(f"({content})", mode="eval").body, ast.BinOp | ast.BoolOp | ast.Compare)
        if isinstance(parent, ast.Call) and node is parent.func:
            return False
        if isinstance(parent, ast.Subscript) and node is parent.slice:
            return True
        return isinstance(parent, (*_ENCLOSED, *_WHOLE))


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """The arguments of a call in the order of the source."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(arguments, key=lambda each: (each.lineno, each.col_offset))


def _enclosed(content: str) -> str:
    """An expression that can be an operand: in parentheses, unless it is an atom on one line."""
    node = ast.parse(f"({content})", mode="eval").body
    if isinstance(node, _ATOMS) and "\n" not in content and "\r" not in content:
        return content
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | complex):
        return content
    is_one = content.startswith("(") and content.endswith(")") and _closes_at_the_end(content)
    return content if is_one else f"({content})"


def _closes_at_the_end(content: str) -> bool:
    """Whether the parenthesis that opens `content` is the one that closes it."""
    try:
        ast.parse(f"({content[1:-1]}\n)", mode="eval")
    except SyntaxError:
        return False
    return True


def _back(text: str, offset: int) -> int:
    """The offset behind what stands before `offset`, white space apart."""
    while offset and text[offset - 1] in " \t\r\n\f":
        offset -= 1
    return offset


def _forth(text: str, offset: int) -> int:
    """The offset of what stands behind `offset`, white space apart."""
    while offset < len(text) and text[offset] in " \t\r\n\f":
        offset += 1
    return offset
