"""Expressions of libcst as those of `ast`."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst
from libcst.metadata import CodePosition

from gradlint.source.concrete import literals
from gradlint.source.concrete.places import Place, Places, method

LOAD, STORE, DELETE = ast.Load(), ast.Store(), ast.Del()
_CONSTANTS = {"None": None, "True": True, "False": False}
_BINARY: dict[str, ast.operator] = {
    "Add": ast.Add(), "Subtract": ast.Sub(), "Multiply": ast.Mult(), "Divide": ast.Div(),
    "FloorDivide": ast.FloorDiv(), "Modulo": ast.Mod(), "Power": ast.Pow(),
    "MatrixMultiply": ast.MatMult(),
    "BitAnd": ast.BitAnd(), "BitOr": ast.BitOr(), "BitXor": ast.BitXor(), "LeftShift": ast.LShift(),
    "RightShift": ast.RShift(),
}  # fmt: skip
_UNARY: dict[str, ast.unaryop] = {
    "Minus": ast.USub(),
    "Plus": ast.UAdd(),
    "BitInvert": ast.Invert(),
    "Not": ast.Not(),
}
_BOOLEAN: dict[str, ast.boolop] = {"And": ast.And(), "Or": ast.Or()}
_COMPARISONS: dict[str, ast.cmpop] = {
    "Equal": ast.Eq(), "NotEqual": ast.NotEq(), "LessThan": ast.Lt(), "LessThanEqual": ast.LtE(),
    "GreaterThan": ast.Gt(), "GreaterThanEqual": ast.GtE(), "Is": ast.Is(), "IsNot": ast.IsNot(),
    "In": ast.In(),
    "NotIn": ast.NotIn(),
}  # fmt: skip


def identifier(name: cst.Name) -> str:
    """The name as Python knows it (PEP 3131)."""
    return name.value if name.value.isascii() else unicodedata.normalize("NFKC", name.value)


def operator(node: cst.BaseBinaryOp | cst.BaseAugOp) -> ast.operator:
    """`+` of `a + b` or `a += b`."""
    return _BINARY[type(node).__name__.removesuffix("Assign")]


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` as one name."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{identifier(node.attr)}"
    assert isinstance(node, cst.Name)
    return identifier(node)


def comma_end(places: Places, element: Any, end: CodePosition) -> CodePosition:
    """Where an element ends that the comma behind it belongs to, if there is one."""
    return places.of(element.comma).end if isinstance(element.comma, cst.Comma) else end


def _last_of(node: cst.Slice) -> cst.CSTNode:
    """What comes last in a slice: a colon, where nothing follows it."""
    colon = node.second_colon if isinstance(node.second_colon, cst.Colon) else None
    return node.step or colon or node.upper or node.first_colon


class Expressions:
    """Converts the expressions of one module; a method for each kind of libcst's nodes, found by
    its name.
    """

    def __init__(self, places: Places) -> None:
        self.places = places

    def __call__(self, node: cst.CSTNode, ctx: ast.expr_context = LOAD) -> Any:
        return method(self, node)(node, ctx)

    def maybe(self, node: cst.CSTNode | None) -> ast.expr | None:
        return None if node is None else self(node)

    def _all(self, nodes: Iterable[cst.CSTNode], ctx: ast.expr_context = LOAD) -> list[ast.expr]:
        return [self(node, ctx) for node in nodes]

    # names and literals

    def _Name(self, node: cst.Name, ctx: ast.expr_context) -> ast.expr:
        if node.value in _CONSTANTS:
            return ast.Constant(_CONSTANTS[node.value], **self.places.at(node))
        return ast.Name(identifier(node), ctx, **self.places.at(node))

    def _Ellipsis(self, node: cst.Ellipsis, _: ast.expr_context) -> ast.expr:
        return ast.Constant(..., **self.places.at(node))

    def _number(
        self, node: cst.Integer | cst.Float | cst.Imaginary, _: ast.expr_context
    ) -> ast.expr:
        return ast.Constant(ast.literal_eval(node.value), **self.places.at(node))

    _Integer = _Float = _Imaginary = _number

    def _string(self, node: cst.BaseString, _: ast.expr_context) -> ast.expr:
        try:
            return literals.string(self, node)
        except (
            SyntaxError
        ) as error:  # an escape that is none, of which Python counts the places within the string
            error.lineno = self.places.of(node).start.line
            raise

    _SimpleString = _FormattedString = _TemplatedString = _ConcatenatedString = _string

    # operators

    def _UnaryOperation(self, node: cst.UnaryOperation, _: ast.expr_context) -> ast.expr:
        op = _UNARY[type(node.operator).__name__]
        return ast.UnaryOp(op, self(node.expression), **self.places.at(node))

    def _BinaryOperation(self, node: cst.BinaryOperation, _: ast.expr_context) -> ast.expr:
        return ast.BinOp(
            self(node.left), operator(node.operator), self(node.right), **self.places.at(node)
        )

    def _BooleanOperation(self, node: cst.BooleanOperation, _: ast.expr_context) -> ast.expr:
        """`a and b and c`, which libcst nests to the left."""
        kind, values = type(node.operator), [node.right]
        left = node.left
        while (
            isinstance(left, cst.BooleanOperation)
            and isinstance(left.operator, kind)
            and not left.lpar
        ):
            values.append(left.right)
            left = left.left
        return ast.BoolOp(
            _BOOLEAN[kind.__name__], self._all([left, *reversed(values)]), **self.places.at(node)
        )

    def _Comparison(self, node: cst.Comparison, _: ast.expr_context) -> ast.expr:
        ops = [_COMPARISONS[type(target.operator).__name__] for target in node.comparisons]
        comparators = self._all(target.comparator for target in node.comparisons)
        return ast.Compare(self(node.left), ops, comparators, **self.places.at(node))

    def _IfExp(self, node: cst.IfExp, _: ast.expr_context) -> ast.expr:
        return ast.IfExp(
            self(node.test), self(node.body), self(node.orelse), **self.places.at(node)
        )

    def _NamedExpr(self, node: cst.NamedExpr, _: ast.expr_context) -> ast.expr:
        return ast.NamedExpr(self(node.target, STORE), self(node.value), **self.places.at(node))

    def _Await(self, node: cst.Await, _: ast.expr_context) -> ast.expr:
        return ast.Await(self(node.expression), **self.places.at(node))

    def _Yield(self, node: cst.Yield, _: ast.expr_context) -> ast.expr:
        if isinstance(node.value, cst.From):
            return ast.YieldFrom(self(node.value.item), **self.places.at(node))
        return ast.Yield(self.maybe(node.value), **self.places.at(node))

    def _Lambda(self, node: cst.Lambda, _: ast.expr_context) -> ast.expr:
        return ast.Lambda(self.parameters(node.params), self(node.body), **self.places.at(node))

    # what a name is followed by

    def _Attribute(self, node: cst.Attribute, ctx: ast.expr_context) -> ast.expr:
        return ast.Attribute(self(node.value), identifier(node.attr), ctx, **self.places.at(node))

    def _Subscript(self, node: cst.Subscript, ctx: ast.expr_context) -> ast.expr:
        return ast.Subscript(
            self(node.value), self._slices(node.slice), ctx, **self.places.at(node)
        )

    def _slices(self, elements: Sequence[cst.SubscriptElement]) -> ast.expr:
        found = self._all(element.slice for element in elements)
        last = elements[-1]
        if (
            len(found) == 1
            and not isinstance(last.comma, cst.Comma)
            and not isinstance(found[0], ast.Starred)
        ):
            return found[0]
        end = comma_end(self.places, last, self._end_of_slice(last.slice))
        return ast.Tuple(found, LOAD, **self.places.between(self.places.of(elements[0]).start, end))

    def _end_of_slice(self, node: cst.BaseSlice) -> CodePosition:
        """Where an index ends; libcst counts the blanks behind a colon to a slice."""
        return (
            self.places.end(_last_of(node))
            if isinstance(node, cst.Slice)
            else self.places.of(node).end
        )

    def _Index(self, node: cst.Index, _: ast.expr_context) -> ast.expr:
        return (
            ast.Starred(self(node.value), LOAD, **self.places.at(node))
            if node.star
            else self(node.value)
        )

    def _Slice(self, node: cst.Slice, _: ast.expr_context) -> ast.expr:
        place = self.places.across(node.lower or node.first_colon, _last_of(node))
        return ast.Slice(
            self.maybe(node.lower), self.maybe(node.upper), self.maybe(node.step), **place
        )

    def _Call(self, node: cst.Call, _: ast.expr_context) -> ast.expr:
        only = node.args[0].value if len(node.args) == 1 else None
        # the parentheses of the call are its own, too
        if isinstance(only, cst.GeneratorExp) and not only.lpar:
            begin = self.places.behind_blanks(self.places.end(node.func))
            place = self.places.between(begin, self.places.of(node).end)
            return ast.Call(
                self(node.func), [self._generator(only, place)], [], **self.places.at(node)
            )
        positional, keywords = self.arguments(node.args)
        return ast.Call(self(node.func), positional, keywords, **self.places.at(node))

    def arguments(self, args: Sequence[cst.Arg]) -> tuple[list[ast.expr], list[ast.keyword]]:
        """What a call or a class is given: by position, and by name."""
        positional: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        for arg in args:
            at = self.places.at(arg)
            if arg.keyword is not None or arg.star == "**":
                name = identifier(arg.keyword) if arg.keyword else None
                keywords.append(ast.keyword(name, self(arg.value), **at))
            elif arg.star:
                positional.append(ast.Starred(self(arg.value), LOAD, **at))
            else:
                positional.append(self(arg.value))
        return positional, keywords

    # displays

    def _Tuple(self, node: cst.Tuple, ctx: ast.expr_context) -> ast.expr:
        elements = self._all(node.elements, ctx)
        if node.lpar:
            place = self._parenthesised(node)
        else:
            first, last = node.elements[0], node.elements[-1]
            end = comma_end(self.places, last, self._element_end(last))
            place = self.places.between(self.places.start(first), end)
        return ast.Tuple(elements, ctx, **place)

    def _element_end(self, element: cst.BaseElement) -> CodePosition:
        return self.places.end(
            element if isinstance(element, cst.StarredElement) else element.value
        )

    def _parenthesised(self, node: cst.Tuple | cst.GeneratorExp) -> Place:
        """The place of what its innermost parentheses belong to."""
        return self.places.between(
            self.places.of(node.lpar[-1]).start, self.places.of(node.rpar[0]).end
        )

    def _display(self, node: cst.List | cst.Set, ctx: ast.expr_context) -> ast.expr:
        elements, place = self._all(node.elements, ctx), self.places.at(node)
        return (
            ast.List(elements, ctx, **place)
            if isinstance(node, cst.List)
            else ast.Set(elements, **place)
        )

    _List = _Set = _display

    def _Element(self, node: cst.Element, ctx: ast.expr_context) -> Any:
        return self(node.value, ctx)

    def _StarredElement(self, node: cst.StarredElement, ctx: ast.expr_context) -> ast.expr:
        return ast.Starred(self(node.value, ctx), ctx, **self.places.at(node))

    def _Dict(self, node: cst.Dict, _: ast.expr_context) -> ast.expr:
        keys = [
            self(each.key) if isinstance(each, cst.DictElement) else None for each in node.elements
        ]
        return ast.Dict(
            keys, self._all(each.value for each in node.elements), **self.places.at(node)
        )

    # comprehensions

    def _comprehension(self, node: cst.ListComp | cst.SetComp, _: ast.expr_context) -> ast.expr:
        kind = ast.ListComp if isinstance(node, cst.ListComp) else ast.SetComp
        return kind(self(node.elt), self._clauses(node.for_in), **self.places.at(node))

    _ListComp = _SetComp = _comprehension

    def _GeneratorExp(self, node: cst.GeneratorExp, _: ast.expr_context) -> ast.expr:
        return self._generator(node, self._parenthesised(node))

    def _generator(self, node: cst.GeneratorExp, place: Place) -> ast.expr:
        return ast.GeneratorExp(self(node.elt), self._clauses(node.for_in), **place)

    def _DictComp(self, node: cst.DictComp, _: ast.expr_context) -> ast.expr:
        return ast.DictComp(
            self(node.key), self(node.value), self._clauses(node.for_in), **self.places.at(node)
        )

    def _StarredDictComp(self, node: cst.StarredDictComp, _: ast.expr_context) -> ast.expr:
        """`{**each for each in them}` (PEP 798), which Python 3.15 writes as one without a
        value.
        """
        value: Any = None
        return ast.DictComp(
            self(node.value), value, self._clauses(node.for_in), **self.places.at(node)
        )

    def _clauses(self, clause: cst.CompFor | None) -> list[ast.comprehension]:
        found = []
        while clause is not None:
            tests = self._all(each.test for each in clause.ifs)
            is_async = int(clause.asynchronous is not None)
            found.append(
                ast.comprehension(self(clause.target, STORE), self(clause.iter), tests, is_async)
            )
            clause = clause.inner_for_in
        return found

    # parameters

    def parameters(self, node: cst.Parameters) -> ast.arguments:
        """The parameters of a function or a lambda."""
        positional = [*node.posonly_params, *node.params]
        return ast.arguments(
            posonlyargs=[self._parameter(each) for each in node.posonly_params],
            args=[self._parameter(each) for each in node.params],
            vararg=self._parameter(node.star_arg) if isinstance(node.star_arg, cst.Param) else None,
            kwonlyargs=[self._parameter(each) for each in node.kwonly_params],
            kw_defaults=[self.maybe(each.default) for each in node.kwonly_params],
            kwarg=self._parameter(node.star_kwarg) if node.star_kwarg is not None else None,
            defaults=[self(each.default) for each in positional if each.default is not None],
        )

    def _parameter(self, node: cst.Param) -> ast.arg:
        annotation = node.annotation.annotation if node.annotation is not None else None
        place = self.places.across(node.name, annotation or node.name)
        return ast.arg(identifier(node.name), self.maybe(annotation), **place)
