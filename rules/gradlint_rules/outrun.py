"""Steps that change a model out of view between its call and the backward of what it gave.

actor_loss = -critic(states, actor(states)).mean()
critic_loss.backward(retain_graph=True)
critic_optimizer.step()
actor_loss.backward()       # critic has computed with weights that are gone
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from gradlint.dataclass import dataclass
from gradlint.tape import (
    GIVEN_NOTHING,
    OF_A_FUNCTION,
    Backward,
    Kind,
    ModuleCall,
    OptimizerStep,
    Tape,
    Value,
    ZeroGrad,
)

_NO_MODULE = frozenset([OF_A_FUNCTION, GIVEN_NOTHING])


@dataclass(frozen=True, slots=True)
class Outrun:
    """A step, the backward behind it, and what a model out of view has computed before the step."""

    step: OptimizerStep
    sink: Backward
    made: Value


def outrun(tape: Tape) -> Iterator[Outrun]:
    """The steps that change what a later backward runs through, whatever the optimizer holds of
    what was taught.

    Which parameters that are is not known: all models that the backward before the step has reached
    are in the way.
    """
    sinks = [sink for sink in tape.backwards() if not sink.assumed and not sink.caught]
    called = {
        id(call.result): call.order for call in tape.of(ModuleCall) if call.result is not None
    }
    for step in tape.of(OptimizerStep):
        cleared = _cleared(step, tape)
        before = [sink for sink in sinks if cleared < sink.order < step.order]
        if step.assumed or not before or step.optimizer.parameters:
            continue
        for sink in sinks:
            made = _outrun_in(before[-1], sink, step, called) if sink.order > step.order else None
            if made is not None:
                yield Outrun(step, sink, made)


def _cleared(step: OptimizerStep, tape: Tape) -> int:
    """The place on the tape where the optimizer of a step has last cleared what it would use: a
    backward before it leaves nothing to step with.
    """
    clearings = (
        event.order
        for event in tape.of(ZeroGrad)
        if event.optimizer is step.optimizer and event.to_none and event.order < step.order
    )
    return max(clearings, default=-1)


def _outrun_in(
    last: Backward, sink: Backward, step: OptimizerStep, called: Mapping[int, int]
) -> Value | None:
    """What a model that `last` has taught had computed for `sink` before the step."""
    taught = _models(last)
    made = {
        id(leaf): value
        for value, leaf in _calls(sink)
        if called.get(id(value), step.order) < step.order
    }
    if not (taught and taught <= made.keys() and _retains(last, sink)):
        return None
    # a graph that was retained is run through again, with what it has saved
    shared = {id(value) for value in last.graph} if last.retain_graph else frozenset[int]()
    kept = (value for leaf, value in made.items() if leaf in taught)
    return next((value for value in kept if _is_fed(value) or id(value) in shared), None)


def _models(sink: Backward) -> Set[int]:
    """The models out of view, by their parameters, that a backward reaches."""
    return {id(leaf) for _, leaf in _calls(sink)}


def _calls(sink: Backward) -> Iterator[tuple[Value, Value]]:
    """What calls of models out of view have made of a graph, each with the parameters of the
    model.
    """
    for value in sink.graph:
        for leaf in value.inputs:
            is_model = (
                leaf.kind is Kind.PARAMETER and leaf.assumed and leaf.flags.isdisjoint(_NO_MODULE)
            )
            if value.op == "call" and is_model:
                yield value, leaf


def _is_fed(made: Value) -> bool:
    """Whether the model had to keep its weights: a gradient goes on through it to what it was
    given.
    """
    return any(source.requires_grad and source.kind is Kind.OPERATION for source in made.inputs)


def _retains(first: Backward, sink: Backward) -> bool:
    """Whether the later backward can be come to: the first has left what both run through."""
    if first.retain_graph or first.create_graph:
        return True
    freed = {id(value) for value in first.graph if value.op == "call"}
    return freed.isdisjoint(id(value) for value in sink.graph)
