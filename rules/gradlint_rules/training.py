"""Fixes of the training step: what belongs before what, and the window of an accumulation."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import (
    calls_of,
    loop_around,
    names_of,
    nested,
    receiver,
    related_statement,
    together,
    whole_call,
)
from gradlint_rules.uncut import values_of

_PLACES = (ast.Name, ast.Attribute, ast.Subscript)


def optimizer_of(statement: ast.stmt, source: FixSource) -> str:
    """The optimizer that a statement steps: `optimizer.step()`, or `scaler.step(optimizer)`."""
    for call in calls_of(statement, "step"):
        is_scaled = bool(call.args) and _closure(call, source) is None
        return source.text(call.args[0]) if is_scaled else receiver(call, source)
    raise NoFixError("no step")


def _closure(step: ast.Call, source: FixSource) -> ast.FunctionDef | None:
    """The function that `optimizer.step(closure)` is given by its name."""
    given = {each.id for each in step.args[:1] if isinstance(each, ast.Name)}
    functions = (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef))
    return next((function for function in functions if function.name in given), None)


def cleared_each_round(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.zero_grad()` at the head of the loop; behind the step of a window, or of another
    function.

    In another function it stands before the backward, where that of another optimizer's loss left
    gradients.
    """
    backward = source.statement(finding.at)
    step = related_statement(finding, "the step", source)
    line = f"{optimizer_of(step, source)}.zero_grad()"
    if any(_closure(call, source) is source.scope(backward) for call in calls_of(step, "step")):
        return source.first(source.scope(backward).body, line)
    loops = [outer for outer in nested(step, source) if isinstance(outer, ast.For | ast.While)]
    if loops and loops[0] in nested(backward, source) and not finding.hints.get("window"):
        return source.first(loops[0].body, line)
    own = source.statement_on(int(finding.hints["before"])) if "before" in finding.hints else None
    if own is not None and source.scope(own) is source.scope(step):
        return source.before(own, line)
    return source.after(_last_update(step, source), line)


def cleared_before(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clearing moved before the backward, or else behind the step."""
    clearing = _clearing(finding, source)
    try:
        backward = related_statement(finding, "back-propagated", source)
        here, there = together(clearing, backward, source)
        if here is clearing and not _needs_gradients(clearing, source):
            return source.move_before([clearing], there)
    except NoFixError:
        pass
    step = related_statement(finding, "the step", source)
    here, there = together(clearing, step, source)
    return source.move_after([clearing], _last_update(there, source))


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
    clearing = _clearing(finding, source)
    step = related_statement(finding, "the step", source)
    if source.scope(step) is not source.scope(clearing):
        clearing = _call_of(source.scope(clearing), step, source)
    return source.move_after([clearing], _last_update(step, source))


def _call_of(function: ast.AST, near: ast.stmt, source: FixSource) -> ast.stmt:
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


def cleared_before_loop(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clearing moved before the loop of backwards that one step follows."""
    clearing = _clearing(finding, source)
    step = related_statement(finding, "the step", source)
    behind = {*nested(step, source)}
    loops = [
        each
        for each in nested(clearing, source)
        if isinstance(each, ast.For | ast.While) and each not in behind
    ]
    if not loops or source.scope(step) is not source.scope(clearing):
        raise NoFixError("the loop is not in view")
    return source.move_before([clearing], loops[-1])


def stepped_late(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The backward moved before the step that comes too early."""
    step = related_statement(finding, "the step", source)
    backward = related_statement(finding, "back-propagated", source)
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
    clearing = _clearing(finding, source)
    step = related_statement(finding, "the step", source)
    if source.scope(step) is not source.scope(clearing) or whole_call(step) is None:
        raise NoFixError("the step is not in view")
    return source.before(clearing, source.text(step))


def _clearing(finding: Finding, source: FixSource) -> ast.stmt:
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


def _last_update(step: ast.stmt, source: FixSource) -> ast.stmt:
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


def divided(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The loss of a micro-batch divided by the window."""
    backward = source.statement(finding.at)
    step = related_statement(finding, "the step", source)
    if source.scope(step) is not source.scope(backward):
        step = _call_of(source.scope(step), backward, source)
    window = _rounds_before(step, backward, source, is_sized="sized" in finding.hints)
    if window is None:
        gate = next(
            (outer for outer in nested(step, source) if isinstance(outer, ast.If)), None
        ) or _skip(step, source)
        window = _divisor(window_of(gate.test, source), source)
    loss = back_propagated(backward, source)
    return (source.replace(loss, f"{source.operand(loss)} / {window}"),)


def _rounds_before(
    step: ast.stmt, backward: ast.stmt, source: FixSource, *, is_sized: bool
) -> str | None:
    """How often the loop around a backward goes round, where the step stands behind it."""
    loops = [outer for outer in source.around(backward) if isinstance(outer, ast.For | ast.While)]
    behind = set(source.around(step))
    match [loop for loop in loops if loop not in behind]:
        case [ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[number]))]:
            return _divisor(number, source)
        case [ast.For(iter=ast.Name() | ast.Attribute() as listed)] if is_sized:
            return f"len({source.text(listed)})"
        case [ast.For(iter=ast.Name() as listed)] if _is_list(listed, source) or _is_given_list(
            listed, source
        ):
            return f"len({listed.id})"
        case [ast.For(iter=over)]:
            return _pieces(over, source)
    return None


