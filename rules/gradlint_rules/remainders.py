"""Fixes of windows: the step for the rest at the end of the data, and counts from one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import PLACES, negated
from gradlint_rules.order import (
    loop_around,
    names_of,
)
from gradlint_rules.uncut import bindings, values_of


def with_the_rest(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The condition made to hold at the end of the data, too."""
    condition = source.expression(finding.at)
    statement = source.statement(condition)
    if step := _lightning_step(condition, source):
        is_last = f"{step.args.args[0].arg}.trainer.is_last_batch"
        return (source.replace(condition, f"{source.text(condition)} or {is_last}"),)
    loop = loop_around(statement, source)
    is_skip = isinstance(statement, ast.If) and any(
        isinstance(each, ast.Continue) for each in statement.body
    )
    if "early" in finding.hints and _counter(loop, condition, source)[0]:
        raise NoFixError("the rounds are to be counted from one first (GL506)")
    try:
        left, right = _end_of(loop, condition, source)
    except NoFixError:
        return _flushed(loop, statement, condition, finding, source)
    if is_skip:
        return (source.replace(condition, f"{_operand(condition, source)} and {left} != {right}"),)
    return (source.replace(condition, f"{source.text(condition)} or {left} == {right}"),)


def _lightning_step(condition: ast.expr, source: FixSource) -> ast.FunctionDef | None:
    """The `training_step(self, batch, batch_idx)` that asks for the number of its batch."""
    scope = source.scope(condition)
    if not isinstance(scope, ast.FunctionDef) or scope.name != "training_step":
        return None
    owner = next(source.around(scope), None)
    is_lightning = isinstance(owner, ast.ClassDef) and any(
        source.called(base).endswith("LightningModule") for base in owner.bases
    )
    counts = {each.arg for each in scope.args.args[2:]} & names_of(condition, ast.Load)
    return scope if is_lightning and counts else None


def _flushed(
    loop: ast.For | ast.While,
    gate: ast.stmt,
    condition: ast.expr,
    finding: Finding,
    source: FixSource,
) -> tuple[Edit, ...]:
    """The step for the rest behind a loop whose length nothing tells."""
    if "early" in finding.hints:
        raise NoFixError("the rounds are to be counted from one first (GL506)")
    if not isinstance(gate, ast.If):
        raise NoFixError("no condition lets the step through")
    is_skip = any(isinstance(each, ast.Continue) for each in gate.body)
    if is_skip and gate.orelse:
        raise NoFixError("the step has another side")
    block = source.block(gate)
    body = block[block.index(gate) + 1 :] if is_skip else gate.body
    if _is_numbered(loop, condition) or _counter(loop, condition, source)[1]:
        is_left = source.text(condition) if is_skip else negated(condition, source)
        wanted = body
    else:
        reset, counter, is_left = _set_back(body, condition, source)
        is_dropped = isinstance(counter, ast.Name) and _is_unused_behind(loop, counter.id, source)
        wanted = [each for each in body if each is not reset or not is_dropped]
    if block is not loop.body and is_skip:
        raise NoFixError("what is skipped is not all of the round")
    lines = [f"{source.unit}{line}" for each in wanted for line in _lines_of(each, source)]
    return source.after(loop, f"if {is_left}:", *lines)


def _is_numbered(loop: ast.For | ast.While, condition: ast.expr) -> bool:
    """Whether a condition asks for the number of the round: `for i, x in enumerate(xs)`."""
    return (
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Tuple)
        and bool(names_of(condition, ast.Load) & names_of(loop.target, ast.Store))
    )


def _counter(loop: ast.For | ast.While, condition: ast.expr, source: FixSource) -> tuple[str, bool]:
    """What each round of a loop counts on by one for a condition, "" if nothing does; and whether
    it does so before the condition is asked.
    """
    bound = _bound_in(loop, source)
    for number, each in enumerate(loop.body):
        match each:
            case ast.AugAssign(target=target, op=ast.Add(), value=ast.Constant(value=1)):
                name = source.text(target)
                if name in _parts_of(condition, source) and bound.count(name) == 1:
                    asked = source.statement(condition)
                    is_before = (asked.lineno, asked.col_offset) > (each.lineno, each.col_offset)
                    is_skipped = any(map(_may_skip, loop.body[:number]))
                    return ("", False) if is_skipped else (name, is_before)
    return "", False


def _parts_of(condition: ast.expr, source: FixSource) -> set[str]:
    """The names and attributes that a condition asks for."""
    return {
        source.text(node)
        for node in ast.walk(condition)
        if isinstance(node, ast.Name | ast.Attribute)
    }


def _bound_in(loop: ast.For | ast.While, source: FixSource) -> list[str]:
    """The names and attributes that the rounds of a loop bind, each as often as it stands there."""
    return [
        source.text(node)
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]


def _may_skip(statement: ast.stmt) -> bool:
    """Whether the rest of a round may not be come to behind a statement."""
    return any(isinstance(node, ast.Continue) for node in ast.walk(statement))


