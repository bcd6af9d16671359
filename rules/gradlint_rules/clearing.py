"""Fixes of clearings: `optimizer.zero_grad()` moved, added, or put before a loop."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding, Fix, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import call_of, closure, last_update, optimizer_of
from gradlint_rules.frames import is_all_of_it, meeting, moved_after, moved_before
from gradlint_rules.order import (
    calls_of,
    nested,
    related_statement,
    together,
    whole_call,
)
from gradlint_rules.uncut import safe


def cleared_each_round(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.zero_grad()` at the head of the loop; behind the step of a window, or of another
    function.

    In another function it stands before the backward, where that of another optimizer's loss left
    gradients.
    """
    backward = source.statement(finding.at)
    step = related_statement(finding, Role.STEP, source)
    line = f"{optimizer_of(step, source)}.zero_grad()"
    if any(closure(call, source) is source.scope(backward) for call in calls_of(step, "step")):
        return source.first(source.scope(backward).body, line)
    loops = [outer for outer in nested(step, source) if isinstance(outer, ast.For | ast.While)]
    if loops and loops[0] in nested(backward, source) and not finding.hints.get("window"):
        return source.first(loops[0].body, line)
    own = source.statement_on(int(finding.hints["before"])) if "before" in finding.hints else None
    if own is not None and source.scope(own) is source.scope(step):
        return source.before(own, line)
    return source.after(last_update(step, source), line)


def cleared_before(message: str, finding: Finding, source: FixSource) -> Fix:
    """The clearing moved before the backward, or else behind the step."""
    clearing = clearing_statement(finding, source)
    try:
        backward = related_statement(finding, Role.BACKWARD, source)
        here, there = together(clearing, backward, source)
        if here is clearing and not _needs_gradients(clearing, source):
            return safe(message, source.move_before([clearing], there))
    except NoFixError:
        pass
    step = related_statement(finding, Role.STEP, source)
    if "first" in finding.hints and source.scope(step) is not source.scope(clearing):
        return _cleared_where_they_meet(message, clearing, finding, source)
    here, there = together(clearing, step, source)
    return safe(message, source.move_after([clearing], last_update(there, source)))


def _cleared_where_they_meet(
    message: str, clearing: ast.stmt, finding: Finding, source: FixSource
) -> Fix:
    """The clearing of another function moved before what leads to the backward, or else behind
    what leads to the step.
    """
    backward, step = meeting(finding, source)
    if step in source.block(backward) and not _needs_gradients(clearing, source):
        return moved_before(message, clearing, backward, finding, source)
    return moved_after(message, clearing, last_update(step, source), finding, source)


def _needs_gradients(clearing: ast.stmt, source: FixSource) -> bool:
    """Whether it writes zeros into gradients, and does not ask first whether there are any: none
    are at first.
    """
    nodes = list(ast.walk(clearing))
    owners = [
        node.func.value
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    writes = any(_is_gradient(owner, source) for owner in owners)
    return writes and not any(isinstance(node, ast.If) for node in nodes)


def _is_gradient(node: ast.AST, source: FixSource) -> bool:
    return source.text(node).removesuffix(".data").endswith(".grad")


def cleared_with_the_step(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clearing of every round moved to the step."""
    clearing = clearing_statement(finding, source)
    step = related_statement(finding, Role.STEP, source)
    update = last_update(step, source)
    if source.scope(step) is source.scope(clearing):
        return source.move_after([clearing], update)
    if is_all_of_it(clearing, source):
        return source.move_after([call_of(source.scope(clearing), step, source)], update)
    if not _is_of_both(clearing, step, source):
        raise NoFixError("the step stands in another function")
    return (*source.remove(clearing), *source.after(update, source.text(clearing)))


def _is_of_both(clearing: ast.stmt, step: ast.stmt, source: FixSource) -> bool:
    """Whether a call in one method of an object, `self.optimizer.zero_grad()`, is the same in
    another.
    """
    own, other = (
        next((each for each in source.around(one) if isinstance(each, ast.ClassDef)), None)
        for one in (clearing, step)
    )
    is_whole = whole_call(clearing) is not None and clearing in source.scope(clearing).body
    return own is not None and own is other and is_whole and _names(clearing) == {"self"}


def cleared_before_loop(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clearing moved before the loop of backwards that one step follows."""
    clearing = clearing_statement(finding, source)
    step = related_statement(finding, Role.STEP, source)
    behind = {*nested(step, source)}
    loops = [
        each
        for each in nested(clearing, source)
        if isinstance(each, ast.For | ast.While) and each not in behind
    ]
    if not loops or source.scope(step) is not source.scope(clearing):
        raise NoFixError("the loop is not in view")
    return source.move_before([clearing], loops[-1])


def clearing_statement(finding: Finding, source: FixSource) -> ast.stmt:
    """The statement that clears and does nothing else: a call, or a loop over parameters."""
    statement = source.statement(finding.at)
    for outer in source.around(statement):
        if not isinstance(outer, ast.For | ast.If) or not _is_of_gradients(
            outer, statement, source
        ):
            break
        statement = outer
    if not isinstance(statement, ast.For | ast.If) and whole_call(statement) is None:
        raise NoFixError("the call is part of something else")
    loops = [outer for outer in source.around(statement) if isinstance(outer, ast.For)]
    if not isinstance(statement, ast.For) and any(
        _names(loop.target) & _names(statement) for loop in loops
    ):
        raise NoFixError("it clears what the loop around it goes over")
    block = source.block(statement)
    place = block.index(statement)
    beside = [
        each
        for each in (*block[:place][-1:], *block[place + 1 :][:1])
        if isinstance(each, ast.Expr)
    ]
    if any(_is_of_gradients(each, statement, source) for each in beside):
        raise NoFixError("it clears one gradient of several")
    return statement


def _is_of_gradients(statement: ast.AST, known: ast.stmt, source: FixSource) -> bool:
    """Whether a statement does nothing but `known`, which clears, or the like, or ask whether there
    is a gradient.
    """
    if statement is known:
        return True
    match statement:
        case ast.If(test=test, body=body, orelse=rest):
            return "grad" in source.text(test) and all(
                _is_of_gradients(each, known, source) for each in [*body, *rest]
            )
        case ast.For(iter=over, body=body, orelse=[]):
            return "param" in source.text(over) and all(
                _is_of_gradients(each, known, source) for each in body
            )
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
            return _is_gradient(owner, source)
    return isinstance(statement, ast.Continue | ast.Pass)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