def _divisor(number: ast.expr, source: FixSource) -> str:
    return source.text(number) if isinstance(number, ast.Constant) else source.operand(number)


def _pieces(over: ast.expr, source: FixSource) -> str | None:
    """Into how many pieces something is cut to go over them: the N of `x.chunk(N)`,
    `zip(x.chunk(N), y.chunk(N))`.
    """
    match over:
        case ast.Call(func=ast.Attribute(attr="chunk") as func, args=[*_, number]):
            return (
                None
                if isinstance(number, ast.Starred)
                else _divisor(_pieces_of(over, func, source), source)
            )
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=[first, *_]):
            return _pieces(first, source)
        case ast.Name():
            found = {
                _pieces(value, source)
                for value in values_of(over, source, over)
                if isinstance(value, ast.Call)
            }
            return found.pop() if len(found) == 1 else None
    return None


def _pieces_of(call: ast.Call, func: ast.Attribute, source: FixSource) -> ast.expr:
    """How many pieces `x.chunk(4)` and `torch.chunk(x, 4)` make."""
    place = 1 if source.called(func).startswith("torch.") else 0
    if len(call.args) <= place:
        raise NoFixError("the number of pieces is not written there")
    return call.args[place]


def _is_given_list(name: ast.Name, source: FixSource) -> bool:
    """Whether an argument is a list in all calls of its function in this file, and there are
    some.
    """
    scope = source.scope(name)
    if isinstance(scope, ast.Module):
        return False
    names = [argument.arg for argument in scope.args.args if argument.arg != "self"]
    if name.id not in names or name.id in names_of(scope, ast.Store):
        return False
    given = [call.args[names.index(name.id) :][:1] for call in calls_of(source.tree, scope.name)]
    values = [value for each in given for value in each]
    return (
        bool(values)
        and len(values) == len(given)
        and all(_is_made_list(value, source) for value in values)
    )


def _is_made_list(value: ast.expr, source: FixSource) -> bool:
    match value:
        case ast.List() | ast.ListComp() | ast.Tuple() | ast.Call(func=ast.Name(id="list")):
            return True
        case ast.Subscript(slice=ast.Slice(), value=whole):
            return _is_made_list(whole, source)
        case ast.Name():
            values = values_of(value, source, value)
            return bool(values) and all(_is_made_list(each, source) for each in values)
    return False


