"""Statements of libcst as those of `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import libcst as cst
from libcst.metadata import CodePosition

from gradlint.source import kinds
from gradlint.source.concrete.expressions import (
    DELETE,
    LOAD,
    STORE,
    Expressions,
    dotted,
    identifier,
    operator,
)
from gradlint.source.concrete.patterns import Patterns
from gradlint.source.concrete.places import Place, Places, method

_Suite = cst.BaseSuite | cst.Else | cst.Finally
_From = cst.ImportFrom | cst.LazyImportFrom


def module(places: Places, node: cst.Module) -> ast.Module:
    """The module as Python's own parser would give it."""
    return ast.Module(list(_Statements(places).lines(node.body)), [])


class _Statements:
    """Converts the statements of one module; a method for each kind of libcst's nodes, found by its
    name.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.expression = Expressions(places)
        self.pattern = Patterns(places, self.expression)

    def lines(self, nodes: Iterable[cst.CSTNode]) -> Iterator[ast.stmt]:
        """The statements of some lines, several of which can stand in one."""
        for node in nodes:
            for each in node.body if isinstance(node, cst.SimpleStatementLine) else (node,):
                yield method(self, each)(each)

    # blocks

    def _block(self, node: _Suite | None) -> list[ast.stmt]:
        if node is None:
            return []
        return list(self.lines(self._suite(node).body))

    def _suite(self, node: cst.CSTNode) -> cst.BaseSuite:
        while not isinstance(node, cst.BaseSuite):
            node = node.body  # type: ignore[attr-defined]
        return node

    def _place(self, node: cst.CSTNode, last: cst.CSTNode) -> Place:
        """The place of a statement whose last block is that of `last`."""
        return self.places.between(self.places.of(node).start, self._end(last))

    def _end(self, node: cst.CSTNode) -> CodePosition:
        """Where a statement, or a part of one, ends: behind the last semicolon of its last
        block.
        """
        if isinstance(node, cst.BaseSmallStatement):
            last = node.semicolon if isinstance(node.semicolon, cst.Semicolon) else node
            return self.places.of(last).end
        if isinstance(node, cst.Match):
            return self._end(node.cases[-1])
        for name in ("finalbody", "orelse", "handlers"):
            part = getattr(node, name, None)
            if part:
                return self._end(part[-1] if isinstance(part, Sequence) else part)
        body = node.body  # type: ignore[attr-defined]
        return self._end(body[-1] if isinstance(body, Sequence) else body)

    # compound statements

    def _If(self, node: cst.If) -> ast.stmt:
        test, body = self.expression(node.test), self._block(node.body)
        orelse = (
            [self._If(node.orelse)] if isinstance(node.orelse, cst.If) else self._block(node.orelse)
        )
        return ast.If(test, body, orelse, **self._place(node, node))

    def _While(self, node: cst.While) -> ast.stmt:
        body, orelse = self._block(node.body), self._block(node.orelse)
        return ast.While(self.expression(node.test), body, orelse, **self._place(node, node))

    def _For(self, node: cst.For) -> ast.stmt:
        kind = ast.AsyncFor if node.asynchronous else ast.For
        target, iterable = self.expression(node.target, STORE), self.expression(node.iter)
        return kind(
            target,
            iterable,
            self._block(node.body),
            self._block(node.orelse),
            **self._place(node, node),
        )

    def _With(self, node: cst.With) -> ast.stmt:
        kind = ast.AsyncWith if node.asynchronous else ast.With
        items = [
            ast.withitem(self.expression(each.item), self._bound(each.asname))
            for each in node.items
        ]
        return kind(items, self._block(node.body), **self._place(node, node))

    def _bound(self, node: cst.AsName | None) -> ast.expr | None:
        return None if node is None else self.expression(node.name, STORE)

    def _Try(self, node: cst.Try | cst.TryStar) -> ast.stmt:
        kind = ast.TryStar if isinstance(node, cst.TryStar) else ast.Try
        handlers = [self._handler(each) for each in node.handlers]
        body, orelse, finalbody = (
            self._block(node.body),
            self._block(node.orelse),
            self._block(node.finalbody),
        )
        return kind(body, handlers, orelse, finalbody, **self._place(node, node))

    _TryStar = _Try

    def _handler(self, node: cst.ExceptHandler | cst.ExceptStarHandler) -> ast.ExceptHandler:
        name = dotted(node.name.name) if node.name is not None else None
        return ast.ExceptHandler(
            self.expression.maybe(node.type),
            name,
            self._block(node.body),
            **self._place(node, node),
        )

    def _Match(self, node: cst.Match) -> ast.stmt:
        cases = [
            ast.match_case(
                self.pattern(each.pattern),
                self.expression.maybe(each.guard),
                self._block(each.body),
            )
            for each in node.cases
        ]
        return ast.Match(self.expression(node.subject), cases, **self._place(node, node))

    # definitions

    def _FunctionDef(self, node: cst.FunctionDef) -> ast.stmt:
        kind = ast.AsyncFunctionDef if node.asynchronous else ast.FunctionDef
        found = kind(
            identifier(node.name),
            self.expression.parameters(node.params),
            self._block(node.body),
            self._decorators(node),
            self.expression.maybe(node.returns.annotation if node.returns is not None else None),
            **self._place(node, node),
        )
        self._set_type_params(found, node.type_parameters)
        return found

    def _ClassDef(self, node: cst.ClassDef) -> ast.stmt:
        bases, keywords = self.expression.arguments([*node.bases, *node.keywords])
        found = ast.ClassDef(
            identifier(node.name), bases, keywords, self._block(node.body), self._decorators(node),
            **self._place(node, node),
        )  # fmt: skip
        self._set_type_params(found, node.type_parameters)
        return found

    def _decorators(self, node: cst.FunctionDef | cst.ClassDef) -> list[ast.expr]:
        return [self.expression(each.decorator) for each in node.decorators]

    def _set_type_params(self, found: Any, node: cst.TypeParameters | None) -> None:
        found.type_params = self._type_params(node)  # definitions of Python 3.11 have no such field

    def _type_params(self, node: cst.TypeParameters | None) -> list[Any]:
        return [self._type_param(each) for each in node.params] if node is not None else []

    def _type_param(self, node: cst.TypeParam) -> Any:
        param, bound = node.param, {}
        if isinstance(param, cst.TypeVar):
            bound["bound"] = self.expression.maybe(param.bound)
        place = self.places.across(param, node.default or param)
        found = getattr(kinds, type(param).__name__)(identifier(param.name), **bound, **place)
        found.default_value = self._default(node)
        return found

    def _default(self, node: cst.TypeParam) -> ast.expr | None:
        value = self.expression.maybe(node.default)
        if (
            value is None
            or not node.star
            or node.default is None
            or not isinstance(node.equal, cst.AssignEqual)
        ):
            return value
        star = self.places.behind_blanks(self.places.of(node.equal).end)
        return ast.Starred(value, LOAD, **self.places.between(star, self.places.end(node.default)))

    def _TypeAlias(self, node: cst.TypeAlias) -> ast.stmt:
        name = self.expression(node.name, STORE)
        value = self.expression(node.value)
        found: ast.stmt = kinds.TypeAlias(
            name, self._type_params(node.type_parameters), value, **self.places.at(node)
        )
        return found

    # simple statements

    def _Expr(self, node: cst.Expr) -> ast.stmt:
        return ast.Expr(self.expression(node.value), **self.places.at(node))

    def _Assign(self, node: cst.Assign) -> ast.stmt:
        targets = [self.expression(each.target, STORE) for each in node.targets]
        return ast.Assign(targets, self.expression(node.value), **self.places.at(node))

    def _AnnAssign(self, node: cst.AnnAssign) -> ast.stmt:
        simple = int(isinstance(node.target, cst.Name) and not node.target.lpar)
        return ast.AnnAssign(
            self.expression(node.target, STORE), self.expression(node.annotation.annotation),
            self.expression.maybe(node.value), simple, **self.places.at(node),
        )  # fmt: skip

    def _AugAssign(self, node: cst.AugAssign) -> ast.stmt:
        target = self.expression(node.target, STORE)
        return ast.AugAssign(
            target, operator(node.operator), self.expression(node.value), **self.places.at(node)
        )

    def _Del(self, node: cst.Del) -> ast.stmt:
        is_open = isinstance(node.target, cst.Tuple) and not node.target.lpar
        target = self.expression(node.target, DELETE)
        targets = target.elts if is_open and isinstance(target, ast.Tuple) else [target]
        return ast.Delete(targets, **self.places.at(node))

    def _Return(self, node: cst.Return) -> ast.stmt:
        return ast.Return(self.expression.maybe(node.value), **self.places.at(node))

    def _Raise(self, node: cst.Raise) -> ast.stmt:
        cause = self.expression.maybe(node.cause.item if node.cause is not None else None)
        return ast.Raise(self.expression.maybe(node.exc), cause, **self.places.at(node))

    def _Assert(self, node: cst.Assert) -> ast.stmt:
        return ast.Assert(
            self.expression(node.test), self.expression.maybe(node.msg), **self.places.at(node)
        )

    def _Pass(self, node: cst.Pass) -> ast.stmt:
        return ast.Pass(**self.places.at(node))

    def _Break(self, node: cst.Break) -> ast.stmt:
        return ast.Break(**self.places.at(node))

    def _Continue(self, node: cst.Continue) -> ast.stmt:
        return ast.Continue(**self.places.at(node))

    def _Global(self, node: cst.Global) -> ast.stmt:
        return ast.Global([identifier(each.name) for each in node.names], **self.places.at(node))

    def _Nonlocal(self, node: cst.Nonlocal) -> ast.stmt:
        return ast.Nonlocal([identifier(each.name) for each in node.names], **self.places.at(node))

    # imports

    def _Import(self, node: cst.Import | cst.LazyImport) -> ast.stmt:
        found = ast.Import([self._alias(each) for each in node.names], **self.places.at(node))
        return self._marked(found, isinstance(node, cst.LazyImport))

    _LazyImport = _Import

    def _ImportFrom(self, node: _From) -> ast.stmt:
        source = dotted(node.module) if node.module is not None else None
        if isinstance(node.names, cst.ImportStar):
            names = [ast.alias("*", None, **self.places.at(node.names))]
        else:
            names = [self._alias(each) for each in node.names]
        found = ast.ImportFrom(source, names, len(node.relative), **self.places.at(node))
        return self._marked(found, isinstance(node, cst.LazyImportFrom))

    _LazyImportFrom = _ImportFrom

    def _marked(self, found: Any, is_lazy: bool) -> ast.stmt:
        """An import that says whether it is a lazy one (PEP 810), for which nodes before Python
        3.15 have no field.
        """
        found.is_lazy = int(is_lazy)
        made: ast.stmt = found
        return made

    def _alias(self, node: cst.ImportAlias) -> ast.alias:
        asname = dotted(node.asname.name) if node.asname is not None else None
        return ast.alias(dotted(node.name), asname, **self.places.at(node))
