"""Fixes for writes in place: the same operation out of place, on a copy, or with grad mode off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.modes import is_grad_mode
from gradlint_rules.uncut import values_of

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
    ast.Mod: "%",
    ast.FloorDiv: "//", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip
_ONLY_IN_PLACE = {
    "copy_",
    "zero_",
    "fill_",
    "fill_diagonal_",
    "normal_",
    "uniform_",
    "bernoulli_",
    "random_",
    "set_",
}
_PLACES = (ast.Name, ast.Attribute)


def out_of_place(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The edits that leave the old tensor as it is."""
    statement = source.statement(finding.at)
    contexts = [
        item.context_expr
        for outer in source.around(statement)
        for item in getattr(outer, "items", ())
    ]
    if any(is_grad_mode(context, source) for context in contexts):
        raise NoFixError("out of place, the result would be without a graph")
    if "alias" in finding.hints and not _names_the_whole(statement, finding, source):
        raise NoFixError("what is written is read by way of another tensor that shares its memory")
    match statement:
        case ast.AugAssign(target=ast.Subscript(value=value)) if finding.hints.get("of") == "part":
            return _on_a_copy(value, statement, source)
        case ast.AugAssign(target=target, op=op, value=value):
            operand = (
                source.text(value) if isinstance(value, ast.Constant) else source.operand(value)
            )
            new = f"{source.text(target)} {_OPERATORS[type(op)]} {operand}"
            return (source.rewrite(statement, f"{source.text(target)} = {new}"),)
        case ast.Assign(targets=[ast.Subscript(value=value)]) if not _writes(statement.value):
            return _on_a_copy(value, statement, source)
    return _of_call(_call(finding, source), statement, source)


def _names_the_whole(statement: ast.stmt, finding: Finding, source: FixSource) -> bool:
    """Whether a part is written by way of what it is a part of: `x[:, 0] = …`, `x[0].fill_(…)`."""
    match statement:
        case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
            return isinstance(target, ast.Subscript)
    node = source.expression(finding.at)
    return isinstance(node, ast.Call) and isinstance(_root(node), ast.Subscript)


def _call(finding: Finding, source: FixSource) -> ast.Call:
    node = source.expression(finding.at)
    if not isinstance(node, ast.Call):
        raise NoFixError("no call")
    return node


def _of_call(call: ast.Call, statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """A method or function ending in `_`, one with `inplace=True` or `out=`, or a module made with
    `inplace=True`.
    """
    out = next((keyword for keyword in call.keywords if keyword.arg == "out"), None)
    if out is not None:
        if not _is_whole(call, statement):
            raise NoFixError("what is written is used at once")
        removed = source.remove_argument(call, out)
        return (source.before_text(statement, f"{source.text(out.value)} = "), removed)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name.endswith("_") and not name.endswith("__"):
        return _of_method(call, statement, source)
    inplace = [keyword for keyword in call.keywords if keyword.arg == "inplace"]
    if inplace:
        head = _rebinding(call, call.args[0], statement, source)
        return (*head, source.remove_argument(call, inplace[0]))
    return tuple(
        source.remove_argument(made, keyword) for made, keyword in _made_inplace(call.func, source)
    )


def _of_method(call: ast.Call, statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    chain = list(_chain(call))
    is_function = source.called(call.func).startswith("torch.")
    root = call.args[0] if is_function and call.args else _root(call)
    if any(link.attr in _ONLY_IN_PLACE for link in chain) or isinstance(root, ast.Subscript):
        return _on_a_copy(
            root.value if isinstance(root, ast.Subscript) else root, statement, source
        )
    head = _rebinding(call, root, statement, source)
    renamed = [link for link in chain if link.attr.endswith("_")]
    return (*head, *(source.replace_name(link, link.attr.rstrip("_")) for link in renamed))


def _rebinding(
    call: ast.Call, root: ast.expr, statement: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """`x = ` before a call that stands alone, so that its result is what `x` is from now on."""
    if not _is_whole(call, statement):
        return ()
    if not isinstance(root, _PLACES):
        raise NoFixError("what is written has no name")
    return (source.before_text(statement, f"{source.text(root)} = "),)


def _on_a_copy(place: ast.expr, statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    if not isinstance(place, _PLACES):
        raise NoFixError("what is written has no name")
    text = source.text(place)
    clone = f"{text} = {text}.clone()"
    reads = isinstance(statement, ast.Assign) and any(
        source.text(node) == text for node in ast.walk(statement.value) if isinstance(node, _PLACES)
    )
    if not isinstance(statement, ast.Assign) or not reads:
        return source.before(statement, clone)
    written = source.fresh("written", statement)
    first = f"{written} = {source.text(statement.value)}"
    return (*source.before(statement, first, clone), source.replace(statement.value, written))


def _is_whole(call: ast.Call, statement: ast.stmt) -> bool:
    """Whether a statement is a call, or a chain of methods upon it, and nothing else."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return any(link.value is call for link in _chain(statement.value)) or statement.value is call


def _chain(call: ast.Call) -> Iterator[ast.Attribute]:
    """The methods of `x.f().g()`, last first."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func
        node = node.func.value


def _root(call: ast.Call) -> ast.expr:
    """The `x` of `x.f().g()`."""
    return list(_chain(call))[-1].value


def _writes(value: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr.endswith("_") for node in ast.walk(value)
    )


def _made_inplace(module: ast.expr, source: FixSource) -> list[tuple[ast.Call, ast.keyword]]:
    """The calls that make a module (or its parts) with `inplace=True`, and that argument."""
    made = [node for value in values_of(module, source, module) for node in ast.walk(value)]
    found = [
        (node, keyword) for node in made if isinstance(node, ast.Call) for keyword in node.keywords
    ]
    inplace = [(call, keyword) for call, keyword in found if keyword.arg == "inplace"]
    if not inplace:
        raise NoFixError("what writes in place stands elsewhere")
    return inplace


def with_grad_mode_off(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """Puts a statement under `torch.no_grad()`: into the neighbour that is, or under one of its
    own.
    """
    statement = source.statement(finding.at)
    block = source.block(statement)
    index = block.index(statement)
    before = block[index - 1] if index else None
    behind = block[index + 1] if index + 1 < len(block) else None
    if before is not None and _is_no_grad(before, source):
        return source.move_after([statement], before.body[-1])
    if behind is not None and _is_no_grad(behind, source):
        return source.move_before([statement], behind.body[0])
    no_grad, imports = source.reference("torch.no_grad")
    return (*source.wrap([statement], f"with {no_grad}():"), *imports)


def _is_no_grad(statement: ast.stmt, source: FixSource) -> TypeGuard[ast.With]:
    match statement:
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func), optional_vars=None)]):
            return source.called(func) == "torch.no_grad"
    return False