def _is_list(name: ast.Name, source: FixSource) -> bool:
    """Whether all that its function binds a name to is a list that is made there."""
    scope = source.scope(name)
    same = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name.id]
    bound = [
        node for node in same if isinstance(node.ctx, ast.Store) and source.scope(node) is scope
    ]
    is_given = any(isinstance(node, ast.arg) and node.arg == name.id for node in ast.walk(scope))
    return (
        bool(bound)
        and not is_given
        and all(_makes_list(next(source.around(node))) for node in bound)
    )


def _makes_list(binding: ast.AST) -> bool:
    """Whether `x = list(…)`, `x := list(…)` or `x = [… for …]` stands there."""
    match binding:
        case (
            ast.Assign(
                targets=[ast.Name()], value=ast.ListComp() | ast.Call(func=ast.Name(id="list"))
            )
            | ast.NamedExpr(value=ast.ListComp() | ast.Call(func=ast.Name(id="list")))
        ):
            return True
    return False


def _skip(step: ast.stmt, source: FixSource) -> ast.If:
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


def with_the_rest(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The condition made to hold at the end of the data, too."""
    condition = source.expression(finding.at)
    statement = source.statement(condition)
    loop = loop_around(statement, source)
    is_skip = isinstance(statement, ast.If) and any(
        isinstance(each, ast.Continue) for each in statement.body
    )
    if not isinstance(loop, ast.For):
        raise NoFixError("not a loop over data")
    try:
        left, right = _end_of(loop, source)
    except NoFixError:
        return _flushed(loop, statement, condition, finding, source)
    if is_skip:
        return (source.replace(condition, f"{_operand(condition, source)} and {left} != {right}"),)
    return (source.replace(condition, f"{source.text(condition)} or {left} == {right}"),)


def _flushed(
    loop: ast.For, gate: ast.stmt, condition: ast.expr, finding: Finding, source: FixSource
) -> tuple[Edit, ...]:
    """The step for the rest behind a loop whose length nothing tells."""
    if "early" in finding.hints:
        raise NoFixError("the rounds are to be counted from one first (GL506)")
    if not isinstance(gate, ast.If) or gate.orelse:
        raise NoFixError("the step has another side")
    is_skip = any(isinstance(each, ast.Continue) for each in gate.body)
    block = source.block(gate)
    body = block[block.index(gate) + 1 :] if is_skip else gate.body
    if isinstance(loop.target, ast.Tuple) and names_of(condition, ast.Load) & names_of(
        loop.target, ast.Store
    ):
        is_left = source.text(condition) if is_skip else _negated(condition, source)
        wanted = body
    else:
        reset, counter, is_left = _set_back(body, condition, source)
        is_dropped = isinstance(counter, ast.Name) and _is_unused_behind(loop, counter.id, source)
        wanted = [each for each in body if each is not reset or not is_dropped]
    if block is not loop.body and is_skip:
        raise NoFixError("what is skipped is not all of the round")
    lines = [f"{source.unit}{line}" for each in wanted for line in _lines_of(each, source)]
    return source.after(loop, f"if {is_left}:", *lines)


def _set_back(
    body: Sequence[ast.stmt], condition: ast.expr, source: FixSource
) -> tuple[ast.stmt, ast.expr, str]:
    """What begins a window anew, `left = window` or `seen.clear()`, the counter, and what holds of
    a window begun.
    """
    counted = {
        source.text(node)
        for node in ast.walk(condition)
        if isinstance(node, ast.Name | ast.Attribute)
    }
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


def _is_unused_behind(loop: ast.For, name: str, source: FixSource) -> bool:
    """Whether a name of a function is read no more once a loop has ended."""
    scope = source.scope(loop)
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    is_alone = not any(isinstance(outer, ast.For | ast.While) for outer in source.around(loop))
    is_local = isinstance(scope, ast.FunctionDef) and not any(
        isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(scope)
    )
    return is_local and is_alone and all(use.lineno <= (loop.end_lineno or 0) for use in uses)


def _negated(condition: ast.expr, source: FixSource) -> str:
    """What holds where a condition does not."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return f"{source.text(left)} != {source.text(right)}"
    return f"not ({source.text(condition)})"


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


def _end_of(loop: ast.For, source: FixSource) -> tuple[str, str]:
    """What is equal in the last round of a loop: `i + 1` and `len(loader)`."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=index), *_]),
            iter=ast.Call(func=func, args=[over, *rest], keywords=keywords),
        ):
            if source.called(func) == "enumerate" and _has_length(over, source):
                start = rest[0] if rest else next((keyword.value for keyword in keywords), None)
                match start:
                    case None:
                        return f"{index} + 1", f"len({source.text(over)})"
                    case ast.Constant(value=1):
                        return index, f"len({source.text(over)})"
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=func, args=[stop])):
            if source.called(func) == "range":
                return f"{index} + 1", source.operand(stop)
    raise NoFixError("how many rounds there are is not known")


def _has_length(over: ast.expr, source: FixSource) -> bool:
    """Whether something to loop over can be asked for its length, as far as the file says."""
    if isinstance(over, ast.Call):
        name = source.called(over.func)
        return name.endswith("DataLoader") or name.rpartition(".")[2] in (
            "tqdm",
            "trange",
            "list",
            "split",
            "chunk",
        )
    if isinstance(over, ast.GeneratorExp):
        return False
    return all(_has_length(value, source) for value in values_of(over, source, over))


def counted_from_one(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`i % n` as `(i + 1) % n`, and `is_due(i)` as `is_due(i + 1)`, where `i` is the number of the
    round.
    """
    condition = source.expression(finding.at)
    for node in ast.walk(condition):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mod)
            and isinstance(node.left, _PLACES)
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


