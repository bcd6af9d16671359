"""What a backward runs through, and what it finds freed."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from gradlint.tape import Backward, Kind, Optimizer, Tape, Value, graph

_WITH_A_NUMBER = {"product", "division"}  # `x * 0.5` saves the number: no write reaches it, but a backward frees it


def visited(sink: Backward) -> list[Value]:
    """The values whose backward runs: the graph of the loss; of `autograd.grad(loss, inputs)` what lies above these."""
    values = list(graph(sink.value))
    wanted = {id(value) for value in sink.inputs or ()} & {id(value) for value in values}
    return _above(values, wanted) if wanted else values


def surely_visited(sink: Backward, tape: Tape) -> list[Value]:
    """The values visited whose gradient is more than assumed of something unknown: a parameter or leaf is below them.

    What an unknown callable computes with is a parameter where an optimizer holds it. Where a loss has none of these,
    something unknown must carry its gradient, and sure is what is visited whichever it is.
    """
    values = visited(sink)
    trained = [value for value in values if value.kind in (Kind.PARAMETER, Kind.LEAF)]
    firm = _known_to_train(trained, tape) or trained
    if firm:
        return _above(values, {id(value) for value in firm})
    for unknown in [value for value in values if value.kind is Kind.UNKNOWN]:
        values = _above(values, {id(unknown)})
    return values


def _known_to_train(values: list[Value], tape: Tape) -> list[Value]:
    if not any(value.assumed for value in values):
        return values
    optimizers = _optimizers(tape)
    held = {id(p) for p in (value.parameter for value in values) if p and any(each.holds(p) for each in optimizers)}
    return [value for value in values if not value.assumed or id(value.parameter) in held]


@functools.lru_cache(maxsize=64)  # the paths of one entry, which several rules ask about
def _optimizers(tape: Tape) -> tuple[Optimizer, ...]:
    return tuple(tape.optimizers())


def _above(values: list[Value], wanted: set[int]) -> list[Value]:
    """Those of `values` that were computed from one of the wanted."""
    users: dict[int, list[Value]] = {}
    for value in values:
        for source in value.inputs:
            users.setdefault(id(source), []).append(value)
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        for user in users.get(pending.pop(), []):
            if id(user) not in found:
                found.add(id(user))
                pending.append(id(user))
    return [value for value in values if id(value) in found]


def backwards(tape: Tape) -> Iterator[tuple[Backward, list[Value], dict[int, Backward]]]:
    """Each backward, what it visits that saved something, and by which earlier one each of these (by id) was freed."""
    freed_by: dict[int, Backward] = {}
    for sink in tape.backwards():
        if sink.caught:
            yield sink, [], {}
            continue
        values = [value for value in surely_visited(sink, tape) if value.saves or value.flags & _WITH_A_NUMBER]
        yield sink, values, {id(value): freed_by[id(value)] for value in values if id(value) in freed_by}
        if not sink.retain_graph and not sink.create_graph:
            for value in values:
                freed_by.setdefault(id(value), sink)
