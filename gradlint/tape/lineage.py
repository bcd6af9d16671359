"""What a value was computed from: its ancestors, its leaves, and what cuts it from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradlint.tape.held import Held
from gradlint.tape.values import (
    BESIDE,
    GIVEN_NOTHING,
    MERELY_CALLED,
    OF_A_FUNCTION,
    Cut,
    Kind,
    Optimizer,
    Value,
)


def ancestors(*values: Value) -> Iterator[Value]:
    """Values and everything they were computed from, recorded or not; nearest first, each once."""
    pending = (
        list({id(value): value for value in values}.values()) if len(values) > 1 else list(values)
    )
    seen = set(map(id, pending))
    for current in pending:
        yield current
        for source in current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def as_far_as_leaves(value: Value) -> Iterator[Value]:
    """The ancestors of a value, but for what its leaves were made of:
    `gathered.detach().requires_grad_()`.
    """
    seen, pending = {id(value)}, [value]
    for current in pending:
        yield current
        for source in () if current.is_made_leaf and current.requires_grad else current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def graph(value: Value) -> Iterator[Value]:
    """The part of the ancestors that a backward from `value` visits: what requires grad, as far as
    leaves.
    """
    seen, pending = {id(value)}, [value] if value.requires_grad else []
    for current in pending:
        yield current
        for source in () if current.is_made_leaf else current.inputs:
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def leaves(value: Value) -> Iterator[Value]:
    """What a backward from `value` reaches: parameters, leaves, and values assumed to carry
    gradient.
    """
    return (found for found in graph(value) if found.is_leaf)


def sure(values: Sequence[Value], optimizers: Sequence[Optimizer]) -> list[Value]:
    """Those of the values of a graph whose gradient is more than assumed of something unknown.

    A parameter or leaf is below them; what an unknown callable computes with is one where an
    optimizer holds it, or may hold it (that of a library's function, or of what is handed no
    tensor, as a buffer that is sampled, where there is nothing else), and of those the ones that
    are seen to be modules, `model.train()`, where others are only called, as a tokenizer is, too.
    Where a graph has none of these, something unknown must carry its gradient, and sure is what
    hangs on it whichever it is; of what a part is given, its first tensor.
    """
    trained = [value for value in values if value.kind in (Kind.PARAMETER, Kind.LEAF)]
    firm = _known_to_train(trained, optimizers)
    if not firm and not (optimizers and all(optimizer.complete for optimizer in optimizers)):
        likely = [value for value in trained if not value.flags & {OF_A_FUNCTION, GIVEN_NOTHING}]
        modules = [value for value in likely if MERELY_CALLED not in value.flags]
        firm = modules or likely or trained
    if firm:
        return above(values, {id(value) for value in firm})
    found = list(values)
    unknowns = [value for value in values if value.kind is Kind.UNKNOWN]
    unknowns = [value for value in unknowns if BESIDE not in value.flags] or unknowns
    for unknown in unknowns + trained:
        found = above(found, {id(unknown)})
    return found


def _known_to_train(values: list[Value], optimizers: Sequence[Optimizer]) -> list[Value]:
    if not any(value.assumed for value in values):
        return values
    held = Held(optimizers)
    return [
        value
        for value in values
        if not value.assumed or (value.parameter is not None and held.holds(value.parameter))
    ]


def above(values: Sequence[Value], wanted: Iterable[int]) -> list[Value]:
    """Those of `values` that were computed from one of the wanted, which are given by id."""
    users = users_among(values)
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        for user in users.get(pending.pop(), []):
            if id(user) not in found:
                found.add(id(user))
                pending.append(id(user))
    return [value for value in values if id(value) in found]


def users_among(values: Iterable[Value]) -> dict[int, list[Value]]:
    """Which of `values` were computed from what, given by id, directly."""
    users: dict[int, list[Value]] = {}
    for value in values:
        for source in value.inputs:
            users.setdefault(id(source), []).append(value)
    return users


def cuts(value: Value) -> list[Value]:
    """The first cut after the parameters on every route into `value` that carries no gradient, in
    source order.

    A cut is a value without gradient, some input of which has one: below it the route is whole. A
    frozen leaf is a cut by itself. Constants are not cuts: see `constants`.
    """
    found = []
    for current in ancestors(value):
        if current.requires_grad:
            continue
        if current.cut is Cut.FROZEN or (
            current.cut not in (None, Cut.CONSTANT) and any(i.requires_grad for i in current.inputs)
        ):
            found.append(current)
    return sorted(found, key=lambda cut: (cut.at, cut.op))


def constants(value: Value) -> list[Value]:
    """The fresh constants among the ancestors of `value`, in source order."""
    found = [current for current in ancestors(value) if current.kind is Kind.CONSTANT]
    return sorted(found, key=lambda constant: (constant.at, constant.op))