def clipped_between(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The clipping moved right before the step; a hook behind it made one before it."""
    step = related_statement(finding, "the step", source)
    clip = source.statement(finding.at)
    for call in calls_of(source.tree, "register_step_post_hook"):
        if source.text(call.args[0]) == getattr(source.scope(clip), "name", "") and isinstance(
            call.func, ast.Attribute
        ):
            return (source.replace_name(call.func, "register_step_pre_hook"),)
    here, there = together(clip, step, source)
    is_loop = isinstance(here, ast.For | ast.While) and any(
        True for _ in calls_of(here, "backward")
    )
    return source.move_before([clip if is_loop else here], there)


def scheduled_after(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The scheduler's step moved behind the optimizer's."""
    schedule = source.statement(finding.at)
    step = related_statement(finding, "first step", source)
    here, there = together(schedule, step, source)
    return source.move_after([here], _last_update(there, source))


def stepped(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.step` called, or put before the clearing, or behind the backward where the
    clearing comes first.
    """
    backward = source.statement(finding.at)
    for node in ast.walk(source.scope(backward)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "step"
        ):
            return (source.replace(node.value, f"{source.text(node.value)}()"),)
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "backward"
        ):
            return (source.replace(node.value, f"{source.text(node.value)}()"),)
    clearing = related_statement(finding, "cleared", source)
    optimizer = finding.hints.get("optimizer", "")
    if (
        optimizer.startswith("self.")
        and _is_set(optimizer, backward, source)
        and not _names_it(clearing, optimizer, source)
    ):
        return source.after(_last_before_step(finding, backward, source), f"{optimizer}.step()")
    call = next(calls_of(clearing, "zero_grad"), None)
    if (
        call is None
        or source.scope(clearing) is not source.scope(backward)
        or whole_call(clearing) is None
    ):
        raise NoFixError("no optimizer is in view")
    scaling = next(calls_of(backward, "scale"), None)
    if scaling is not None:
        return _stepped_by(
            receiver(scaling, source), receiver(call, source), backward, clearing, source
        )
    line = f"{receiver(call, source)}.step()"
    if clearing.lineno > backward.lineno:
        return source.before(clearing, line)
    return source.after(_last_before_step(finding, backward, source), line)


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
    step, loss = source.statement(finding.at), related_statement(finding, "computed here", source)
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
    first = related_statement(finding, "freed by", source)
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


def carried_detached(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is carried from one round into the next detached behind the backward, or where an
    attribute keeps it.
    """
    backward = source.statement(finding.at)
    wanted = set(finding.hints["carried"].split())
    loops = [outer for outer in nested(backward, source) if isinstance(outer, ast.For | ast.While)]
    if (shared := _shared(finding, backward, loops, source)) is not None:
        return _made_anew(shared, backward, loops, source)
    for loop in loops:
        names = [name for name in _carried(loop) if not wanted or name in wanted] or _carried(loop)
        names = [name for name in names if not _is_number(name, loop, source)]
        if names:
            anchor = _within_conditions(
                next(each for each in loop.body if each in nested(backward, source)), backward
            )
            if any(_is_record(name, wanted, source) for name in names):
                return _record_detached(names, wanted, anchor, source)
            if (
                wanted
                and wanted.isdisjoint(names)
                and (edits := _detached_where_kept(wanted, backward, source))
            ):
                return edits
            return source.after(anchor, *(_detached(name, source, loop) for name in names))
    if edits := _detached_where_kept(wanted, backward, source):
        return edits
    if loops and not any(True for _ in calls_of(loops[0], "step")):
        return _retained(backward, source)
    raise NoFixError("what is carried has no name here")


def _detached_where_kept(
    wanted: set[str], backward: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """What an attribute or a container keeps of what is carried detached there; nothing where none
    keeps it.
    """
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            for target in _targets(node):
                named = wanted or _bound_from(target, source.scope(backward), source)
                if not named.isdisjoint(_keeps(target, node.value)) and _is_carried(
                    node, target, source
                ):
                    return _kept_detached(node, target, source)
    return ()


def _within_conditions(statement: ast.stmt, inner: ast.stmt) -> ast.stmt:
    """The statement behind which `inner` is over, on its side of the conditions around it."""
    while isinstance(statement, ast.If) and statement is not inner:
        sides = (each for side in (statement.body, statement.orelse) for each in side)
        statement = next(each for each in sides if any(node is inner for node in ast.walk(each)))
    return statement


def _retained(backward: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    call = next(calls_of(backward, "backward", "manual_backward"))
    return (source.add_argument(call, "retain_graph=True"),)


def _shared(
    finding: Finding, backward: ast.stmt, loops: Sequence[ast.For | ast.While], source: FixSource
) -> ast.Assign | None:
    """What all rounds of a loop, or calls of a function in another, have in common: computed before
    it, named there.
    """
    scope = source.scope(backward)
    whole = loops[0] if loops else scope
    if isinstance(whole, ast.Module):
        return None
    wanted, block = set(finding.hints["carried"].split()), source.block(whole)
    line = next((each.at.line for each in finding.related if "computed here" in each.message), 0)
    for earlier in block[: block.index(whole)]:
        names = names_of(earlier, ast.Store)
        is_it = bool(names & wanted) or earlier.lineno <= line <= (earlier.end_lineno or 0)
        if is_it and isinstance(earlier, ast.Assign) and not names & names_of(whole, ast.Store):
            return earlier
    return None


def _made_anew(
    shared: ast.Assign, backward: ast.stmt, loops: Sequence[ast.For | ast.While], source: FixSource
) -> tuple[Edit, ...]:
    """The graph that rounds have in common kept, or where the parameters change in between, made
    anew in each.
    """
    scope = source.scope(backward)
    if loops and not any(True for _ in calls_of(loops[0], "step")):
        return _retained(backward, source)
    body = loops[0].body if loops else getattr(scope, "body", [])
    names = names_of(shared, ast.Store)
    first = next((each for each in body if names & names_of(each, ast.Load)), None)
    if first is None:
        raise NoFixError("where it is used is not in view")
    return source.move_before([shared], first)


def _kept_detached(node: ast.Assign, target: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """What is kept detached as it is kept, or where it is kept if that is more than a name."""
    line = _detached(source.text(target), source, source.scope(node))
    if len(node.targets) > 1 or not isinstance(node.value, ast.Name):
        return source.after(node, line)
    kept = line.partition(" = ")[2].replace(source.text(target), node.value.id)
    return (source.replace(node.value, kept),)


def _targets(node: ast.Assign) -> list[ast.expr]:
    return [
        part
        for t in node.targets
        for part in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])
    ]


def _keeps(target: ast.expr, value: ast.expr) -> set[object]:
    """By which names what `self.state = h` or `memory["state"] = h` keeps can be known; none for a
    plain name.
    """
    given: set[object] = {value.id} if isinstance(value, ast.Name) else set()
    match target:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return {name, *given}
        case ast.Subscript():
            return given
    return set()


def _is_carried(node: ast.Assign, target: ast.expr, source: FixSource) -> bool:
    """Whether what is kept there is computed, and read from there by the same function."""
    is_read = _reads(source.scope(node), target, source)
    return is_read and not isinstance(node.value, ast.Constant)


def _bound_from(target: ast.expr, scope: ast.AST, source: FixSource) -> set[str]:
    """The names that a function binds to what it computes from what is kept there."""
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    return {
        name
        for node in assigned
        if _reads(node.value, target, source)
        for name in names_of(node, ast.Store)
    }


def _reads(code: ast.AST, target: ast.expr, source: FixSource) -> bool:
    text = source.text(target)
    reads = [node for node in ast.walk(code) if isinstance(node, ast.Attribute | ast.Subscript)]
    if any(isinstance(node.ctx, ast.Load) and source.text(node) == text for node in reads):
        return True
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Constant):
        return False
    owners = [
        node
        for node in reads
        if node is not target.value and source.text(node) == source.text(target.value)
    ]
    # `for key, state in self.states.items()`
    return any(isinstance(node.ctx, ast.Load) for node in owners)


def _carried(loop: ast.For | ast.While) -> list[str]:
    """The names that a round reads before it binds them anew, in the order of the source."""
    bound = names_of(loop.target, ast.Store) if isinstance(loop, ast.For) else set()
    found: list[str] = []
    later = {name for statement in loop.body for name in names_of(statement, ast.Store)}
    for statement in loop.body:
        if not isinstance(statement, ast.AugAssign):
            early = names_of(statement, ast.Load) - bound
            found += [name for name in sorted(early & later) if name not in found]
        bound |= names_of(statement, ast.Store)
    return found


def _is_number(name: str, loop: ast.AST, source: FixSource) -> bool:
    """Whether a name is only counted up."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and name in names_of(ast.Module([node], []), ast.Store):
            return False
    return True


def _is_record(name: str, wanted: set[str], source: FixSource) -> bool:
    """Whether the tensors that are carried are attributes of what has this name."""
    reads = (
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in wanted
    )
    return any(isinstance(node.value, ast.Name) and node.value.id == name for node in reads)


def _record_detached(
    names: list[str], wanted: set[str], anchor: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """The record that is carried made anew, with the tensors in it detached."""
    kinds = [
        node
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and wanted <= set(_fields(node))
    ]
    if (
        len(names) != 1
        or len(kinds) != 1
        or not all(_fields(kinds[0])[each].endswith("Tensor") for each in wanted)
    ):
        raise NoFixError("what is carried is kept in an object of the program")
    name = names[0]
    parts = ", ".join(f"{each}={name}.{each}.detach()" for each in sorted(wanted))
    if any(source.called(base).endswith("NamedTuple") for base in kinds[0].bases):
        return source.after(anchor, f"{name} = {name}._replace({parts})")
    decorators = [
        each.func if isinstance(each, ast.Call) else each for each in kinds[0].decorator_list
    ]
    if not any(source.called(each) == "dataclasses.dataclass" for each in decorators):
        raise NoFixError("what is carried is kept in an object of the program")
    replace, imports = source.reference("dataclasses.replace")
    return (*source.after(anchor, f"{name} = {replace}({name}, {parts})"), *imports)


def _fields(kind: ast.ClassDef) -> dict[str, str]:
    """The fields that a record declares, with what they are said to be."""
    declared = (node for node in kind.body if isinstance(node, ast.AnnAssign))
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in declared
        if isinstance(node.target, ast.Name)
    }


def _detached(name: str, source: FixSource, near: ast.AST) -> str:
    """`state = state.detach()`, for a pair of them where the file says that it is one."""
    place = ast.parse(name, mode="eval").body
    assigned = [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]
    values = [node.value for node in assigned if name in map(source.text, node.targets)]
    names = {name, *(value.id for value in values if isinstance(value, ast.Name))}
    is_pair = any(isinstance(value, ast.Tuple) for value in values) or any(
        _is_from_lstm(one, source) for one in names
    )
    assert isinstance(place, ast.Name | ast.Attribute | ast.Subscript)
    return (
        f"{name} = tuple(part.detach() for part in {name})"
        if is_pair
        else f"{name} = {name}.detach()"
    )


def _is_from_lstm(name: str, source: FixSource) -> bool:
    """Whether a name is the second of two results, and the file makes an LSTM, whose state is a
    pair.
    """
    makes = any(True for _ in calls_of(source.tree, "LSTM"))
    pairs = (node for node in ast.walk(source.tree) if isinstance(node, ast.Assign))
    return makes and any(
        isinstance(target, ast.Tuple)
        and len(target.elts) == 2
        and source.text(target.elts[1]) == name
        for pair in pairs
        for target in pair.targets
    )


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
    inner = _item(kept) if isinstance(statement, ast.Expr) else kept
    if isinstance(inner, ast.Name) and inner.id in arguments:
        is_tensor, imports = source.reference("torch.is_tensor")
        name = inner.id
        line = f"{name} = {name}.detach() if {is_tensor}({name}) else {name}"
        return (*source.before(statement, line), *imports)
    return (source.replace(inner, f"{source.operand(inner)}.detach()"),)


def _item(kept: ast.expr) -> ast.expr:
    """The `x` of `[x]` and of `[x] * n`."""
    match kept:
        case ast.BinOp(left=ast.List(elts=[item])) | ast.List(elts=[item]):
            return item
    return kept


def _kept(statement: ast.stmt, finding: Finding, source: FixSource) -> ast.expr:
    match statement:
        case ast.AugAssign(value=value):
            return value
        case ast.Expr(value=ast.Call(args=[*_, ast.expr() as last])):
            return _within(last, finding, source)
        case ast.Assign(value=ast.ListComp(elt=ast.Call() as item)):
            return item
        case ast.Assign(value=ast.BinOp(op=ast.Add(), left=left, right=right), targets=[target]):
            if source.text(left) == source.text(target):
                return right
            if source.text(right) == source.text(target):
                return left
    match (
        statement
    ):  # what is computed here is not only kept: the backward of this round may need it
        case ast.Assign(value=value, targets=[target]):
            read = {source.text(node) for node in ast.walk(value) if isinstance(node, _PLACES)}
            is_put_away = (
                isinstance(target, ast.Subscript | ast.Attribute) and "used" not in finding.hints
            )
            if isinstance(value, _PLACES) or source.text(target) in read or is_put_away:
                return value
    raise NoFixError("nothing is kept here")


def _within(value: ast.expr, finding: Finding, source: FixSource) -> ast.expr:
    """What is kept of what is handed over: an item of a dict, a tuple or a record that is made
    there, or all of it.
    """
    kept = finding.hints.get("kept")
    if isinstance(value, ast.Dict):
        items = [item for item in value.values if source.text(item) == kept]
    elif isinstance(value, ast.Tuple | ast.Call) and source.text(value) != kept:
        parts = (
            value.elts
            if isinstance(value, ast.Tuple)
            else [*value.args, *(word.value for word in value.keywords)]
        )
        items = [part for part in parts if source.text(part) == kept]
    else:
        return value
    if len(items) != 1:
        raise NoFixError("which item is kept is not known")
    return items[0]
