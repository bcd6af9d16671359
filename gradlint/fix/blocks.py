"""Statements moved, wrapped, unwrapped, put in and taken out: one libcst codemod over the blocks
that they stand in.

A draft parses the statements of the module that a fix touches, and no more. What it has changed is
offered as the few edits of text in which the new code differs from the old.
"""

from __future__ import annotations

import ast
import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst
from libcst import matchers
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from gradlint.fix.differences import differences
from gradlint.fix.layout import Layout, first_line, last_line
from gradlint.fix.pieces import (
    Piece,
    Plan,
    Rewritten,
    Small,
    attached,
    block_of,
    headless,
    of_compound,
    smalls,
)
from gradlint.rule import NoFixError

Change = tuple[int, int, str]  # from one offset of the text to another: this


class Draft:
    """Some statements of a program as libcst reads them, and what is to become of them."""

    def __init__(self, layout: Layout, statements: Iterable[ast.stmt]) -> None:
        self.layout = layout
        self.unit = layout.unit
        self.first, self.last = _whole_lines(layout, statements)
        self.text, self._offsets = _clean(layout, self.first, self.last)
        try:
            wrapper = MetadataWrapper(headless(cst.parse_module(self.text)), unsafe_skip_copy=True)
        except cst.ParserSyntaxError:
            raise NoFixError("libcst does not read it") from None
        if wrapper.module.code != self.text:
            raise NoFixError("libcst does not write it as it was")
        self.module = wrapper.module
        self.plan = Plan()
        places: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        self._found = _statements(self.module, places)

    def node(self, statement: ast.stmt) -> cst.CSTNode:
        """The statement as libcst has it."""
        starts = self.layout.byte_offset(statement.lineno, statement.col_offset)
        at = bisect.bisect_left(self._offsets, starts)
        row = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1)
        found = self._found.get((row, column))
        if found is None:
            raise NoFixError("the statement stands in no block")
        return found[0]

    def piece(self, statement: ast.stmt) -> Piece:
        """A statement with the comments right above it and behind it, for another place."""
        node = self.node(statement)
        if isinstance(node, cst.BaseCompoundStatement):
            whole = of_compound(node)
            return replace(whole, above=attached(whole.above)[1])
        assert isinstance(node, Small)
        line = self._line(node)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            return Piece(node, attached(line.leading_lines)[1], line.trailing_whitespace)
        is_last = line is not None and node is line.body[-1]
        ends = (
            line.trailing_whitespace
            if is_last and isinstance(line, cst.SimpleStatementLine)
            else None
        )
        return Piece(node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT), end=ends)

    def pieces(self, statements: Sequence[ast.stmt]) -> list[Piece]:
        """Neighbouring statements as they stand, with all lines between them."""
        found = list[Piece]()
        for statement in statements:
            node = self.node(statement)
            if isinstance(node, cst.BaseCompoundStatement):
                changed = node.visit(Rewritten(self.plan, self.unit)) if self.plan.touched else node
                assert isinstance(changed, cst.BaseCompoundStatement)
                found.append(of_compound(changed))
                continue
            assert isinstance(node, Small)
            line = self._line(node)
            assert line is not None
            lines_above = line.leading_lines if isinstance(line, cst.SimpleStatementLine) else ()
            above = tuple(lines_above) if node is line.body[0] else ()
            ends = line.trailing_whitespace if node is line.body[-1] else None
            found.append(Piece(node, above, ends, line if len(line.body) > 1 else None))
        return found

    def new(self, lines: Sequence[str]) -> list[Piece]:
        """New lines of code."""
        pieces = list[Piece]()
        for each in cst.parse_module("".join(f"{line}\n" for line in lines)).body:
            if isinstance(each, cst.BaseCompoundStatement):
                pieces.append(of_compound(each))
            else:
                pieces += [Piece(small) for small in smalls(each)]
        return pieces

    def changes(self) -> list[Change]:
        """What the plan changes in the text, by the offsets of the whole program."""
        module = self.module.visit(Rewritten(self.plan, self.unit))
        # libcst ends an empty module with a line
        code = module.code if module.body or module.footer else ""
        if (
            not self.text.endswith("\n")
            and self.text.rpartition("\n")[2] != code.rpartition("\n")[2]
        ):
            code += "\n"
        return [
            (self._offsets[start], self._offsets[end], content.replace("\n", self.layout.newline))
            for start, end, content in differences(self.text, code)
        ]

    def _line(self, node: Small) -> cst.SimpleStatementLine | cst.SimpleStatementSuite | None:
        return next((line for found, line in self._found.values() if found is node), None)

    # what can become of statements

    def move(self, statements: Sequence[ast.stmt], anchor: ast.stmt, is_before: bool) -> None:
        """Statements, with the comments right above them, before another or behind it."""
        pieces = [self.piece(each) for each in statements]
        nodes = [self.node(each) for each in statements]
        self.plan.instead.update((node, []) for node in nodes)
        self.plan.moved.update(dict.fromkeys(nodes, False))
        (self.put_before if is_before else self.put_behind)(anchor, pieces)

    def remove(self, statement: ast.stmt) -> None:
        self.plan.instead[self.node(statement)] = []

    def replace(self, statement: ast.stmt, lines: Sequence[str]) -> None:
        """New lines in the place of a statement; a comment behind it stays on the last of them."""
        piece, pieces = self.piece(statement), self.new(lines)
        if len(pieces) == 1 and isinstance(pieces[0].node, Small):
            pieces = [replace(pieces[0], end=piece.end)]
        elif piece.end is not None and piece.end.comment:
            pieces = [Piece(None, (cst.EmptyLine(comment=piece.end.comment),)), *pieces]
        self.plan.instead[self.node(statement)] = pieces

    def put_before(self, anchor: ast.stmt, pieces: Iterable[Piece]) -> None:
        self.plan.before.setdefault(self.node(anchor), []).extend(pieces)

    def put_behind(self, anchor: ast.stmt, pieces: Iterable[Piece]) -> None:
        self.plan.behind.setdefault(self.node(anchor), []).extend(pieces)

    def undecorate(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr
    ) -> None:
        node = self.node(function)
        assert isinstance(node, cst.FunctionDef)
        self.plan.undecorated.add(node.decorators[function.decorator_list.index(decorator)])

    def decorate(self, function: ast.FunctionDef | ast.AsyncFunctionDef, line: str) -> None:
        """Another decorator, below those that are there."""
        node = self.node(function)
        (made,) = cst.parse_module(f"{line}\ndef f(): pass\n").body
        assert isinstance(node, cst.FunctionDef)
        assert isinstance(made, cst.FunctionDef)
        self.plan.decorated[node] = made.decorators[0]

    def wrap(self, statements: Sequence[ast.stmt], header: str) -> None:
        """Neighbouring statements under a header; the lines above the first stay above it."""
        first, *others = self.pieces(statements)
        self._replace(statements, [self._under(header, [replace(first, above=()), *others])])

    def _under(self, header: str, pieces: Sequence[Piece]) -> Piece:
        (made,) = cst.parse_module(header).body
        assert isinstance(made, cst.BaseCompoundStatement)
        return Piece(made.with_changes(body=block_of(pieces, self.unit)))

    def _replace(self, statements: Sequence[ast.stmt], pieces: list[Piece]) -> None:
        first, *others = (self.node(each) for each in statements)
        self.plan.instead.update({first: pieces, **{node: [] for node in others}})
        self.plan.moved.update(dict.fromkeys(others, True))

    def unwrap(
        self,
        compound: ast.With,
        item: int | None,
        inside: Sequence[ast.stmt],
        kept: Sequence[ast.stmt] = (),
    ) -> None:
        """These statements of a `with` out of one of its contexts, or out of all, in their order.

        Those that are `kept`, somewhere in these, are put under a context of their own.
        """
        node = self.node(compound)
        assert isinstance(node, cst.With)
        if kept:
            contexts = node.items if item is None else [node.items[item]]
            bare = [each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in contexts]
            self.wrap(
                kept,
                cst.Module([]).code_for_node(
                    cst.With(bare, cst.SimpleStatementSuite([cst.Pass()]))
                ),
            )
        if item is None or len(node.items) == 1:
            self.plan.instead[node] = list(self._parts(node, compound, inside, _comments(node)))
            return
        others, above = _without_item(node, item)
        others = others.with_changes(body=node.body.visit(Rewritten(self.plan, self.unit)))
        if len(inside) < len(compound.body):
            own = cst.With(
                [node.items[item].with_changes(comma=cst.MaybeSentinel.DEFAULT)],
                _without_header(node.body),
            )
            parts = list(self._parts(own, compound, inside, ()))
            others = others.with_changes(body=self._body(node, parts, ()))
        self.plan.instead[node] = [Piece(others.with_changes(leading_lines=[]), tuple(above))]

    def _parts(
        self,
        node: cst.With,
        compound: ast.With,
        inside: Sequence[ast.stmt],
        comments: Iterable[cst.EmptyLine],
    ) -> Iterator[Piece]:
        """The body of a `with` in pieces: what is taken out, and what stays, under as many as that
        takes.
        """
        yield Piece(None, tuple(comments) if compound.body[0] in inside else ())
        for is_out, group in itertools.groupby(compound.body, key=lambda each: each in inside):
            statements = list(group)
            first, *others = self.pieces(statements)
            is_last = statements[-1] is compound.body[-1]
            footer = (
                node.body.footer if is_last and isinstance(node.body, cst.IndentedBlock) else ()
            )
            if is_out:
                yield from (first, *others, Piece(None, tuple(footer)))
            elif statements[0] is compound.body[0]:
                yield Piece(
                    node.with_changes(
                        body=self._body(node, [first, *others], footer), leading_lines=[]
                    )
                )
            else:
                body = block_of([replace(first, above=()), *others], self.unit, footer)
                yield Piece(node.with_changes(body=body, leading_lines=[]), first.above)

    def _body(
        self, node: cst.With, pieces: Sequence[Piece], footer: Sequence[cst.EmptyLine]
    ) -> cst.IndentedBlock:
        """The pieces as the body of a `with`, and a comment behind its colon where it was."""
        block = block_of(pieces, self.unit, footer)
        return (
            block.with_changes(header=node.body.header)
            if isinstance(node.body, cst.IndentedBlock)
            else block
        )


