"""Pieces of a block on their way into another, and the blocks that are made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

import libcst as cst
from libcst import matchers

from gradlint.dataclass import dataclass

Small = cst.BaseSmallStatement
_EFFECTS = matchers.Call() | matchers.NamedExpr() | matchers.Await() | matchers.Yield()
_Block = cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module
_Long = TypeVar("_Long", cst.IndentedBlock, cst.Module)


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement on its way into a block: the lines above it, and the end of its line, where a
    comment may stand.
    """

    node: cst.BaseCompoundStatement | Small | None  # None: the lines alone
    above: tuple[cst.EmptyLine, ...] = ()
    end: cst.TrailingWhitespace | None = None
    line: cst.CSTNode | None = None  # the line of the source that it shares with others

    @property
    def is_bare(self) -> bool:
        """Whether it can share a line with others."""
        is_commented = any(each.comment for each in self.above) or (
            self.end is not None and self.end.comment
        )
        return isinstance(self.node, Small) and not is_commented


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of statements: what stands before and behind each, and what in its
    place.
    """

    before: dict[cst.CSTNode, list[Piece]] = field(default_factory=dict)
    behind: dict[cst.CSTNode, list[Piece]] = field(default_factory=dict)
    instead: dict[cst.CSTNode, list[Piece]] = field(default_factory=dict)
    # and whether all lines above go with it, or its own
    moved: dict[cst.CSTNode, bool] = field(default_factory=dict)
    undecorated: set[cst.CSTNode] = field(default_factory=set)
    decorated: dict[cst.CSTNode, cst.Decorator] = field(default_factory=dict)

    @property
    def touched(self) -> set[cst.CSTNode]:
        return {*self.before, *self.behind, *self.instead}


class Rewritten(cst.CSTTransformer):
    """The blocks of a module after a plan; a step of indentation that is new is `unit`."""

    def __init__(self, plan: Plan, unit: str) -> None:
        super().__init__()
        self.plan = plan
        self.unit = unit
        self.touched = plan.touched
        self.emptied = set[cst.CSTNode]()  # blocks of which nothing is left

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        """What becomes of a node whose parts are done: a block, of a suite on the line of its
        header, too.
        """
        match original_node, updated_node:
            case cst.Module() as old, cst.Module() as new:
                return self._body(old, new) if self._is_touched(old) else new
            case cst.IndentedBlock() as old, cst.IndentedBlock() as new:
                return self._body(old, new) if self._is_touched(old) else new
            case cst.SimpleStatementSuite() as old, cst.SimpleStatementSuite() as new:
                return self._suite(old, new) if self._is_touched(old) else new
            case cst.FunctionDef() as old, cst.FunctionDef() as new:
                return self._function(old, new)
            case (
                (cst.If(orelse=cst.Else(body=body)), new)
                | (cst.For(orelse=cst.Else(body=body)), new)
                | (cst.While(orelse=cst.Else(body=body)), new)
            ) if body in self.emptied:
                return new.with_changes(orelse=None)
        return updated_node

    def _suite(
        self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        ends = updated.trailing_whitespace
        pieces = [piece for piece in self._planned(original, updated) if piece.node is not None]
        if not pieces:
            self.emptied.add(original)
            pieces = [Piece(cst.Pass())]
        if all(piece.is_bare for piece in pieces):
            return updated.with_changes(body=shared_line([piece.node for piece in pieces]))
        pieces = [replace(piece, line=None) for piece in pieces]
        pieces[-1] = replace(pieces[-1], end=pieces[-1].end or ends)
        return block_of(pieces, self.unit)

    def _function(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        if original in self.plan.decorated:
            decorators = [*updated.decorators, self.plan.decorated[original]]
            return updated.with_changes(decorators=decorators)
        if self.plan.undecorated.isdisjoint(original.decorators):
            return updated
        kept, above = list[cst.Decorator](), list[cst.EmptyLine]()
        for old, new in zip(original.decorators, updated.decorators, strict=True):
            above += new.leading_lines
            if old not in self.plan.undecorated:
                kept.append(new.with_changes(leading_lines=above))
                above = []
        below = [*above, *updated.lines_after_decorators]
        return updated.with_changes(decorators=kept, lines_after_decorators=below)

    def _is_touched(self, block: _Block) -> bool:
        return any(
            each in self.touched
            for statement in block.body
            for each in (statement, *smalls(statement))
        )

    def _body(self, original: _Long, updated: _Long) -> _Long:
        below: Sequence[cst.EmptyLine]
        lines, below = _in_lines(list(self._planned(original, updated)))
        if not lines and isinstance(updated, cst.IndentedBlock):
            self.emptied.add(original)
            lines = [cst.SimpleStatementLine([cst.Pass()])]
        return updated.with_changes(body=lines, footer=[*below, *updated.footer])

    def _planned(self, original: _Block, updated: _Block) -> Iterator[Piece]:
        """The pieces of a block, in their new order."""
        for old, new in zip(original.body, updated.body, strict=True):
            if isinstance(old, cst.BaseCompoundStatement):
                assert isinstance(new, cst.BaseCompoundStatement)
                yield from self._about(old, self._without_nothing(old, of_compound(new)))
            elif isinstance(old, cst.SimpleStatementLine):
                assert isinstance(new, cst.SimpleStatementLine)
                yield from self._of_line(old, new)
            else:
                assert isinstance(old, Small)
                assert isinstance(new, Small)
                yield from self._about(old, Piece(new, line=original))

    def _without_nothing(self, old: cst.CSTNode, piece: Piece) -> Piece:
        """No `if` where nothing is left to do, and what it asks does nothing; the comments in it
        stay.
        """
        new = piece.node
        if (
            not isinstance(old, cst.If)
            or not isinstance(new, cst.If)
            or old.body not in self.emptied
        ):
            return piece
        if new.orelse is not None or matchers.findall(new.test, _EFFECTS):
            return piece
        footer = new.body.footer if isinstance(new.body, cst.IndentedBlock) else ()
        return Piece(None, (*piece.above, *footer))

    def _of_line(
        self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine
    ) -> Iterator[Piece]:
        shared = old if len(old.body) > 1 else None
        pieces = [Piece(each, line=shared) for each in new.body]
        pieces[0] = replace(pieces[0], above=tuple(new.leading_lines))
        pieces[-1] = replace(pieces[-1], end=new.trailing_whitespace)
        found = [
            list(self._about(each, piece)) for each, piece in zip(old.body, pieces, strict=True)
        ]
        is_gone = all(piece.node is None for piece in found[-1])
        if shared is not None and is_gone and old.body[-1] not in self.plan.moved:
            found.append([Piece(None, end=new.trailing_whitespace, line=shared)])
        yield from itertools.chain(*found)

    def _about(self, old: cst.CSTNode, piece: Piece) -> Iterator[Piece]:
        """A piece with what the plan puts around it, below the lines above it that do not belong to
        it.
        """
        ahead = self.plan.before.get(old, [])
        if ahead:
            apart, own = attached(piece.above)
            first, *others = (_beside(each, piece) for each in ahead)
            yield replace(first, above=(*apart, *first.above))
            yield from others
            piece = replace(piece, above=own)
        instead = self.plan.instead.get(old)
        if instead is None:
            yield piece
        elif instead:
            yield replace(instead[0], above=(*piece.above, *instead[0].above))
            yield from instead[1:]
        else:
            yield Piece(None, self._left(old, piece.above), line=piece.line)
        yield from (_beside(each, piece) for each in self.plan.behind.get(old, []))

    def _left(
        self, old: cst.CSTNode, above: tuple[cst.EmptyLine, ...]
    ) -> tuple[cst.EmptyLine, ...]:
        """The lines above a statement that stay where it stood."""
        if old not in self.plan.moved:
            return above
        return () if self.plan.moved[old] else attached(above)[0]


def _beside(new: Piece, piece: Piece) -> Piece:
    """A new piece on the line of one that shares it, if it can stand there."""
    return replace(new, line=piece.line) if new.is_bare else new


def of_compound(node: cst.BaseCompoundStatement) -> Piece:
    """A compound statement and the lines above it."""
    above: Sequence[cst.EmptyLine] = getattr(node, "leading_lines", ())
    return Piece(node.with_changes(leading_lines=[]), tuple(above))


def attached(
    above: Sequence[cst.EmptyLine],
) -> tuple[tuple[cst.EmptyLine, ...], tuple[cst.EmptyLine, ...]]:
    """The lines above a statement: those apart from it, and the comments right above it that stand
    as deep as it.
    """
    at = len(above)
    while (
        at and above[at - 1].comment and above[at - 1].indent and not above[at - 1].whitespace.value
    ):
        at -= 1
    return tuple(above[:at]), tuple(above[at:])


def block_of(
    pieces: Sequence[Piece], unit: str, footer: Sequence[cst.EmptyLine] = ()
) -> cst.IndentedBlock:
    """A new block of these pieces."""
    lines, below = _in_lines(pieces)
    return cst.IndentedBlock(lines, indent=unit, footer=[*below, *footer])


def _in_lines(pieces: Sequence[Piece]) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
    """The pieces as lines, those that share one together, and what lines are left over below the
    last.
    """
    lines, above = list[cst.BaseStatement](), list[cst.EmptyLine]()
    for _, group in itertools.groupby(enumerate(pieces), key=_line_of):
        members = [piece for _, piece in group]
        above += [line for piece in members for line in piece.above]
        nodes = [piece.node for piece in members if piece.node is not None]
        if not nodes:
            continue
        if isinstance(nodes[0], cst.BaseCompoundStatement):
            lines.append(nodes[0].with_changes(leading_lines=above))
        else:
            end = next(
                (each.end for each in reversed(members) if each.end is not None),
                cst.TrailingWhitespace(),
            )
            lines.append(
                cst.SimpleStatementLine(
                    shared_line(nodes), leading_lines=above, trailing_whitespace=end
                )
            )
        above = []
    return lines, above


def _line_of(item: tuple[int, Piece]) -> int:
    index, piece = item
    return (
        -index - 1
        if piece.line is None or isinstance(piece.node, cst.BaseCompoundStatement)
        else id(piece.line)
    )


def shared_line(nodes: Iterable[cst.CSTNode | None]) -> list[Small]:
    """Statements of one line; the semicolons between them are made where there are none."""
    found = [node for node in nodes if isinstance(node, Small)]
    found[-1] = found[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return found


def headless(module: cst.Module) -> cst.Module:
    """A module with the lines above its first statement as that statement's."""
    first, *others = module.body
    above: Sequence[cst.EmptyLine] = getattr(first, "leading_lines", ())
    return module.with_changes(
        header=[], body=[first.with_changes(leading_lines=[*module.header, *above]), *others]
    )


def smalls(statement: cst.CSTNode) -> Sequence[Small]:
    """The small statements on a line; none of a compound statement."""
    return statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
