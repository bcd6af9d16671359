"""Fixes of what an optimizer and a clip are given."""

from __future__ import annotations

import ast
from typing import TypeGuard

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import optimizer_of
from gradlint_rules.order import related_statement


def handed_over(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What no optimizer holds as one more of the parameters that the one beside it is given."""
    made = source.statement(finding.at)
    if "maker" not in finding.hints or not isinstance(made, ast.Assign) or len(made.targets) > 1:
        raise NoFixError("what nothing trains has no name of its own")
    optimizer = _making(int(finding.hints["maker"]), source)
    given = next(iter(optimizer.args), None)
    name = source.text(made.targets[0])
    if given is None or not _is_bound(made, optimizer, source):
        raise NoFixError("the optimizer is not made beside it")
    more = f"*{name}.parameters()" if finding.hints["owner"] == "module" else name
    return (source.replace(given, _with(given, more, source)),)


def _with(given: ast.expr, more: str, source: FixSource) -> str:
    """The parameters that an optimizer is given, and some more."""
    match given:
        case ast.List(elts=[*_, ast.Dict()]):
            return f'{source.text(given)[:-1].rstrip().rstrip(",")}, {{"params": [{more}]}}]'
        case ast.List(elts=[_, *_]):
            return f"{source.text(given)[:-1].rstrip().rstrip(',')}, {more}]"
        case ast.Call() | ast.ListComp() | ast.GeneratorExp():
            return f"[*{source.operand(given)}, {more}]"
    raise NoFixError("what the optimizer is given stands elsewhere")


def _making(line: int, source: FixSource) -> ast.Call:
    """The call that makes an optimizer on a line."""
    calls = [
        node
        for node in ast.walk(source.statement_on(line))
        if isinstance(node, ast.Call) and node.lineno == line and node.args
    ]
    if not calls:
        raise NoFixError("the optimizer is made elsewhere")
    return calls[0]


def _is_bound(made: ast.Assign, near: ast.AST, source: FixSource) -> bool:
    """Whether a name that is bound before is the same there."""
    return (
        source.scope(made) is source.scope(near)
        and made.lineno < source.statement(near).lineno
        and made in source.scope(made).body
    )


def of_what_is_stepped(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The parameters of the optimizer that steps behind a clip, in the place of others."""
    clip, step = source.expression(finding.at), related_statement(finding, Role.STEP, source)
    if not isinstance(clip, ast.Call) or not clip.args:
        raise NoFixError("what is clipped is not written there")
    if source.scope(step) is not source.scope(clip):
        raise NoFixError("the step stands in another function")
    optimizer = optimizer_of(step, source)
    taken = _given(optimizer, clip, source)
    every = f'[p for group in {optimizer}.param_groups for p in group["params"]]'
    return (source.replace(clip.args[0], taken or every),)


def _given(optimizer: str, near: ast.AST, source: FixSource) -> str:
    """What an optimizer is made of, if that can be asked for anew where it steps:
    `self.model.parameters()`.
    """
    made = [
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and optimizer in map(source.text, node.targets)
    ]
    match made:
        case [
            ast.Call(args=[ast.Call(func=ast.Attribute(attr="parameters"), args=[]) as given, *_])
        ]:
            names = {each.id for each in ast.walk(given) if isinstance(each, ast.Name)}
            is_there = names == {"self"} or source.scope(made[0]) is source.scope(near)
            return source.text(given) if is_there else ""
    return ""


def _has_arguments(made: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(made, ast.Call) and bool(made.args)
