"""Fixes of what is kept beyond its round: kept without its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import PLACES
from gradlint_rules.order import called_name, calls_of
from gradlint_rules.uncut import values_of

_WAYS = 3  # a name, a function that returns a name, and what that stands for


def kept_detached(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is kept beyond its round kept without its graph."""
    statement = source.statement(finding.at)
    kept = _kept(statement, finding, source)
    scope = source.scope(statement)
    arguments = (
        []
        if isinstance(scope, ast.Module)
        else [a.arg for a in (*scope.args.args, *scope.args.kwonlyargs)]
    )
    inner = kept[0]
    if isinstance(inner, ast.Name) and inner.id in arguments:
        if parts := list(dict.fromkeys(_handed(inner, finding, source))):
            return tuple(source.replace(each, f"{source.operand(each)}.detach()") for each in parts)
        is_tensor, imports = source.reference("torch.is_tensor")
        name = inner.id
        line = f"{name} = {name}.detach() if {is_tensor}({name}) else {name}"
        return (*source.before(statement, line), *imports)
    return tuple(source.replace(each, f"{source.operand(each)}.detach()") for each in kept)


def _handed(parameter: ast.Name, finding: Finding, source: FixSource) -> Iterator[ast.expr]:
    """What is kept, where a record or dict that holds it is made to be handed to the function."""
    function = source.scope(parameter)
    if isinstance(function, ast.Module) or parameter.id in _titles(finding):
        return
    for call in calls_of(source.tree, function.name):
        for given in (*call.args, *(word.value for word in call.keywords)):
            for made in _made(given, source, _WAYS):
                yield from _named(_parts(made), _titles(finding), source)


def _made(given: ast.expr, source: FixSource, ways: int) -> Iterator[ast.expr]:
    """The expressions that make what is given: by a name, or in a function of the file."""
    yield given
    if not ways:
        return
    if isinstance(given, ast.Name):
        for value in values_of(given, source, given):
            yield from _made(value, source, ways - 1)
    if isinstance(given, ast.Call):
        for value in _returned(called_name(given), source):
            yield from _made(value, source, ways - 1)


def _returned(name: str, source: FixSource) -> Iterator[ast.expr]:
    """What the functions of this name return."""
    for function in ast.walk(source.tree):
        if isinstance(function, ast.FunctionDef) and function.name == name:
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value


def _kept(statement: ast.stmt, finding: Finding, source: FixSource) -> list[ast.expr]:
    """The expressions of a statement that keep something."""
    match statement:
        case ast.AugAssign(value=value):
            return _within(value, finding, source)
        case ast.Expr(value=ast.Call(args=[*others, ast.expr() as last])):
            given = [each for each in others if source.text(each) in _titles(finding)]
            return given or _within(last, finding, source)
        case ast.Assign(value=ast.ListComp(elt=ast.Call() as item)):
            return [item]
        case ast.Assign(value=ast.BinOp(op=ast.Add(), left=left, right=right), targets=[target]):
            if source.text(left) == source.text(target):
                return _within(right, finding, source)
            if source.text(right) == source.text(target):
                return _within(left, finding, source)
    match (
        statement
    ):  # what is computed here is not only kept: the backward of this round may need it
        case ast.Assign(value=value, targets=[target]):
            read = {source.text(node) for node in ast.walk(value) if isinstance(node, PLACES)}
            is_put_away = (
                isinstance(target, ast.Subscript | ast.Attribute) and "used" not in finding.hints
            )
            if isinstance(value, PLACES) or source.text(target) in read or is_put_away:
                return [value]
    raise NoFixError("nothing is kept here")


def _within(value: ast.expr, finding: Finding, source: FixSource) -> list[ast.expr]:
    """What is kept of what is handed over: an item of a list, a dict or a record that is made
    there, or all of it.
    """
    parts = _parts(value)
    if not parts or source.text(value) in _titles(finding):
        return [value]
    items = list(_named(parts, _titles(finding), source))
    if not items and isinstance(value, ast.List | ast.BinOp) and len(parts) == 1:
        return _within(parts[0], finding, source)
    if not items:
        raise NoFixError("which item is kept is not known")
    return items


def _titles(finding: Finding) -> list[str]:
    """How what is kept is written: several, where one record holds them."""
    return finding.hints.get("kept", "").splitlines()


def _named(parts: Iterable[ast.expr], kept: Sequence[str], source: FixSource) -> Iterator[ast.expr]:
    """The parts, and parts of parts, that are written as what is kept."""
    for part in parts:
        if source.text(part) in kept:
            yield part
        else:
            yield from _named(_parts(part), kept, source)


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a list, a dict or a record is made of, and `[x]` of `[x] * n`."""
    match value:
        case ast.BinOp(left=ast.List(elts=items)) | ast.List(elts=items) | ast.Tuple(elts=items):
            return items
        case ast.Dict(values=items):
            return items
        case ast.Call(args=items, keywords=words):
            return [*items, *(word.value for word in words)]
    return []
