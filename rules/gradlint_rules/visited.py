"""What a backward runs through, and what it finds freed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from gradlint.operations import canonical
from gradlint.tape import (
    TOLD_APART,
    Backward,
    Kept,
    Kind,
    Optimizer,
    Tape,
    Value,
    above,
    graph,
    sure,
)
from gradlint_rules.cached import of_tape

OF_A_BUFFER = "buffer"  # how a module keeps what it writes into one
# a backward, what it visits that saved something, and by which earlier one each of it was freed
Freed = tuple[Backward, list[Value], dict[int, Backward]]
# What saves what no write reaches, but a backward frees: `x * 0.5` the number, a gradient what it
# was multiplied by.
_SAVES_BESIDES = {"product", "division", "gradient"}


def visited(sink: Backward) -> Sequence[Value]:
    """The values whose backward runs: the graph of the loss; of `autograd.grad(loss, inputs)` what
    lies above these.
    """
    if not sink.inputs:
        return sink.graph
    inputs = {id(value) for value in sink.inputs}
    wanted = {id(value) for value in sink.graph if id(value) in inputs}
    return above(sink.graph, wanted) if wanted else () if _are_elsewhere(sink) else sink.graph


def _are_elsewhere(sink: Backward) -> bool:
    """Whether no input lies in the graph, by another name or at another version
    (`allow_unused=True`).
    """
    held = {id(value.storage) for value in sink.inputs or ()}
    return not any(id(value.storage) in held for value in sink.graph)


def operations(sink: Backward, tape: Tape) -> AbstractSet[str]:
    """The bare names of the operations that a backward can run through."""
    return _operations(tape)[id(sink)]


@of_tape
def _operations(tape: Tape) -> dict[int, AbstractSet[str]]:
    return {id(sink): {canonical(value.op) for value in sink.graph} for sink in tape.backwards()}


def surely_visited(sink: Backward, tape: Tape) -> Sequence[Value]:
    """The values visited whose gradient is more than assumed of something unknown."""
    return _surely_visited(tape)[id(sink)]


def taught(sink: Backward, tape: Tape) -> Sequence[Value]:
    """The values visited; where some of what is trained is in view, those that hang on it: all else
    can be data.
    """
    return surely_visited(sink, tape) if _in_view(tape)[id(sink)] else visited(sink)


@of_tape
def _in_view(tape: Tape) -> dict[int, bool]:
    """For each backward, whether some of what is trained is in view."""
    optimizers = tape.optimizers()
    return {
        id(sink): any(_is_trained(leaf, optimizers) for leaf in sink.graph)
        for sink in tape.backwards()
    }


def _is_trained(leaf: Value, optimizers: Sequence[Optimizer]) -> bool:
    if leaf.kind is not Kind.PARAMETER and leaf.kind is not Kind.LEAF:
        return False
    return not leaf.assumed or (
        leaf.parameter is not None and any(each.holds(leaf.parameter) for each in optimizers)
    )


@of_tape
def _surely_visited(tape: Tape) -> dict[int, Sequence[Value]]:
    optimizers = tape.optimizers()
    return {
        id(sink): sure(_not_apart(visited(sink), sink), optimizers) for sink in tape.backwards()
    }


def _not_apart(values: Sequence[Value], sink: Backward) -> Sequence[Value]:
    """Those of the values that a backward comes to otherwise than through what can be computed from
    a part alone.
    """
    if not any(TOLD_APART in value.flags for value in values):
        return values
    met: set[int] = set()
    pending = [sink.value]
    while pending:
        value = pending.pop()
        if id(value) not in met:
            met.add(id(value))
            # its own parameters are last
            pending += value.inputs[-1:] if TOLD_APART in value.flags else value.inputs
    return [value for value in values if id(value) in met]


@of_tape
def backwards(tape: Tape) -> Sequence[Freed]:
    """Each backward, what it visits that saved something, and by which earlier one each of these
    (by id) was freed.
    """
    return list(_backwards(tape, lambda sink: surely_visited(sink, tape)))


@of_tape
def driven(tape: Tape) -> Sequence[Freed]:
    """The same of the backwards that drive a part, and what a round before made of its parameters.

    What the `__init__` has computed is no parameter, and no state. What an argument alone can carry
    a gradient for may be a number, `freqs = base ** (torch.arange(n) / length)`; but not what a
    buffer has of several rounds.
    """
    kept = {
        id(value)
        for event in tape.of(Kept)
        if event.how == OF_A_BUFFER
        for value in graph(event.value)
    }
    return [
        (
            sink,
            [
                value
                for value in values
                if value.iteration and (not value.assumed or id(value) in kept)
            ],
            _of_drivers(freed_by),
        )
        for sink, values, freed_by in _backwards(tape, visited)
        if sink.assumed
    ]


def _of_drivers(freed_by: dict[int, Backward]) -> dict[int, Backward]:
    return {value: first for value, first in freed_by.items() if first.assumed}


def _backwards(tape: Tape, visits: Callable[[Backward], Sequence[Value]]) -> Iterator[Freed]:
    freed_by: dict[int, Backward] = {}
    for sink in tape.backwards():
        if sink.caught:
            yield sink, [], {}
            continue
        values = [value for value in visits(sink) if value.saves or value.flags & _SAVES_BESIDES]
        yield (
            sink,
            values,
            {id(value): freed_by[id(value)] for value in values if id(value) in freed_by},
        )
        if not sink.retain_graph and not sink.create_graph:
            for value in values:
                freed_by.setdefault(id(value), sink)
