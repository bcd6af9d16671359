"""Fixes of the training step: what belongs before the step, or behind it."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding, Fix, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import back_propagated, last_update
from gradlint_rules.clearing import clearing_statement
from gradlint_rules.frames import meeting, moved_after, moved_before
from gradlint_rules.order import (
    calls_of,
    names_of,
    receiver,
    related_statement,
    together,
    whole_call,
)
from gradlint_rules.uncut import safe


def stepped_late(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The backward moved before the step that comes too early."""
    step = related_statement(finding, Role.STEP, source)
    backward = related_statement(finding, Role.BACKWARD, source)
    if backward not in source.block(step) or whole_call(backward) is None:
        raise NoFixError("the step and the backward stand in different blocks")
    between = source.block(step)[
        source.block(step).index(step) : source.block(step).index(backward)
    ]
    if _stored(between) & names_of(backward, ast.Load):
        raise NoFixError("the loss is computed behind the step")
    return source.move_before([backward], step)


def stepped_in_window(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """A step before the gradients of a window are cleared."""
    clearing = clearing_statement(finding, source)
    step = related_statement(finding, Role.STEP, source)
    if source.scope(step) is not source.scope(clearing) or whole_call(step) is None:
        raise NoFixError("the step is not in view")
    return source.before(clearing, source.text(step))


def clipped_between(message: str, finding: Finding, source: FixSource) -> Fix:
    """The clipping moved right before the step; a hook behind it made one before it."""
    step = related_statement(finding, Role.STEP, source)
    clip = source.statement(finding.at)
    for call in calls_of(source.tree, "register_step_post_hook"):
        if isinstance(call.func, ast.Attribute) and _is_hooked(clip, call.args[0], source):
            renamed = source.replace_name(call.func, "register_step_pre_hook")
            return safe(message, (renamed,))
    if "first" in finding.hints and not _are_beside(clip, step, source):
        _, update = meeting(finding, source)
        return moved_before(message, clip, update, finding, source)
    here, there = together(clip, step, source)
    is_loop = isinstance(here, ast.For | ast.While) and any(
        True for _ in calls_of(here, "backward")
    )
    return safe(message, source.move_before([clip if is_loop else here], there))


def _is_hooked(clip: ast.stmt, hook: ast.expr, source: FixSource) -> bool:
    """Whether a statement stands in the function that is given as a hook, or in one that the
    function makes which is called for it: `clip_hook(limit)`.
    """
    functions = {
        outer.name
        for outer in source.around(clip)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    made = hook.func if isinstance(hook, ast.Call) else hook
    return isinstance(made, ast.Name | ast.Attribute) and (
        source.text(made).rpartition(".")[2] in functions
    )


def scheduled_after(message: str, finding: Finding, source: FixSource) -> Fix:
    """The scheduler's step moved behind the optimizer's."""
    schedule = source.statement(finding.at)
    step = related_statement(finding, Role.STEP, source)
    if "first" in finding.hints and not _are_beside(schedule, step, source):
        _, update = meeting(finding, source)
        behind = last_update(update, source)
        return moved_after(message, schedule, behind, finding, source)
    here, there = together(schedule, step, source)
    return safe(message, source.move_after([here], last_update(there, source)))


def _are_beside(one: ast.stmt, other: ast.stmt, source: FixSource) -> bool:
    """Whether two statements are of one function."""
    return source.scope(one) is source.scope(other)


def stepped(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.step` called, or put before the clearing, or behind the backward where the
    clearing comes first.
    """
    backward = source.statement(finding.at)
    uncalled = _named_and_not_called(source.scope(backward))
    if uncalled is not None:
        return (source.replace(uncalled, f"{source.text(uncalled)}()"),)
    clearing = related_statement(finding, Role.CLEARING, source)
    optimizer = finding.hints.get("optimizer", "")
    is_own = optimizer.startswith("self.") and _is_set(optimizer, backward, source)
    if is_own and not _names_it(clearing, optimizer, source):
        return source.after(_last_before_step(finding, backward, source), f"{optimizer}.step()")
    call = next(calls_of(clearing, "zero_grad"), None)
    is_beside = source.scope(clearing) is source.scope(backward)
    if call is None or not is_beside or whole_call(clearing) is None:
        raise NoFixError("no optimizer is in view")
    named = receiver(call, source)
    scaling = next(calls_of(backward, "scale"), None)
    if scaling is not None:
        return _stepped_by(receiver(scaling, source), named, backward, clearing, source)
    if clearing.lineno > backward.lineno:
        return source.before(clearing, f"{named}.step()")
    return source.after(_last_before_step(finding, backward, source), f"{named}.step()")


def _named_and_not_called(scope: ast.AST) -> ast.Attribute | None:
    """`optimizer.step` or `loss.backward` as a statement: the method is named and not called."""
    for node in ast.walk(scope):
        match node:
            case ast.Expr(value=ast.Attribute(attr="step" | "backward") as named):
                return named
    return None


def _is_set(attribute: str, near: ast.stmt, source: FixSource) -> bool:
    """Whether the class around a statement sets an attribute of itself, and its method has
    `self`.
    """
    scope = source.scope(near)
    whole = next((outer for outer in source.around(near) if isinstance(outer, ast.ClassDef)), None)
    has_self = not isinstance(scope, ast.Module) and [each.arg for each in scope.args.args[:1]] == [
        "self"
    ]
    assigned = (node for node in ast.walk(whole) if isinstance(node, ast.Assign)) if whole else ()
    return has_self and any(
        source.text(target) == attribute for node in assigned for target in node.targets
    )


def _names_it(clearing: ast.stmt, optimizer: str, source: FixSource) -> bool:
    return any(receiver(call, source) == optimizer for call in calls_of(clearing, "zero_grad"))


def _last_before_step(finding: Finding, backward: ast.stmt, source: FixSource) -> ast.stmt:
    """The statement behind which gradients are ready for a step: the backward, or what clips
    them.
    """
    clipped = finding.hints.get("clipped", str(backward.lineno))
    last = source.statement_on(int(clipped)) if clipped.isdigit() else None
    while last is not None and last not in source.block(backward):
        last = next((outer for outer in source.around(last) if isinstance(outer, ast.stmt)), None)
    if last is None:
        raise NoFixError("the gradients are clipped out of view")
    return last


def _stepped_by(
    scaler: str, optimizer: str, backward: ast.stmt, clearing: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """The step of a scaler before its update, which comes with it where there is none."""
    line = f"{scaler}.step({optimizer})"
    for call in calls_of(source.scope(backward), "update"):
        statement = source.statement(call)
        if receiver(call, source) == scaler and statement.lineno > backward.lineno:
            return source.before(statement, line)
    lines = (line, f"{scaler}.update()")
    is_behind = clearing.lineno > backward.lineno
    return source.before(clearing, *lines) if is_behind else source.after(backward, *lines)


def fed(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """A backward of the loss before the step, where both stand in one block and the loss has a
    name.
    """
    step, loss = source.statement(finding.at), related_statement(finding, Role.COMPUTED, source)
    if (
        loss not in source.block(step)
        or not isinstance(loss, ast.Assign)
        or not isinstance(loss.targets[0], ast.Name)
    ):
        raise NoFixError("the loss has no name where the step is")
    return source.before(step, f"{loss.targets[0].id}.backward()")


def joined_backwards(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """Two losses back-propagated as their sum; where something comes in between, the first keeps
    its graph.
    """
    second = source.statement(finding.at)
    first = related_statement(finding, Role.BACKWARD, source)
    here, there = together(first, second, source)
    block = source.block(here)
    between = block[block.index(here) + 1 : block.index(there)]
    one, other = back_propagated(first, source), back_propagated(second, source)
    is_plain = (
        here is first
        and there is second
        and not any(_steps(each) or _looks(each) for each in between)
    )
    if (
        is_plain
        and source.text(one) != source.text(other)
        and not _stored(between) & names_of(one, ast.Load)
    ):
        content = f"{source.text(one)} + {source.text(other)}"
        return (*source.remove(first), source.replace(other, content))
    call = next(calls_of(first, "backward", "manual_backward"))
    return (source.add_argument(call, "retain_graph=True"),)


def _steps(statement: ast.stmt) -> bool:
    return any(True for _ in calls_of(statement, "step", "zero_grad", "backward"))


def _looks(statement: ast.stmt) -> bool:
    """Whether a statement looks at gradients."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement)
    )


def _stored(statements: list[ast.stmt]) -> set[str]:
    return {name for statement in statements for name in names_of(statement, ast.Store)}
