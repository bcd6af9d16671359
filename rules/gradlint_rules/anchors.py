"""Statements of a training step that fixes go by: the call, the update, the `if` around a step."""

from __future__ import annotations

import ast

from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import (
    calls_of,
    nested,
    receiver,
    whole_call,
)

PLACES = (ast.Name, ast.Attribute, ast.Subscript)


def optimizer_of(statement: ast.stmt, source: FixSource) -> str:
    """The optimizer that a statement steps: `optimizer.step()`, or `scaler.step(optimizer)`."""
    for call in calls_of(statement, "step"):
        is_scaled = bool(call.args) and closure(call, source) is None
        return source.text(call.args[0]) if is_scaled else receiver(call, source)
    raise NoFixError("no step")


def closure(step: ast.Call, source: FixSource) -> ast.FunctionDef | None:
    """The function that `optimizer.step(closure)` is given by its name."""
    given = {each.id for each in step.args[:1] if isinstance(each, ast.Name)}
    functions = (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef))
    return next((function for function in functions if function.name in given), None)


def call_of(function: ast.AST, near: ast.stmt, source: FixSource) -> ast.stmt:
    """The one statement beside another that calls a function, and does nothing else:
    `self.clear()`.
    """
    name = getattr(function, "name", "")
    statements = (
        [source.statement(call) for call in calls_of(source.scope(near), name)] if name else []
    )
    if (
        len(statements) != 1
        or whole_call(statements[0]) is None
        or source.scope(statements[0]) is not source.scope(near)
    ):
        raise NoFixError("the step stands in another function")
    return statements[0]


def last_update(step: ast.stmt, source: FixSource) -> ast.stmt:
    """The statement behind which a step is over: an update of the scaler follows it."""
    block = source.block(step)
    following = block[block.index(step) + 1 : block.index(step) + 2]
    is_update = bool(following) and any(True for _ in calls_of(following[0], "update"))
    return following[0] if is_update else step


def gate_of(step: ast.stmt, source: FixSource) -> ast.If:
    """The `if` that lets a step through."""
    for outer in nested(step, source):
        if isinstance(outer, ast.If):
            return outer
        if isinstance(outer, ast.For | ast.While):
            break
    raise NoFixError("no condition lets the step through")


def window_of(condition: ast.expr, source: FixSource) -> ast.expr:
    """The N of `(i + 1) % N == 0`, or of `count == N`."""
    for node in ast.walk(condition):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return node.right
    for node in ast.walk(condition):
        match node:
            case ast.Compare(comparators=[ast.Constant(value=0)]):  # counted down
                continue
            case ast.Compare(ops=[ast.Eq() | ast.GtE()], comparators=[window]) if not isinstance(
                window, ast.Call
            ):
                return window
    raise NoFixError("no window is in view")


def skip(step: ast.stmt, source: FixSource) -> ast.If:
    """The `if …: continue` before a step."""
    block = source.block(step)
    for other in block[: block.index(step)]:
        if isinstance(other, ast.If) and any(isinstance(each, ast.Continue) for each in other.body):
            return other
    raise NoFixError("no condition lets the step through")


def back_propagated(statement: ast.stmt, source: FixSource) -> ast.expr:
    """The loss of `loss.backward()`, `scaler.scale(loss).backward()` or
    `accelerator.backward(loss)`.
    """
    call = next(calls_of(statement, "backward", "manual_backward"), None)
    if call is None or not isinstance(call.func, ast.Attribute):
        raise NoFixError("no backward")
    if call.args:
        return call.args[0]
    value = call.func.value
    match value:
        case ast.Call(func=ast.Attribute(attr="scale"), args=[loss]):
            return loss
    return value


def negated(condition: ast.expr, source: FixSource) -> str:
    """What holds where a condition does not."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return f"{source.text(left)} != {source.text(right)}"
    return f"not ({source.text(condition)})"
