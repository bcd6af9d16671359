"""The parameters that the losses of an entry train, and those that code out of view may train or
freeze.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.paths import Paths
from gradlint.tape import (
    Cut,
    Module,
    OptimizerStep,
    Parameter,
    Tape,
    Value,
)  # fmt: skip  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.computed import losses, used
from gradlint_rules.held import Overlapping, distinct, overlap
from gradlint_rules.obstacles import Blocked, reached_from


@of_tape
def trained_on(tape: Tape) -> list[Parameter]:
    """What the losses of a path reach, and what a part has put away, each once."""
    put_away = [
        fact.value
        for fact in tape.facts("put-away")
        if fact.detail == "part" and fact.value is not None
    ]
    values = [*(sink.value for sink in tape.backwards()), *put_away]
    found = (leaf.parameter for value in values for leaf in reached_from(value))
    return list({id(one): one for one in found if one is not None}.values())


@of_tape
def trains(tape: Tape) -> Overlapping:
    """The same, where many parameters are looked for among them."""
    return Overlapping(trained_on(tape))


def frozen(paths: Paths) -> Iterator[Parameter]:
    """What stands for all parameters of a module out of view, some of which are frozen by their
    names.
    """
    steps = paths.some(lambda tape: tape.of(OptimizerStep))
    held = (value for step in steps for value in step.optimizer.parameters)
    return iter(distinct(value for value in held if value.assumed and value.cut is Cut.FROZEN))


def of_owners(paths: Paths) -> Iterator[Parameter]:
    """What a method out of view may run through, `model.critic_loss(x)`: all of the module out of
    view that it is of.

    What an optimizer holds the parameters of is a module itself, and no method.
    """
    held = distinct(value for one in paths.some(Tape.optimizers) for value in one.parameters)
    leaves = (leaf for sink in paths.some(Tape.backwards) for leaf in reached_from(sink.value))
    for called in distinct(leaf for leaf in leaves if leaf.assumed):
        owner = called.path.rpartition(".")[0] if not called.name else ""
        if owner not in ("", "self") and not any(overlap(called, other) for other in held):
            yield Parameter("", Module(owner), called.at)


def unused(paths: Paths) -> Iterator[Value]:
    """The losses that nothing back-propagates: what they would train is told by `unused-loss`."""
    followed = {fact.at for fact in paths.some(used)}
    return (loss for fact, loss in paths.some(losses) if fact.at not in followed)


def follows(blocked: Blocked, reached: Overlapping) -> bool:
    """Whether it is a copy's, of what is trained, and run without grad mode: a target, wherever it
    is moved.
    """
    original = blocked.parameter.copy_of
    return blocked.by.cut is Cut.GRAD_MODE and original is not None and reached.overlaps(original)
