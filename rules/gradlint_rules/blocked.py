"""Parameters that an optimizer steps and that lie behind an obstacle: no gradient reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.tape import (
    CAST,
    Backward,
    Cut,
    Kind,
    Optimizer,
    OptimizerStep,
    Tape,
    Value,
)  # fmt: skip
from gradlint_rules.copies import Written
from gradlint_rules.cuts import is_bypassed
from gradlint_rules.obstacles import Blocked, behind, behind_copies, reached_from
from gradlint_rules.purpose import is_deliberate, is_of_a_chain


def blocked_on(tape: Tape) -> Iterator[Blocked]:
    """The parameters of an optimizer that steps, behind an obstacle on this path, for a loss that
    trains others.

    None that a Function stands before, which was called without `apply`: that is GL804, whatever
    else is in the way.
    """
    found = list(_held_behind(tape))
    bypassed = {id(blocked.parameter) for blocked in found if is_bypassed(blocked.by, tape)}
    return (blocked for blocked in found if id(blocked.parameter) not in bypassed)


def _held_behind(tape: Tape) -> Iterator[Blocked]:
    seen: set[tuple[int, int]] = set()
    written: Written | None = None
    for sink in tape.backwards():
        optimizers = _steps_after(sink, tape) or _in_vain(sink, tape)
        trains = any(leaf.kind is Kind.PARAMETER for leaf in reached_from(sink.value))
        if not optimizers or not (trains or _must_train(sink)):
            continue
        for obstacle, source, leaf in (*behind(sink, tape), *behind_copies(sink, tape)):
            parameter = leaf.parameter
            if parameter is None or (id(obstacle), id(parameter)) in seen:
                continue
            if not trains and not _is_a_mistake(obstacle, source, sink, tape):
                continue
            optimizer = next((each for each in optimizers if each.holds(parameter)), None)
            written = written or Written.on(tape)
            if optimizer is not None and not written.has(leaf):
                seen.add((id(obstacle), id(parameter)))
                yield Blocked(parameter, optimizer, obstacle, sink, tape, source is not leaf)


def _in_vain(sink: Backward, tape: Tape) -> Sequence[Optimizer]:
    """The optimizers that the driver of a part does not come to step, for its backward raises."""
    return tape.optimizers() if sink.assumed and not sink.value.requires_grad else ()


def _must_train(sink: Backward) -> bool:
    """Whether what a module gives is of a kind that carries a gradient: no class, index or mask."""
    return sink.assumed and sink.value.dtype.is_differentiable


def _is_a_mistake(obstacle: Value, source: Value, sink: Backward, tape: Tape) -> bool:
    """Whether nobody writes it to have a module give what trains nothing of it: no choice, and no
    `detach` but behind several modules of its own; a layer behind others with grad mode off for it
    alone.
    """
    if is_deliberate(obstacle, sink, tape):
        if is_of_a_chain(obstacle, sink, tape):
            return True
        return obstacle.cut is Cut.GRAD_MODE and not source.is_leaf and _meets_a_layer(sink)
    return obstacle.dtype.is_differentiable or CAST in obstacle.flags


def _meets_a_layer(sink: Backward) -> bool:
    """Whether what a module gives is computed with a parameter where grad mode is off: no mere
    post-processing.
    """
    without = (value for value in sink.ancestors if value.cut is Cut.GRAD_MODE)
    return any(source.is_leaf and source.parameter for value in without for source in value.inputs)


def _steps_after(sink: Backward, tape: Tape) -> list[Optimizer]:
    """The optimizers that step on the gradients of this backward: those of the first steps that
    follow.
    """
    found: list[Optimizer] = []
    for event in tape.among(Backward, OptimizerStep):
        if event.order < sink.order:
            continue
        if isinstance(event, OptimizerStep):
            found.append(event.optimizer)
        elif found:
            break
    return found
