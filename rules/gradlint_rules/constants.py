"""Fixes of constant losses: a zero that hangs on an output, a round that is skipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Edit, Finding, Role, Span
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import back_propagated
from gradlint_rules.order import calls_of, loop_around, names_of, related_statement
from gradlint_rules.uncut import bindings, values_bound_to

_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.Try)


def is_all_there_is(constant: ast.expr, source: FixSource) -> bool:
    """Whether the constant stands under no condition, and its name is bound to nothing else in its
    function.
    """
    scope = source.scope(constant)
    for outer in source.around(constant):
        if isinstance(outer, _CONDITIONS):
            return False
        if outer is scope:
            break
    statement = source.statement(constant)
    bound = set(_targets(statement))
    others = (
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.AugAssign) and node is not statement
    )
    return not any(
        bound & {name.id for name in ast.walk(other) if isinstance(name, ast.Name)}
        for other in others
    )


def is_scalar_zero(constant: ast.expr, source: FixSource) -> bool:
    """Whether a constant is a zero without axes: `0`, `0.0`, `torch.tensor(0.0)`."""
    match constant:
        case ast.Constant(value=int() | float() as number):
            return number == 0
        case ast.Call(
            func=ast.Attribute(attr="zeros" | "new_zeros"),
            args=[ast.Tuple(elts=[]) | ast.List(elts=[])],
        ):
            return True
        case ast.Call(
            func=ast.Attribute(attr="tensor" | "as_tensor" | "new_tensor"),
            args=[ast.Constant(value=0)],
        ):
            return True
    return False


def bound_before(finding: Finding, source: FixSource, constant: ast.expr) -> list[str]:
    """The names that carry a gradient in this function and are bound on every way to the constant,
    latest first.
    """
    scope = source.scope(constant)
    first, last = (
        (1, finding.at.line)
        if isinstance(scope, ast.Module)
        else (scope.lineno, scope.end_lineno or 0)
    )
    bound: dict[str, range] = {}
    if not isinstance(scope, ast.Module):
        bound = {
            arg.arg: range(first, last + 1) for arg in (*scope.args.args, *scope.args.kwonlyargs)
        }
    statement = source.statement(constant)
    for outer in (statement, *source.around(statement)):
        if isinstance(outer, ast.stmt) and outer is not scope:
            block = source.block(outer)
            for earlier in block[: block.index(outer)]:
                bound |= dict.fromkeys(
                    _targets(earlier), range(earlier.lineno, (earlier.end_lineno or 0) + 1)
                )
        if outer is scope:
            break
    near = (each.rpartition(":") for each in finding.hints["near"].split())
    carrying = {name for name, _, line in near if int(line) in bound.get(name, ())}
    return sorted(carrying, key=lambda name: (-bound[name].start, name))


def given_with_gradient(finding: Finding, source: FixSource, constant: ast.expr) -> list[str]:
    """The arguments of the constant's function that are given, in this file, what carries a
    gradient.
    """
    scope = source.scope(constant)
    if isinstance(scope, ast.Module):
        return []
    near = {each.rpartition(":")[0] for each in finding.hints["near"].split()}
    modules = {tuple(map(int, each.split(":")[:2])) for each in finding.hints["modules"].split()}
    names = [argument.arg for argument in scope.args.args if argument.arg != "self"]
    found: list[str] = []
    for call in calls_of(source.tree, scope.name):
        given = [
            *zip(names, call.args, strict=False),
            *((word.arg or "", word.value) for word in call.keywords),
        ]
        for name, value in given:
            is_output = (
                isinstance(value, ast.Call) and (value.lineno, value.col_offset + 1) in modules
            )
            if is_output or (isinstance(value, ast.Name) and value.id in near):
                found.append(name)
    return [name for name in found if name in names]


def own_output(finding: Finding, constant: ast.expr, source: FixSource) -> str:
    """Of the outputs that serve as well as each other, the one from which the place of a constant
    is computed elsewhere in its function; "" if none is.

    `boxes = zero` in one branch, `boxes = F.l1_loss(deltas, …)` in another: `deltas`.
    """
    outputs = finding.hints["peers"].split()
    pending = list(_elsewhere(constant, source))
    seen: set[str] = set()
    for value in pending:
        read = names_of(value, ast.Load)
        if found := next((name for name in outputs if name in read), ""):
            return found
        for name in sorted(read - seen):
            pending += values_bound_to(name, source, constant)
        seen |= read
    return ""


def _elsewhere(constant: ast.expr, source: FixSource) -> Iterator[ast.expr]:
    """What else the place of a constant gets in its function."""
    given = [pair for node in ast.walk(source.scope(constant)) for pair in _given(node, source)]
    places = {place for place, value in given if value is constant}
    return (value for place, value in given if place in places and value is not constant)


def _given(node: ast.AST, source: FixSource) -> Iterator[tuple[str, ast.expr]]:
    """What a statement gives to which places: names, items by their keys, parts of a result."""
    match node:
        case ast.Return(value=ast.expr() as value):
            pairs = [("return", value)]
        case ast.AugAssign(target=target, value=value):
            pairs = [(_place(target, source), value)]
        case _:
            pairs = [(_place(target, source), value) for target, value in bindings(node)]
    for place, value in pairs:
        yield place, value
        match value:
            case ast.Dict(keys=keys, values=values):
                yield from (
                    (f"{place}[{key.value!r}]", each)
                    for key, each in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant)
                )
            case ast.Tuple(elts=values):
                yield from ((f"{place}[{at}]", each) for at, each in enumerate(values))


def _place(target: ast.expr, source: FixSource) -> str:
    match target:
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            return f"{source.text(owner)}[{key!r}]"
    return source.text(target)


def skipped(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clearing, the backward and the step of a round left out where its loss has no graph:
    by `continue`, or under an `if` where the round goes on behind them.
    """
    backward = related_statement(finding, Role.BACKWARD, source)
    loss = back_propagated(backward, source)
    loop = loop_around(backward, source)
    block = source.block(backward)
    place = block.index(backward)
    if (
        block is not loop.body
        or not isinstance(loss, ast.Name)
        or loss.id not in names_of(loop, ast.Store)
    ):
        raise NoFixError("no output is bound here")
    while place and any(True for _ in calls_of(block[place - 1], "zero_grad")):
        place -= 1
    last = max(at for at, each in enumerate(block) if at == block.index(backward) or _is_step(each))
    if last + 1 < len(block):
        return source.wrap(block[place : last + 1], f"if {loss.id}.requires_grad:")
    return source.before(block[place], f"if not {loss.id}.requires_grad:", f"{source.unit}continue")


