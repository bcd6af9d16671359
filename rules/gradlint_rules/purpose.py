"""Whether a cut in a module that no trainer in view runs can be meant: then the module says nothing
of its training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Span
from gradlint.tape import (
    Backward,
    Cut,
    Module,
    Parameter,
    Tape,
    TrainMode,
    Value,
    ancestors,
    users_among,
)  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.cuts import are_meant, is_meant, place
from gradlint_rules.obstacles import Blocked

_DELIBERATE = (Cut.DETACH, Cut.GRAD_MODE)
_OF_A_LAYER = 2  # the layer, and the module whose attribute it is


def is_of_the_part(blocked: Blocked) -> bool:
    """Whether a parameter is the module's own and nobody can mean to cut it off.

    A frozen encoder is made elsewhere, or is a module of several layers that is cut off as a whole:
    not between two blocks of a row, nor by the very function that calls its layers one by one. A
    module that the part itself puts into evaluation mode is there to be used.
    """
    cut, tape = blocked.by, blocked.tape
    owners = _owners(blocked.parameter)
    if (
        not owners
        or any(owner.unseen for owner in owners)
        or is_meant(cut)
        or are_meant(cut.inputs)
    ):
        return False
    if any(event.training is False and event.module in owners for event in tape.of(TrainMode)):
        return False
    return len(owners) <= _OF_A_LAYER or is_a_mistake(blocked)


def is_a_mistake(blocked: Blocked) -> bool:
    """Whether nobody freezes a parameter so, whatever an object is made with."""
    cut, parameter, sink, tape = blocked.by, blocked.parameter, blocked.sink, blocked.tape
    if not is_deliberate(cut, sink, tape) or _is_recorded_in_vain(blocked):
        return True
    if _is_called_where_it_is_cut(cut, parameter, sink, tape):
        return True
    return _is_of_a_row(cut, parameter, sink, tape) or is_of_a_chain(cut, sink, tape)


def _is_recorded_in_vain(blocked: Blocked) -> bool:
    """Whether autograd has recorded what is used with grad mode off alone: who freezes a module so
    calls that very module there.

        x = self.embed(x)
        with torch.no_grad():
            x = self.encoder(x)
    """
    return blocked.by.cut is Cut.GRAD_MODE and blocked.is_computed


def is_deliberate(cut: Value, sink: Backward, tape: Tape) -> bool:
    """Whether it is of a kind that people write to freeze something.

    What goes to NumPy and straight back is not: `x = torch.from_numpy(x.detach().numpy())`.
    """
    return cut.cut in _DELIBERATE and not _comes_straight_back(cut, _users_before(tape)[id(sink)])


def _comes_straight_back(cut: Value, users: dict[int, list[Value]]) -> bool:
    """Whether all that is done with a value on the way to a sink is to copy it out of torch and in
    again.
    """
    outside = users.get(id(cut), [])
    inside = [user for value in outside for user in users.get(id(value), ())]
    return (
        bool(inside)
        and not any(user.in_torch for user in outside)
        and all(user.in_torch for user in inside)
    )


@of_tape
def _users_before(tape: Tape) -> dict[int, dict[int, list[Value]]]:
    """By sink and value, what is computed directly from the value on the way to the sink."""
    return {id(sink): users_among(sink.ancestors) for sink in tape.backwards()}


def _owners(parameter: Parameter) -> list[Module]:
    """The modules that a parameter is in, innermost first; a plain list of layers is none."""
    found: list[Module] = []
    module = parameter.module
    while module is not None:
        if not module.is_container:
            found.append(module)
        module = module.parent
    return found


def _is_called_where_it_is_cut(
    cut: Value, parameter: Parameter, sink: Backward, tape: Tape
) -> bool:
    """Whether the call of a function that cuts computes with the parameter itself."""
    where = cut.cut_stack or cut.stack
    users = _users(tape)[id(sink)].get(id(parameter), ())
    return any(user.stack == where for user in users if user is not cut)


def is_of_a_chain(cut: Value, sink: Backward, tape: Tape) -> bool:
    """Whether the function that cuts has called several of its modules before, one on the result of
    another, or a method that does: a frozen encoder is one module.

        x = self.stem(x)
        x = self.blocks(x)
        x = x.detach()
    """
    if cut.cut is not Cut.DETACH:
        return False
    where = cut.cut_stack or cut.stack
    layers = {id(user) for users in _users(tape)[id(sink)].values() for user in users}
    below = {id(value): value for value in _graph_below(cut, where) if id(value) in layers}
    last = list(below.values())[:1]
    chain = [value for value in ancestors(*last) if id(value) in below]
    called = {_called_from(where, value) for value in chain}
    return len(called) > 1 or len({id(part) for value in chain for part in _parts(value)}) > 1


def _parts(value: Value) -> Iterator[Module]:
    """The parts of the outermost module that a value is computed with; that module itself, where it
    holds a parameter of its own.
    """
    for source in value.inputs:
        part = source.parameter.module if source.is_leaf and source.parameter is not None else None
        while part is not None and part.parent is not None and part.parent.parent is not None:
            part = part.parent
        if part is not None:
            yield part


def _graph_below(cut: Value, where: tuple[Span, ...]) -> Iterator[Value]:
    """What a cut ends the graph of, nearest first: as far as the function that cuts has made it, or
    has called what did.
    """
    return (
        value
        for value in ancestors(*cut.inputs)
        if value.requires_grad and value.stack[: len(where)] == where
    )


def _called_from(where: tuple[Span, ...], value: Value) -> Span:
    """Where a function has made a value, or has called what made it."""
    return (*value.stack, value.at)[len(where)]


def _is_of_a_row(cut: Value, parameter: Parameter, sink: Backward, tape: Tape) -> bool:
    """Whether a block that the same line has made computes with what is cut, and is trained."""
    users = _users(tape)[id(sink)]
    peers = (user for users_ in users.values() for user in users_ if user.requires_grad)
    behind = _behind(cut, _users_before(tape)[id(sink)])
    return any(
        source.parameter is not None
        and source.parameter is not parameter
        and source.parameter.at == parameter.at
        for user in peers
        if id(user) in behind
        for source in user.inputs
    )


@of_tape
def _users(tape: Tape) -> dict[int, dict[int, list[Value]]]:
    """By sink and parameter, what is computed with the parameter itself on the way to the sink."""
    found: dict[int, dict[int, list[Value]]] = {}
    for sink in tape.backwards():
        users = found.setdefault(id(sink), {})
        for value in sink.ancestors:
            for source in value.inputs:
                if source.parameter is not None and source.is_leaf:
                    users.setdefault(id(source.parameter), []).append(value)
    return found


def _behind(cut: Value, users: dict[int, list[Value]]) -> set[int]:
    """What is computed from a value on the way to a sink, by id."""
    found, pending = set[int](), [cut]
    for value in pending:
        for user in users.get(id(value), ()):
            if id(user) not in found:
                found.add(id(user))
                pending.append(user)
    return found


def least_meant(found: Sequence[Blocked]) -> list[Blocked]:
    """Of what blocks a parameter, the obstacles that are least likely to be there on purpose."""
    least: dict[int, tuple[bool, int]] = {}
    for blocked in found:
        rank = _purpose(blocked.by)
        least[id(blocked.parameter)] = min(rank, least.get(id(blocked.parameter), rank))
    return [blocked for blocked in found if _purpose(blocked.by) == least[id(blocked.parameter)]]


def first_detached(found: Sequence[Blocked]) -> list[Blocked]:
    """Of several `detach` that keep a loss from a parameter, the first that is found: any of them
    would bring the gradient back.
    """
    first: dict[int, Span] = {}
    for blocked in found:
        if blocked.by.cut is Cut.DETACH:
            first.setdefault(id(blocked.parameter), place(blocked.by))
    return [
        each for each in found if place(each.by) == first.get(id(each.parameter), place(each.by))
    ]


def _purpose(obstacle: Value) -> tuple[bool, int]:
    """How likely an obstacle is meant: a `detach` rather than an `argmax`, what a rollout did
    without grad mode rather.

    PPO evaluates once more, with a gradient, what was acted on under `no_grad`; a codebook is moved
    to `z.detach()`.
    """
    meant = (Cut.DETACH, Cut.GRAD_MODE)
    return is_meant(obstacle), meant.index(obstacle.cut) + 1 if obstacle.cut in meant else 0