def _without_item(node: cst.With, at: int) -> tuple[cst.With, list[cst.EmptyLine]]:
    """A `with` without one of its contexts, and the comments that stood beside it."""
    gone = node.items[at]
    items = [each for index, each in enumerate(node.items) if index != at]
    if at == len(items):
        items[-1] = items[-1].with_changes(comma=gone.comma)
    comments = list(_lines_of_comments(gone))
    if (
        len(items) > 1
        or not isinstance(node.lpar, cst.LeftParen)
        or _has_comments(node.lpar, *items, node.rpar)
    ):
        return node.with_changes(items=items), comments
    plain = [items[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
    bare = cst.MaybeSentinel.DEFAULT
    return node.with_changes(items=plain, lpar=bare, rpar=bare), comments


def _without_header(body: cst.BaseSuite) -> cst.BaseSuite:
    """A body without the comment behind the colon before it."""
    return (
        body.with_changes(header=cst.TrailingWhitespace())
        if isinstance(body, cst.IndentedBlock)
        else body
    )


def _comments(node: cst.With) -> list[cst.EmptyLine]:
    """The comments in the header of a `with`, as lines."""
    header = node.body.header if isinstance(node.body, cst.IndentedBlock) else None
    return [
        line
        for part in (node.lpar, *node.items, node.rpar, header)
        for line in _lines_of_comments(part)
    ]


def _lines_of_comments(part: object) -> Iterator[cst.EmptyLine]:
    if isinstance(part, cst.CSTNode):
        found = matchers.findall(part, matchers.Comment())
        yield from (cst.EmptyLine(comment=each) for each in found if isinstance(each, cst.Comment))


def _has_comments(*parts: object) -> bool:
    return any(True for part in parts for _ in _lines_of_comments(part))


_Found = tuple[cst.CSTNode, "cst.SimpleStatementLine | cst.SimpleStatementSuite | None"]


def _statements(
    module: cst.Module, places: Mapping[cst.CSTNode, CodeRange]
) -> dict[tuple[int, int], _Found]:
    """The statements of a module by where each begins, with the line of those that may share it."""
    found = dict[tuple[int, int], _Found]()
    finder = _Statements()
    module.visit(finder)
    for node, line in finder.found:
        start = places[node].start
        found[start.line, start.column] = (node, line)
    return found


class _Statements(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = list[_Found]()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            self.found += [(each, node) for each in node.body]
        elif isinstance(node, cst.BaseCompoundStatement):
            self.found.append((node, None))
        return not isinstance(node, cst.BaseExpression)


def _whole_lines(layout: Layout, statements: Iterable[ast.stmt]) -> tuple[int, int]:
    """The first and the last line of the statements of the module that these stand in, with what is
    above them.
    """
    lines = [line for each in statements for line in (first_line(each), last_line(each))]
    low, high = min(lines), max(lines)
    first = 1
    for each in layout.tree.body:
        if last_line(each) < low:
            first = last_line(each) + 1
        high = max(high, last_line(each)) if first_line(each) <= high else high
    return first, high


def _clean(layout: Layout, first: int, last: int) -> tuple[str, list[int]]:
    """Lines of a program with plain line ends and no form feeds before code, and the offset of each
    character.
    """
    parts, offsets = list[str](), list[int]()
    for number in range(first, last + 1):
        start, bare = layout.starts[number - 1], layout.bare(number)
        indent = 0 if number in layout.in_strings else len(layout.indent(number))
        kept = [at for at, letter in enumerate(bare) if letter != "\f" or at >= indent]
        ends = start + len(bare) < layout.starts[number]
        parts += [*(bare[at] for at in kept), "\n" * ends]
        offsets += [*(start + at for at in kept), *[start + len(bare)] * ends]
    return "".join(parts), [*offsets, layout.starts[last]]