def _set_back(
    body: Sequence[ast.stmt], condition: ast.expr, source: FixSource
) -> tuple[ast.stmt, ast.expr, str]:
    """What begins a window anew, `left = window` or `seen.clear()`, the counter, and what holds of
    a window begun.
    """
    counted = _parts_of(condition, source)
    for each in body:
        match each:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
                name = source.text(target)
                if name in counted:
                    is_empty = isinstance(value, ast.Constant | ast.List) and not getattr(
                        value, "value", None
                    )
                    return each, target, name if is_empty else f"{name} != {source.operand(value)}"
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="clear", value=owner), args=[])):
                if source.text(owner) in counted:
                    return each, owner, source.text(owner)
    raise NoFixError("the condition does not count the rounds")


def _is_unused_behind(loop: ast.For | ast.While, name: str, source: FixSource) -> bool:
    """Whether a name of a function is read no more once a loop has ended."""
    scope = source.scope(loop)
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    is_alone = not any(isinstance(outer, ast.For | ast.While) for outer in source.around(loop))
    is_local = isinstance(scope, ast.FunctionDef) and not any(
        isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(scope)
    )
    return is_local and is_alone and all(use.lineno <= (loop.end_lineno or 0) for use in uses)


def _lines_of(statement: ast.stmt, source: FixSource) -> list[str]:
    """A statement line by line, as it stands in a block that is not indented."""
    first, *others = source.text(statement).splitlines()
    strings = [
        each for each in ast.walk(statement) if isinstance(each, ast.Constant | ast.JoinedStr)
    ]
    is_split = any(each.lineno != each.end_lineno for each in strings)
    if is_split or any(line[: statement.col_offset].strip() for line in others):
        raise NoFixError("its lines do not stand below one another")
    return [first, *(line[statement.col_offset :] for line in others)]


def _operand(condition: ast.expr, source: FixSource) -> str:
    return (
        source.operand(condition) if isinstance(condition, ast.BoolOp) else source.text(condition)
    )


def _end_of(loop: ast.For | ast.While, condition: ast.expr, source: FixSource) -> tuple[str, str]:
    """What is equal in the last round of a loop: `i + 1` and `len(loader)`."""
    counter, is_before = _counter(loop, condition, source)
    match loop:
        case ast.For(iter=over) if counter:
            if _starts_at_zero(counter, loop, source):
                return counter if is_before else f"{counter} + 1", _length_of(over, source)
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=index), *_]),
            iter=ast.Call(func=func, args=[over, *rest], keywords=keywords),
        ):
            if source.called(func) == "enumerate":
                start = rest[0] if rest else next((keyword.value for keyword in keywords), None)
                match start:
                    case None:
                        return f"{index} + 1", _length_of(over, source)
                    case ast.Constant(value=1):
                        return index, _length_of(over, source)
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=func, args=[stop])):
            if source.called(func) == "range":
                return f"{index} + 1", source.operand(stop)
    raise NoFixError("how many rounds there are is not known")


def _starts_at_zero(counter: str, loop: ast.For, source: FixSource) -> bool:
    """Whether a counter is set to zero in the block that a loop stands in, before it."""
    block = source.block(loop)
    before = reversed(block[: block.index(loop)])
    values = (
        value
        for statement in before
        for target, value in bindings(statement)
        if source.text(target) == counter
    )
    first = next(values, None)
    return isinstance(first, ast.Constant) and first.value == 0


def _length_of(over: ast.expr, source: FixSource) -> str:
    """How many rounds a loop over something has, written so that nothing is made or drawn again."""
    match over:
        case ast.Call(func=ast.Attribute(attr="split" | "chunk")):  # views, which cost nothing
            return f"len({source.text(over)})"
        case ast.Call(func=func, args=[inner, *_]):
            if source.called(func).rpartition(".")[2] in ("tqdm", "list", "tuple"):
                return _length_of(inner, source)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            if all(_has_length(value, source) for value in values_of(over, source, over)):
                return f"len({source.text(over)})"
    raise NoFixError("how many rounds there are is not known")


def _has_length(value: ast.expr, source: FixSource) -> bool:
    """Whether what is bound to a name can be asked for its length, as far as the file says."""
    if isinstance(value, ast.Call):
        name = source.called(value.func)
        is_sized = name.rpartition(".")[2] in ("tqdm", "trange", "list", "split", "chunk")
        return is_sized or name.startswith("torch.") or name.endswith("DataLoader")
    return not isinstance(value, ast.GeneratorExp)


def counted_from_one(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`i % n` as `(i + 1) % n`, and `is_due(i)` as `is_due(i + 1)`, where `i` is the number of the
    round.
    """
    condition = source.expression(finding.at)
    for node in ast.walk(condition):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mod)
            and isinstance(node.left, PLACES)
        ):
            return (source.replace(node.left, f"({source.text(node.left)} + 1)"),)
    number = _number_of(loop_around(condition, source), source)
    for node in ast.walk(condition):
        given = (
            [each for each in node.args if isinstance(each, ast.Name)]
            if isinstance(node, ast.Call)
            else []
        )
        for argument in given:
            if argument.id == number:
                return (source.replace(argument, f"{number} + 1"),)
    raise NoFixError("no remainder")


def _number_of(loop: ast.For | ast.While, source: FixSource) -> str:
    """The `i` of `for i, x in enumerate(xs)` and of `for i in range(n)`."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=func, args=[_], keywords=[]),
        ):
            if source.called(func) == "enumerate":
                return name
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=func, args=[_])):
            if source.called(func) == "range":
                return name
    raise NoFixError("the rounds are not counted from zero")
