"""Python's syntax tree to IR. Apart from the fixes, the only place that knows how Python is
written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import Any

from gradlint.ir import drains, patterns
from gradlint.ir import nodes as ir
from gradlint.ir.chains import escapes, last, mark_answers
from gradlint.ir.operators import BINARY, COMPARE, UNARY
from gradlint.ir.scopes import leaves, scope
from gradlint.source import document

_ITEM, _KEY = "<item>", "<key>"  # names that no program has
_KINDS = {
    ast.List: "list",
    ast.Tuple: "tuple",
    ast.Set: "set",
    ast.ListComp: "list",
    ast.SetComp: "set",
    ast.GeneratorExp: "generator",
}


def module(tree: ast.Module, code: ir.Code) -> list[ir.Node]:
    """The statements of a module."""
    return _Lowering(code, document.displayed(code.path, code.text, tree)).block(tree.body)


def body(function: ir.Function) -> list[ir.Node]:
    """The statements of a function, lowered on first use. A lambda is one return."""
    if function.cached is None:
        lowering, source = _Lowering(function.code), function.source
        if isinstance(source, ast.Lambda):
            value = lowering.expression(source.body)
            function.cached = [ir.Return(value.at, value)]
        else:
            function.cached = lowering.block(source.body)
        scope(function)
    return function.cached


def _at(node: Any) -> ir.Position:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


class _Lowering:
    """Lowers the nodes of one file; a method for each kind of `ast` node, found by its name."""

    def __init__(self, code: ir.Code, displayed: Collection[ast.stmt] = ()) -> None:
        self.code, self.displayed = code, displayed

    def block(self, statements: list[ast.stmt]) -> list[ir.Node]:
        lowered: list[ir.Node] = []
        for number, statement in enumerate(statements):
            result = getattr(self, "_" + type(statement).__name__, self._unlisted)(statement)
            made = result if isinstance(result, list) else [] if result is None else [result]
            for each in made:
                # what follows `if …: continue` is the other side of that branch
                if isinstance(each, ir.If) and escapes(each.then):
                    each.behind = tuple(statements[number + 1 :])
            lowered.extend(made)
        for place, each in enumerate(lowered):
            if isinstance(each, ir.If):
                each.leaves = leaves(each, lowered[place + 1 :])
                if isinstance(next(iter(lowered[place + 1 :]), None), ir.Raise):
                    last(each).is_last = True
        if lowered and isinstance(lowered[-1], ir.Raise):
            mark_answers(lowered)
        return lowered

    def expression(self, node: ast.expr) -> ir.Node:
        lower: Callable[[Any], ir.Node] = getattr(self, "_" + type(node).__name__, self._unlisted)
        return lower(node)

    def _unlisted(self, node: Any) -> ir.Node:
        """A node of a kind that this Python's parser has and that is not known here."""
        parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return ir.Unlisted(_at(node), type(node).__name__, self._all(parts))

    def _maybe(self, node: ast.expr | None) -> ir.Node | None:
        return None if node is None else self.expression(node)

    def _all(self, nodes: list[ast.expr]) -> list[ir.Node]:
        return [self.expression(node) for node in nodes]

    # expressions

    def _Constant(self, node: ast.Constant) -> ir.Node:
        return ir.Literal(_at(node), node.value)

    def _Name(self, node: ast.Name) -> ir.Node:
        return ir.Name(_at(node), node.id)

    def _Attribute(self, node: ast.Attribute) -> ir.Node:
        return ir.Attribute(_at(node), self.expression(node.value), node.attr)

    def _Subscript(self, node: ast.Subscript) -> ir.Node:
        return ir.Subscript(_at(node), self.expression(node.value), self.expression(node.slice))

    def _Slice(self, node: ast.Slice) -> ir.Node:
        return ir.Slice(
            _at(node), self._maybe(node.lower), self._maybe(node.upper), self._maybe(node.step)
        )

    def _Starred(self, node: ast.Starred) -> ir.Node:
        return ir.Star(_at(node), self.expression(node.value))

    def _Call(self, node: ast.Call) -> ir.Node:
        kwargs = [(keyword.arg, self.expression(keyword.value)) for keyword in node.keywords]
        function = self.expression(node.func)
        if isinstance(function, ir.Attribute):
            function.is_called = True
        return ir.Call(_at(node), function, self._all(node.args), kwargs)

    def _BinOp(self, node: ast.BinOp) -> ir.Node:
        return ir.Binary(
            _at(node),
            BINARY[type(node.op)],
            self.expression(node.left),
            self.expression(node.right),
        )

    def _UnaryOp(self, node: ast.UnaryOp) -> ir.Node:
        # `-1` is a constant, as Python's own compiler has it
        op = UNARY[type(node.op)]
        if (
            op == "-"
            and isinstance(node.operand, ast.Constant)
            and isinstance(node.operand.value, int | float)
        ):
            return ir.Literal(_at(node), -node.operand.value)
        return ir.Unary(_at(node), op, self.expression(node.operand))

    def _BoolOp(self, node: ast.BoolOp) -> ir.Node:
        return ir.Boolean(
            _at(node), "and" if isinstance(node.op, ast.And) else "or", self._all(node.values)
        )

    def _Compare(self, node: ast.Compare) -> ir.Node:
        ops = [COMPARE[type(op)] for op in node.ops]
        return ir.Compare(_at(node), self.expression(node.left), ops, self._all(node.comparators))

    def _IfExp(self, node: ast.IfExp) -> ir.Node:
        return ir.Conditional(
            _at(node),
            self.expression(node.test),
            self.expression(node.body),
            self.expression(node.orelse),
        )

    def _display(self, node: Any) -> ir.Node:
        return ir.Display(_at(node), _KINDS[type(node)], self._all(node.elts))

    _List = _Tuple = _Set = _display

    def _Dict(self, node: ast.Dict) -> ir.Node:
        items = [
            (self._maybe(key), self.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return ir.DictDisplay(_at(node), items)

    def _clauses(self, node: Any) -> list[tuple[ir.Node, ir.Node, list[ir.Node]]]:
        return [
            (self.expression(g.target), self.expression(g.iter), self._all(g.ifs))
            for g in node.generators
        ]

    def _comprehension(self, node: Any) -> ir.Node:
        clauses = self._clauses(node)
        # [*xs for xs in ys] (PEP 798) is [x for xs in ys for x in xs]
        if isinstance(node.elt, ast.Starred):
            clauses.append((ir.Name(_at(node.elt), _ITEM), self.expression(node.elt.value), []))
            element: ir.Node = ir.Name(_at(node.elt), _ITEM)
        else:
            element = self.expression(node.elt)
        return ir.Comprehension(_at(node), _KINDS[type(node)], element, None, clauses)

    _ListComp = _SetComp = _GeneratorExp = _comprehension

    def _DictComp(self, node: Any) -> ir.Node:
        clauses, at = self._clauses(node), _at(node.key)
        if node.value is not None:
            key, value = self.expression(node.key), self.expression(node.value)
        else:  # {**xs for xs in ys} (PEP 798) is {k: v for xs in ys for k, v in xs.items()}
            items = ir.Attribute(at, self.expression(node.key), "items", is_called=True)
            target = ir.Display(at, "tuple", [ir.Name(at, _KEY), ir.Name(at, _ITEM)])
            clauses.append((target, ir.Call(at, items, [], []), []))
            key, value = ir.Name(at, _KEY), ir.Name(at, _ITEM)
        return ir.Comprehension(_at(node), "dict", key, value, clauses)

    def _JoinedStr(self, node: ast.JoinedStr) -> ir.Node:
        return ir.Format(_at(node), self._all(node.values))

    def _FormattedValue(self, node: ast.FormattedValue) -> ir.Node:
        value = self.expression(node.value)
        if node.conversion == -1 and node.format_spec is None:
            return value
        conversion = "" if node.conversion == -1 else chr(node.conversion)
        return ir.Formatted(_at(node), value, conversion, self._maybe(node.format_spec))

    def _TemplateStr(self, node: Any) -> ir.Node:
        """`t"{value}"` (PEP 750): it holds what stands in it, and makes no text of it."""
        return ir.Display(_at(node), "tuple", self._all(node.values))

    def _Interpolation(self, node: Any) -> ir.Node:
        return self.expression(node.value)

    def _NamedExpr(self, node: ast.NamedExpr) -> ir.Node:
        return ir.Walrus(_at(node), self.expression(node.target), self.expression(node.value))

    def _Yield(self, node: ast.Yield) -> ir.Node:
        return ir.Yield(_at(node), self._maybe(node.value))

    def _YieldFrom(self, node: ast.YieldFrom) -> ir.Node:
        return ir.Yield(_at(node), self.expression(node.value), delegates=True)

    def _Await(self, node: ast.Await) -> ir.Node:
        return self.expression(node.value)

    def _Lambda(self, node: ast.Lambda) -> ir.Node:
        return ir.Function(_at(node), "<lambda>", self._parameters(node.args), [], node, self.code)

    # definitions

    def _parameters(self, arguments: ast.arguments) -> list[ir.Parameter]:
        positional = [*arguments.posonlyargs, *arguments.args]
        missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        found = []
        for argument, default in zip(positional, [*missing, *arguments.defaults], strict=True):
            found.append(self._parameter(argument, default, "positional"))
        if arguments.vararg:
            found.append(self._parameter(arguments.vararg, None, "args"))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            found.append(self._parameter(argument, default, "keyword"))
        if arguments.kwarg:
            found.append(self._parameter(arguments.kwarg, None, "kwargs"))
        return found

    def _parameter(self, argument: ast.arg, default: ast.expr | None, kind: str) -> ir.Parameter:
        return ir.Parameter(
            argument.arg, self._maybe(default), kind, self._maybe(argument.annotation)
        )

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ir.Node:
        parameters = self._parameters(node.args)
        return ir.Function(
            _at(node), node.name, parameters, self._all(node.decorator_list), node, self.code
        )

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef) -> ir.Node:
        keywords = [(keyword.arg, self.expression(keyword.value)) for keyword in node.keywords]
        decorators = self._all(node.decorator_list)
        return ir.Class(
            _at(node), node.name, self._all(node.bases), keywords, decorators, self.block(node.body)
        )

    # statements

    def _Assign(self, node: ast.Assign) -> ir.Node:
        return ir.Assign(_at(node), self._all(node.targets), self.expression(node.value))

    def _AnnAssign(self, node: ast.AnnAssign) -> ir.Node | None:
        annotation = self.expression(node.annotation)
        if node.value is not None:
            return ir.Assign(
                _at(node), [self.expression(node.target)], self.expression(node.value), annotation
            )
        return (
            ir.Declare(_at(node), node.target.id, annotation)
            if isinstance(node.target, ast.Name)
            else None
        )

    def _AugAssign(self, node: ast.AugAssign) -> ir.Node:
        return ir.Augment(
            _at(node),
            self.expression(node.target),
            BINARY[type(node.op)],
            self.expression(node.value),
        )

    def _Delete(self, node: ast.Delete) -> ir.Node:
        return ir.Delete(_at(node), self._all(node.targets))

    def _Expr(self, node: ast.Expr) -> ir.Node | None:
        if isinstance(node.value, ast.Constant):
            return None
        kind = ir.Shown if node in self.displayed else ir.Expression
        return kind(_at(node), self.expression(node.value))

    def _If(self, node: ast.If) -> ir.Node:
        return ir.If(
            _at(node),
            self.expression(node.test),
            self.block(node.body),
            self.block(node.orelse),
            node,
        )

    def _While(self, node: ast.While) -> ir.Node:
        if (drained := drains.as_for(node)) is not None:
            return self._For(drained)
        return ir.While(
            _at(node),
            self.expression(node.test),
            self.block(node.body),
            self.block(node.orelse),
            node,
        )

    def _For(self, node: ast.For | ast.AsyncFor) -> ir.Node:
        target, iterable = self.expression(node.target), self.expression(node.iter)
        return ir.For(
            _at(node), target, iterable, self.block(node.body), self.block(node.orelse), node
        )

    _AsyncFor = _For

    def _With(self, node: ast.With | ast.AsyncWith) -> ir.Node:
        # `with a, b:` is `with a:` around `with b:`
        inner = self.block(node.body)
        for item in reversed(node.items):
            context = self.expression(item.context_expr)
            at = _at(node) if len(node.items) == 1 else context.at
            inner[:] = [ir.With(at, context, self._maybe(item.optional_vars), list(inner))]
        return inner[0]

    _AsyncWith = _With

    def _Try(self, node: Any) -> ir.Node:
        handlers = [
            ir.Handler(self._maybe(h.type), h.name, self.block(h.body)) for h in node.handlers
        ]
        return ir.Try(
            _at(node),
            self.block(node.body),
            handlers,
            self.block(node.orelse),
            self.block(node.finalbody),
        )

    _TryStar = _Try

    def _Return(self, node: ast.Return) -> ir.Node:
        return ir.Return(_at(node), self._maybe(node.value))

    def _Raise(self, node: ast.Raise) -> ir.Node:
        return ir.Raise(_at(node), self._maybe(node.exc))

    def _Break(self, node: ast.Break) -> ir.Node:
        return ir.Jump(_at(node), "break")

    def _Continue(self, node: ast.Continue) -> ir.Node:
        return ir.Jump(_at(node), "continue")

    def _Assert(self, node: ast.Assert) -> ir.Node:
        # assert False, "not reached"
        if isinstance(node.test, ast.Constant) and not node.test.value:
            return ir.Raise(_at(node), ir.Name(_at(node), "AssertionError"))
        return ir.Assert(_at(node), self.expression(node.test))

    def _Import(self, node: ast.Import) -> list[ir.Node]:
        return [
            ir.Import(_at(node), a.name, a.asname or a.name.partition(".")[0], a.asname is not None)
            for a in node.names
        ]

    def _ImportFrom(self, node: ast.ImportFrom) -> ir.Node:
        names = [(alias.name, alias.asname or alias.name) for alias in node.names]
        return ir.ImportFrom(_at(node), node.module or "", node.level, names)

    def _nothing(self, node: ast.stmt) -> None:
        """`pass`, and what `scope` has read."""

    _Pass = _Global = _Nonlocal = _nothing

    def _TypeAlias(self, node: Any) -> ir.Node:
        """`type name = value` (PEP 695); that the value is computed when it is first asked for
        changes no tape.
        """
        return ir.Assign(_at(node), [self.expression(node.name)], self.expression(node.value))

    def _Match(self, node: ast.Match) -> list[ir.Node]:
        return self.block(patterns.as_ifs(node))