def _is_step(statement: ast.stmt) -> bool:
    """Whether a statement steps an optimizer or a scaler, or updates one."""
    return any(True for _ in calls_of(statement, "step", "update"))


def module_here(finding: Finding, source: FixSource, constant: ast.expr) -> str:
    """A module that the function of the constant is given, or that stands around it, and that it
    calls.
    """
    scope = source.scope(constant)
    given = (
        {"self"}
        if isinstance(scope, ast.Module)
        else {arg.arg for arg in (*scope.args.args, *scope.args.kwonlyargs)}
    )
    for place in finding.hints["modules"].split():
        line, column, end_line, end_column = map(int, place.split(":"))
        call = source.expression(Span(finding.at.path, line, column, end_line, end_column))
        if not isinstance(call, ast.Call) or source.scope(call) is not scope:
            continue
        module = call.func
        root = next((node for node in ast.walk(module) if isinstance(node, ast.Name)), None)
        is_plain = isinstance(module, ast.Name) or (
            isinstance(module, ast.Attribute) and module.attr != "forward"
        )
        if (
            is_plain
            and root is not None
            and _is_seen(root.id, given, scope, source.statement(constant), source)
        ):
            return source.text(module)
    return ""


def _is_seen(
    name: str, given: set[str], scope: ast.AST, statement: ast.stmt, source: FixSource
) -> bool:
    """Whether a name is given to a function, bound out of it, or bound there before a statement in
    any case.
    """
    if name in given or name not in names_of(scope, ast.Store):
        return True
    whole = [
        statement,
        *(outer for outer in source.around(statement) if isinstance(outer, ast.stmt)),
    ]
    blocks = [
        source.block(outer)
        for outer in whole
        if outer is not scope and source.scope(outer) is scope
    ]
    before = (
        each
        for block in blocks
        for each in block[: next(at for at, one in enumerate(block) if one in whole)]
    )
    return any(name in _targets(each) for each in before)


def _targets(statement: ast.stmt) -> list[str]:
    if not isinstance(statement, ast.Assign):
        return []
    return [
        node.id
        for target in statement.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name)
    ]
