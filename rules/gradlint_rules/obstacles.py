"""Obstacles on the way to a loss: what stops the gradient of a parameter that is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.tape import (
    Backward,
    Cut,
    Kind,
    Optimizer,
    Parameter,
    Tape,
    Value,
)  # fmt: skip
from gradlint_rules.copies import WRITTEN, copies
from gradlint_rules.cuts import cut_short, is_cut


@dataclass(frozen=True, slots=True)
class Blocked:
    """A parameter that an optimizer holds, behind something that stops its gradient."""

    parameter: Parameter
    optimizer: Optimizer
    by: Value
    sink: Backward
    tape: Tape
    # what is cut was computed from it before, and is not the parameter itself
    is_computed: bool = True


def behind(sink: Backward, tape: Tape) -> Iterator[tuple[Value, Value, Value]]:
    """The obstacles on the way to a loss, what each is computed from, and the trainable parameters
    behind that.
    """
    for value in cut_short(sink, tape):
        if _is_obstacle(value):
            for source in value.inputs:
                for leaf in reached_from(source):
                    yield value, source, leaf


def behind_copies(sink: Backward, tape: Tape) -> Iterator[tuple[Value, Value, Value]]:
    """The trainable parameters behind what was copied into a leaf of the loss: written weights have
    no graph.
    """
    leaves = {id(leaf.parameter) for leaf in sink.leaves if leaf.parameter is not None}
    for event, target, sources, op in copies(tape):
        if id(target) not in leaves or event.order >= sink.order:
            continue
        computed = tuple(source for source in sources if source.records and not source.assumed)
        if computed:
            copy = Value(
                op, Kind.OPERATION, computed, event.at, event.stack,
                cut=Cut.COPY, text=event.text, flags=frozenset([WRITTEN]),
            )  # fmt: skip
            for source in computed:
                for leaf in reached_from(source):
                    yield copy, source, leaf


def nearest(found: Sequence[Blocked]) -> list[Blocked]:
    """Of the obstacles before a parameter, those that a route from the loss meets first.

    In `torch.tensor(loss_of(probs.log_prob(probs.sample())).item())` it is the `item()` that keeps
    the gradient from the policy, whatever lies behind it.
    """
    by_use: dict[tuple[int, int], list[Blocked]] = {}
    for blocked in found:
        by_use.setdefault((id(blocked.sink), id(blocked.parameter)), []).append(blocked)
    return [blocked for group in by_use.values() for blocked in _first_of(group)]


def _first_of(group: Sequence[Blocked]) -> Sequence[Blocked]:
    """Those of the obstacles before one parameter that no other one hides from the loss, the
    nearest to it first.
    """
    if len(group) == 1:
        return group
    obstacles, met = {id(blocked.by) for blocked in group}, dict[int, int]()
    pending = [group[0].sink.value]
    seen = {id(pending[0])}
    for value in pending:
        if id(value) in obstacles:
            met[id(value)] = len(met)
            continue
        new = [source for source in value.inputs if id(source) not in seen]
        seen.update(map(id, new))
        pending += new
    # what was copied into a leaf stands on no route
    shown = [blocked for blocked in group if id(blocked.by) in met]
    return sorted(shown, key=lambda blocked: met[id(blocked.by)]) or group


def _is_obstacle(value: Value) -> bool:
    """Whether a gradient ends here, but for what is told by `checkpoint-without-gradient` and
    GL903.
    """
    if value.requires_grad:
        return value.zero_gradient
    return is_cut(value) and value.cut not in (Cut.CHECKPOINT, Cut.COLLECTIVE)


def reached_from(value: Value) -> list[Value]:
    """The parameters that a gradient other than zero comes back to from `value`."""
    if not value.requires_grad or value.zero_gradient:
        return []
    found: list[Value] = []
    seen, pending = {id(value)}, [value]
    for current in pending:
        if current.parameter is not None and current.is_leaf:
            found.append(current)
        for source in () if current.is_made_leaf else current.inputs:
            if source.requires_grad and not source.zero_gradient and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return found
