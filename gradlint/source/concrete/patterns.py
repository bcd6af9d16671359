"""Patterns of `match` of libcst as those of `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import libcst as cst
from libcst.metadata import CodePosition

from gradlint.source.concrete.expressions import Expressions, comma_end, identifier
from gradlint.source.concrete.places import Place, Places, method, moved

_CONSTANTS = {"None": None, "True": True, "False": False}


class Patterns:
    """Converts the patterns of one module; a method for each kind of libcst's nodes, found by its
    name.
    """

    def __init__(self, places: Places, expression: Expressions) -> None:
        self.places, self.expression = places, expression

    def __call__(self, node: cst.CSTNode) -> ast.pattern:
        found: ast.pattern = method(self, node)(node)
        return found

    def _all(self, nodes: Iterable[cst.CSTNode]) -> list[ast.pattern]:
        return [self(node) for node in nodes]

    def _MatchValue(self, node: cst.MatchValue) -> ast.pattern:
        return ast.MatchValue(self.expression(node.value), **self.places.at(node.value))

    def _MatchSingleton(self, node: cst.MatchSingleton) -> ast.pattern:
        return ast.MatchSingleton(_CONSTANTS[node.value.value], **self.places.at(node.value))

    def _MatchAs(self, node: cst.MatchAs) -> ast.pattern:
        pattern = self(node.pattern) if node.pattern is not None else None
        return ast.MatchAs(
            pattern, identifier(node.name) if node.name else None, **self.places.at(node)
        )

    def _MatchOr(self, node: cst.MatchOr) -> ast.pattern:
        return ast.MatchOr(
            self._all(each.pattern for each in node.patterns), **self.places.at(node)
        )

    def _MatchStar(self, node: cst.MatchStar) -> ast.pattern:
        name = identifier(node.name) if node.name is not None else None
        return ast.MatchStar(
            name, **self.places.between(self.places.of(node).start, self._star_end(node))
        )

    def _star_end(self, node: cst.MatchStar) -> CodePosition:
        """Where `*rest` ends; of `*_`, the name is no node of its own."""
        if node.name is not None:
            return self.places.of(node.name).end
        return moved(self.places.behind_blanks(moved(self.places.of(node).start, 1)), 1)

    def _MatchSequenceElement(self, node: cst.MatchSequenceElement) -> ast.pattern:
        return self(node.value)

    def _MatchList(self, node: cst.MatchList) -> ast.pattern:
        place = self.places.at(node) if node.lbracket is not None else self._open(node)
        return ast.MatchSequence(self._all(node.patterns), **place)

    def _open(self, node: cst.MatchList) -> Place:
        """The place of a sequence without brackets; a comma at its end belongs to it."""
        first, last = node.patterns[0], node.patterns[-1]
        end = (
            self._star_end(last) if isinstance(last, cst.MatchStar) else self.places.end(last.value)
        )
        begin = self.places.start(first if isinstance(first, cst.MatchStar) else first.value)
        return self.places.between(begin, comma_end(self.places, last, end))

    def _MatchTuple(self, node: cst.MatchTuple) -> ast.pattern:
        place = self.places.between(
            self.places.of(node.lpar[-1]).start, self.places.of(node.rpar[0]).end
        )
        return ast.MatchSequence(self._all(node.patterns), **place)

    def _MatchMapping(self, node: cst.MatchMapping) -> ast.pattern:
        keys = [self.expression(each.key) for each in node.elements]
        patterns = self._all(each.pattern for each in node.elements)
        return ast.MatchMapping(
            keys, patterns, identifier(node.rest) if node.rest else None, **self.places.at(node)
        )

    def _MatchClass(self, node: cst.MatchClass) -> ast.pattern:
        return ast.MatchClass(
            self.expression(node.cls),
            self._all(node.patterns),
            [identifier(each.key) for each in node.kwds],
            self._all(each.pattern for each in node.kwds),
            **self.places.at(node),
        )
