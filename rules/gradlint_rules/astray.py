"""Steps of optimizers that no backward reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Fact,
    InPlace,
    Kind,
    May,
    Optimizer,
    OptimizerStep,
    Parameter,
    Tape,
    Value,
    ancestors,
)
from gradlint_rules.computed import losses
from gradlint_rules.held import distinct, identities, share, share_across

# GL514, GL515
_UNREGISTERED = ("plain-container", "non-leaf-parameter", "non-leaf-grad", "non-leaf-attribute")


def astray(paths: Paths) -> Iterator[tuple[OptimizerStep, Backward]]:
    """Steps of an optimizer that no backward reaches, each behind one whose gradients no optimizer
    uses.

    Where the model came after the optimizer, that is a stale optimizer (GL513).
    """
    found = list(paths.some(_astray_on))
    may = May.BACKWARD | May.HOLD | May.BIND | May.STEP
    if not found or not paths.never(lambda tape: not _is_in_view(tape), may):
        return
    used = distinct(paths.some(_in_use))
    yield from (
        (step, sink)
        for step, sink in found
        if not share_across(identities(step.optimizer.parameters), used)
    )


def _astray_on(tape: Tape) -> Iterator[tuple[OptimizerStep, Backward]]:
    held = distinct(value for optimizer in tape.optimizers() for value in optimizer.parameters)
    for step in tape.of(OptimizerStep):
        if not _is_known(step.optimizer):
            continue
        sink, made = _before(step, tape), step.optimizer.order
        reached = sink.leaves if sink is not None else ()
        is_later = made is not None and any(leaf.order > made for leaf in reached)
        is_seen = step.starved if tape.traced else made is not None
        if sink is None or not reached or is_later or not is_seen:
            continue
        if not _are_the_same(identities(reached), held) and not _came_late(reached, tape):
            yield step, sink


def _are_the_same(some: Sequence[Parameter], others: Sequence[Parameter]) -> bool:
    """Whether the two have a parameter in common, or one that is gathered from shards under the
    name of another.
    """
    names = {parameter.path for parameter in others}
    return share(some, others) or any(parameter.path in names for parameter in some)


def _came_late(reached: Sequence[Value], tape: Tape) -> bool:
    """Whether some of it was put into a model, or copied, after an optimizer was made."""
    late = identities(
        fact.value for fact in tape.facts("attached", "copied") if fact.value is not None
    )
    return share(identities(reached), late)


def _is_in_view(tape: Tape) -> bool:
    """Whether all that any backward reaches are parameters of modules whose making was seen, and
    which know of them.
    """
    if tape.facts(*_UNREGISTERED):
        return False
    leaves = (leaf for sink in tape.backwards() for leaf in sink.leaves)
    return all(
        leaf.kind is Kind.PARAMETER and not leaf.assumed and leaf.parameter for leaf in leaves
    )


def _in_use(tape: Tape) -> Iterator[Value]:
    """What flows into a loss on some way, cut or not, or into what is written in place: other rules
    tell of it.
    """
    ends = [sink.value for sink in tape.backwards()]
    ends += [loss for _, loss in losses(tape)]
    ends += [value for event in tape.of(InPlace) for value in event.write.by]
    ends += [fact.source for fact in tape.of(Fact) if fact.source is not None]
    return ancestors(*ends)


def _is_known(optimizer: Optimizer) -> bool:
    """Whether all that an optimizer holds is known, and some of it can be trained."""
    if optimizer.escapes or optimizer.stepped_elsewhere or not optimizer.complete:
        return False
    own = optimizer.parameters
    return any(value.requires_grad for value in own) and not any(value.assumed for value in own)


def _before(step: OptimizerStep, tape: Tape) -> Backward | None:
    """The last backward of the round of a step."""
    sinks = [
        sink
        for sink in tape.backwards()
        if sink.order < step.order and sink.iteration == step.iteration
    ]
    return sinks[-1] if sinks else None
