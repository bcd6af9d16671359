"""Fixes of steps with a GradScaler: which scaler and optimizer a step speaks of, and where their
calls belong.
"""

from __future__ import annotations

import ast
import contextlib

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import (
    called_name,
    calls_of,
    loop_around,
    names_of,
    nested,
    receiver,
    together,
    whole_call,
)


def scaler_around(node: ast.AST, source: FixSource) -> str:
    """The scaler that scales or steps in the function or class around `node`, as it is called
    there.
    """
    for whole in _wholes(node, source):
        for call in calls_of(whole, "scale", "unscale_"):
            return receiver(call, source)
        for call in calls_of(whole, "step"):
            if call.args and "scaler" in source.text(call.func).lower():
                return receiver(call, source)
    raise NoFixError("no scaler is in view")


def _wholes(node: ast.AST, source: FixSource) -> list[ast.AST]:
    """The function around a node, and the class, whose methods call the scaler by the same name of
    `self`.
    """
    classes = [outer for outer in source.around(node) if isinstance(outer, ast.ClassDef)]
    return [source.scope(node), *classes[:1]]


def unscaled_first(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`scaler.unscale_(optimizer)` for what the scaler steps, before the gradients are clipped or
    read.
    """
    clip, scaler, source = _clip(finding, source)
    scope = source.scope(clip)
    backward = next(calls_of(scope, "scale"), None)
    steps = _steps_behind(clip, scaler, source)
    beside = [call for call in (backward, *steps) if call and source.scope(call) is scope]
    anchor = _nearest(clip, beside, source) if backward else _outside_loops(clip, source)
    for loop in (_loop_over(step, source) for step in steps):
        if loop is not None:
            over, target = source.text(loop.iter), source.text(loop.target)
            line = f"{source.unit}{scaler}.unscale_({target})"
            return source.before(anchor, f"for {target} in {over}:", line)
    optimizers = dict.fromkeys(source.text(step.args[0]) for step in steps)
    earlier = [
        call for call in calls_of(scope, "unscale_") if call.args and call.lineno < clip.lineno
    ]
    done = {source.text(call.args[0]) for call in earlier}
    late = _unscaled_late(clip, anchor, scaler, list(optimizers), source)
    if late:
        return source.move_before(late, anchor)
    lines = [f"{scaler}.unscale_({optimizer})" for optimizer in optimizers if optimizer not in done]
    if not lines:
        raise NoFixError("no step of the scaler is in view")
    if len(lines) > 1 and backward is None:
        raise NoFixError("it is not in view which optimizer's gradients are clipped here")
    return source.before(anchor, *lines)


def _nearest(clip: ast.stmt, calls: list[ast.Call], source: FixSource) -> ast.stmt:
    """The innermost statement around a clip that has one of these calls in its block: behind the
    backward, and run as often as the step.
    """
    around = nested(clip, source)
    found = [together(clip, source.statement(call), source)[0] for call in calls]
    return min(found, key=around.index)


def _loop_over(step: ast.Call, source: FixSource) -> ast.For | None:
    """The loop over optimizers in which a scaler steps each of them, and does nothing else."""
    loop = next((outer for outer in source.around(step) if isinstance(outer, ast.For)), None)
    is_each = loop is not None and source.text(loop.target) == source.text(step.args[0])
    return loop if loop is not None and is_each and len(loop.body) == 1 else None


def _clip(finding: Finding, source: FixSource) -> tuple[ast.stmt, str, FixSource]:
    """The clip, or the call of the helper that clips, where a scaler is in view; the scaler, and
    the file.
    """
    called = [each.at for each in finding.related if each.role is Role.CALL]
    for place in (finding.at, *called):
        with contextlib.suppress(NoFixError):
            file = source if place.path == finding.at.path else source.elsewhere(place.path)
            clip = file.statement(place)
            return clip, scaler_around(clip, file), file
    raise NoFixError("no scaler is in view")


def _unscaled_late(
    clip: ast.stmt, anchor: ast.stmt, scaler: str, optimizers: list[str], source: FixSource
) -> list[ast.stmt]:
    """The unscaling of what is stepped that stands behind the clip, in the same block."""
    block = source.block(anchor)
    calls = [(each, whole_call(each)) for each in block[block.index(anchor) + 1 :]]
    return [
        each
        for each, call in calls
        if call is not None and called_name(call) == "unscale_" and receiver(call, source) == scaler
        if any(source.text(argument) in optimizers for argument in call.args)
    ]


def _outside_loops(clip: ast.stmt, source: FixSource) -> ast.stmt:
    """The outermost loop of a function around a clip that steps nothing: over groups or parameters;
    or the clip.
    """
    loops = [outer for outer in nested(clip, source) if isinstance(outer, ast.For | ast.While)]
    return next(
        (loop for loop in reversed(loops) if next(calls_of(loop, "step"), None) is None), clip
    )


def _steps_behind(clip: ast.stmt, scaler: str, source: FixSource) -> list[ast.Call]:
    """The steps of the scaler that a clip is for: those behind it in its function, else those of
    the class.
    """
    for whole in _wholes(clip, source):
        calls = [
            call
            for call in calls_of(whole, "step")
            if call.args and receiver(call, source) == scaler
        ]
        if calls:
            return [call for call in calls if call.lineno > clip.lineno] or calls
    return []


def stepped_by_scaler(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.step()` as `scaler.step(optimizer)`, with an update of the scaler where none comes
    before the next step; where the scaler steps as well, no step at all.
    """
    statement = source.statement(finding.at)
    call = whole_call(statement)
    if call is None or call.args or call.keywords:
        raise NoFixError("the step does something else, too")
    if "stepped" in finding.hints:
        return source.remove(statement)
    scaler = scaler_around(statement, source)
    edits = [source.replace(call, f"{scaler}.step({receiver(call, source)})")]
    if "updated" not in finding.hints:
        edits += source.after(statement, f"{scaler}.update()")
    return tuple(edits)


def updated(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`scaler.update()` right behind the last step of the scaler; one that stands elsewhere is
    moved there.
    """
    step = source.statement(finding.at)
    call = whole_call(step) or next(calls_of(step, "step"))
    scaler = receiver(call, source)
    anchor = step
    for sibling in source.block(step):
        steps = [
            other
            for other in calls_of(sibling, "step")
            if other.args and receiver(other, source) == scaler
        ]
        if steps and sibling.lineno > anchor.lineno:
            anchor = sibling
    updates = [
        each for each in calls_of(source.scope(step), "update") if receiver(each, source) == scaler
    ]
    edits = [edit for update in updates for edit in source.remove(source.statement(update))]
    return (*edits, *source.after(anchor, f"{scaler}.update()"))


def unscaled_once(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The second `unscale_` taken out; one that comes too late or in every round moved before the
    step or the loop.
    """
    if finding.hints.get("alone"):
        raise NoFixError("in other rounds, nothing else unscales")
    again = source.statement(finding.at)
    call = whole_call(again)
    if _is_unscaled_above(again, source):
        return _meant(again, call, source) or source.remove(again)
    if _is_unscaled_elsewhere(finding, again, source):
        return source.remove(again)
    if call is None or not call.args:
        raise NoFixError("the unscaling is part of something else")
    for place in (each.at for each in finding.related if each.role is Role.STEP):
        step = source.statement_on(place.line) if place.path == finding.at.path else None
        if step is not None and source.scope(step) is source.scope(again):
            return source.move_before([again], step)
    skipped = _skips(again, call, source)
    if skipped:
        update = f"{receiver(call, source)}.update()"
        return tuple(edit for each in skipped for edit in source.before(each, update))
    # `if (i + 1) % n == 0:` lets the step through: what unscales belongs in front of it there
    gate = _gate(again, source)
    if gate is not None:
        return _moved_into(gate, again, source)
    if moved := _called_with_the_step(finding, source):
        return moved
    loop = loop_around(again, source)
    # the window's last gradient is there behind the loop
    adds = any(True for _ in calls_of(loop, "backward"))
    return source.move_after([again], loop) if adds else source.move_before([again], loop)


def _is_unscaled_above(again: ast.stmt, source: FixSource) -> bool:
    """Whether the same `unscale_` stands further up in the function."""
    text = source.text(again)
    earlier = (
        call for call in calls_of(source.scope(again), "unscale_") if call.lineno < again.lineno
    )
    return any(source.text(call) == text for call in earlier)


def _is_unscaled_elsewhere(finding: Finding, again: ast.stmt, source: FixSource) -> bool:
    """Whether the first `unscale_` stands in another file or function."""
    first = [each.at for each in finding.related if each.role is Role.UNSCALING]
    if any(at.path != finding.at.path for at in first):
        return True
    scope = source.scope(again)
    return bool(first) and source.scope(source.statement_on(first[0].line)) is not scope


def _moved_into(gate: ast.If, again: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """The unscaling, and the clipping behind it, before the step under the condition of that."""
    block = source.block(again)
    between = block[block.index(again) : block.index(gate)]
    moved = [each for each in between if each is again or _clips(each)]
    step = next(source.statement(each) for each in calls_of(gate, "step"))
    return source.move_before(moved, source.block(step)[0] if step in gate.body else step)


def _called_with_the_step(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The call of a function that unscales moved under the condition that lets the step through;
    nothing where what it gives is used outside of that.
    """
    for line in map(int, finding.hints.get("called", "").split()):
        caller = source.statement_on(line)
        gate = _gate(caller, source)
        if gate is None:
            continue
        given = names_of(caller, ast.Store)
        others = (each for each in source.block(caller) if each is not gate and each is not caller)
        if given.isdisjoint({name for each in others for name in names_of(each, ast.Load)}):
            return _moved_into(gate, caller, source)
    return ()


def _meant(again: ast.stmt, call: ast.Call | None, source: FixSource) -> tuple[Edit, ...]:
    """The optimizer that is stepped next in the place of the one that was unscaled before, if
    nothing unscales it.
    """
    if call is None or not call.args:
        return ()
    scope, scaler = source.scope(again), receiver(call, source)
    behind = [step for step in calls_of(scope, "step") if step.args and step.lineno > again.lineno]
    stepped = [source.text(step.args[0]) for step in behind if receiver(step, source) == scaler]
    unscaled = {source.text(other.args[0]) for other in calls_of(scope, "unscale_") if other.args}
    return (
        (source.replace(call.args[0], stepped[0]),)
        if stepped and stepped[0] not in unscaled
        else ()
    )


def _skips(again: ast.stmt, call: ast.Call, source: FixSource) -> list[ast.stmt]:
    """What ends a round between an unscaling and the step in the same block:
    `if norm < low: continue`.
    """
    behind = source.block(again)[source.block(again).index(again) + 1 :]
    steps = [whole_call(other) for other in behind]
    step = next(
        (
            place
            for place, each in enumerate(steps)
            if each is not None and _is_step(each, call, source)
        ),
        0,
    )
    nodes = (
        node for other in behind[:step] if isinstance(other, ast.If) for node in ast.walk(other)
    )
    return [node for node in nodes if isinstance(node, ast.Continue)]


def _is_step(call: ast.Call, unscaling: ast.Call, source: FixSource) -> bool:
    is_scalers = called_name(call) == "step" and receiver(call, source) == receiver(
        unscaling, source
    )
    return is_scalers and [source.text(each) for each in call.args[:1]] == [
        source.text(unscaling.args[0])
    ]


def _gate(statement: ast.stmt, source: FixSource) -> ast.If | None:
    """The `if` behind a statement that lets the step through."""
    block = source.block(statement)
    for other in block[block.index(statement) + 1 :]:
        if isinstance(other, ast.If) and any(call.args for call in calls_of(other, "step")):
            return other
    return None


def _clips(statement: ast.stmt) -> bool:
    return any(True for _ in calls_of(statement, "clip_grad_norm_", "clip_grad_value_"))
