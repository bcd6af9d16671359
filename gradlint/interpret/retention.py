"""Graphs that pile up: what outlives a training loop's rounds although its graph belongs to each of
them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.interpret.values import (
    Abstract,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.tape import Backward, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine

MAX_DEPTH = 6  # how deep containers and objects are searched
_CARRIED = ("sum", "state")
_SUMS = ("torch.add", "torch.Tensor.add_")
_LONG = 1000  # rounds that a loop is taken to have
_SURE = "surely visited"  # what the state of a path calls a `_Sure`


@dataclass(eq=False, slots=True)
class _Sure:
    """The values, by id, that the first so many backwards of a path surely ran through."""

    holding: list[tuple[int, bool, list[int]]]  # what the optimizers held
    sinks: int = 0
    values: set[int] = field(default_factory=set)


def report(m: Machine, loop: Loop, *owners: Abstract) -> None:
    """At the end of a loop that back-propagates: writes down each value that still holds several
    rounds' graphs.

    What the scopes hold is searched, and the `owners`: the objects that a framework's loop runs.
    """
    if loop.round < 2 or not _trains(m, loop):
        return
    holders: dict[int, tuple[Value, Span, str]] = {}
    seen: set[int] = set()
    for value in owners:
        _search(m, loop, value, holders, seen, None, 0)
    outer = len(m.where) - len(m.frames) + 1
    for calls, frame in enumerate(m.frames, outer):
        for value in frame.locals.values():
            _search(m, loop, value, holders, seen, calls, 0)
    sure: AbstractSet[int] = _sure(m) if holders else frozenset()
    for node, at, how in holders.values():
        if how in _CARRIED and (
            len(_rounds(loop, node, sure)) < loop.round or _is_freed_twice(m, node)
        ):
            continue
        if how in _CARRIED and not _is_carried(loop, node):
            m.session.loops.take_for_training(m, loop)
            continue
        m.emit(tape.Kept(at=at, value=node, how=how, text=node.text))


def _is_carried(loop: Loop, node: Value) -> bool:
    """Whether a round makes it of what the round before has made in its place.

    What is made anew in every round of a state, or of what a list has kept, only holds on to the
    graph of that.
    """
    below = list(tape.graph(node))
    made = [inner for inner in below if _is_same_place(inner, node)]
    own = {id(inner): _own_rounds(loop, inner) for inner in made}
    return any(
        (before := own.get(id(source))) and max(_own_rounds(loop, inner), default=0) > max(before)
        for inner in below
        for source in inner.inputs
    )


def _is_same_place(inner: Value, node: Value) -> bool:
    return (inner.at, inner.stack, inner.name) == (node.at, node.stack, node.name)


def report_sum(
    m: Machine, total: Abstract, items: list[Abstract], sinks: list[Backward], at: Span
) -> None:
    """Writes down a sum of what rounds of training give back: `sum(training_steps(loader))`."""
    if not sinks or not isinstance(total, Tensor):
        return
    held = {id(value) for value in tape.graph(total.node)}
    if all(isinstance(item, Tensor) and id(item.node) in held for item in items):
        report_list(m, items, sinks, at, "total")


def report_list(
    m: Machine, items: list[Abstract], sinks: list[Backward], at: Span, how: str = "append"
) -> None:
    """Writes down a list of what rounds of training give back, each with the graph that its own
    backward ran through.

    `losses = [train_step(batch) for batch in loader]`
    """
    through = [
        {id(value) for value in sink.graph} for sink in sinks if sink.sink != "autograd.grad"
    ]
    last: Value | None = None
    for item in items:
        last = next((node for node in _nodes(m, item) if node.records and not node.assumed), None)
        own = next((graph for graph in through if last is not None and id(last) in graph), None)
        if own is None:
            return
        through.remove(own)
    if last is not None and len(items) > 1:
        with m.loop("for", 1):  # what comes after the list is no part of its rounds
            m.emit(tape.Kept(at=at, value=last, how=how, text=last.text))


def _is_freed_twice(m: Machine, node: Value) -> bool:
    """Whether a second backward would meet what a call out of view computed: it raises, so no graph
    is handed on there.

    `loss, state = model(batch, state)`: a state that carried the graph along could not be trained
    with.
    """
    freed: set[int] = set()
    within = {id(value) for value in tape.graph(node) if value.op == "call"}
    for sink in m.sinks:
        met = within & {id(value) for value in sink.graph}
        if met & freed:
            return True
        if not sink.retain_graph and not sink.create_graph:
            freed |= met
    return False


def holds_graph(m: Machine, owner: Abstract) -> bool:
    """Whether an object, or a container in it, holds something that was computed with gradient: by
    a model which is handed in, where a backward ran through it.
    """
    pending, seen = [(owner, 0)], {id(owner)}
    for value, depth in pending:
        held = [node for node in _nodes(m, value, MAX_DEPTH) if node.records]
        if any(not node.assumed or id(node) in _sure(m) for node in held):
            return True
        for inner in _inside(value) if depth < MAX_DEPTH else ():
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append((inner, depth + 1))
    return False


def _sure(m: Machine) -> AbstractSet[int]:
    """The values, by id, through which a backward ran for sure.

    Each backward is looked at once, as long as the optimizers hold the same.
    """
    optimizers = m.tape.optimizers()
    holding = [
        (id(each), each.complete, [id(value) for value in each.parameters]) for each in optimizers
    ]
    known: _Sure = m.state.setdefault(_SURE, _Sure(holding))
    if known.holding != holding:
        known = m.state[_SURE] = _Sure(holding)
    for sink in m.sinks[known.sinks :]:
        known.values.update(map(id, tape.sure(sink.graph, optimizers)))
    known.sinks = len(m.sinks)
    return known.values


def _trains(m: Machine, loop: Loop) -> bool:
    sinks = (sink for sink in m.sinks if sink.sink != "autograd.grad")
    return any(loop.number == number for sink in sinks for number, _ in sink.iteration)


def _search(
    m: Machine,
    loop: Loop,
    value: Abstract,
    holders: dict[int, tuple[Value, Span, str]],
    seen: set[int],
    calls: int | None,
    depth: int,
) -> None:
    """Finds what a variable holds that so many calls led to, or, without a number, what an object
    holds.
    """
    if id(value) in seen or depth > MAX_DEPTH:
        return
    seen.add(id(value))
    node = (
        value.node
        if isinstance(value, Tensor)
        else m.nodes.get(value.symbol)
        if isinstance(value, Unknown)
        else None
    )
    if node is not None:
        if node.records and len(_rounds(loop, node)) >= loop.round:
            at = _bound(node, calls)
            holders.setdefault(id(node), (node, at, "sum" if at == node.at else "state"))
        return
    if isinstance(value, Sequence | Mapping):
        _search_container(m, loop, value, holders, _sure(m))
    own = None if isinstance(value, Instance | Object | Function) else calls
    for inner in _inside(value) if depth < MAX_DEPTH else ():
        _search(m, loop, inner, holders, seen, own, depth + 1)


def _bound(node: Value, calls: int | None) -> Span:
    """Where a variable got a value: at the call that gave it, or, if nothing is known of one, where
    it is made.
    """
    return node.at if calls is None or not 0 <= calls < len(node.stack) else node.stack[calls]


def _search_container(
    m: Machine,
    loop: Loop,
    container: Sequence | Mapping,
    holders: dict[int, tuple[Value, Span, str]],
    sure: AbstractSet[int],
) -> None:
    """A list that got a graph in every round; that of a model which is handed in, where a backward
    ran through it.
    """
    rounds: set[int] = set()
    last: list[Value] = []  # of the item that was put in last
    for item in _inside(container):
        held = [
            node
            for node in _nodes(m, item)
            if node.records and (not node.assumed or id(node) in sure)
        ]
        last = held[::-1] or last
        for node in held:
            rounds |= _own_rounds(loop, node)
    if last and len(rounds) >= loop.round:
        placed = m.appended.get(id(container))
        how = "window" if _forgets(container) else "append"
        holders.setdefault(id(container), (last[0], placed or last[0].at, how))
        if placed is not None:
            for node in last[1:]:  # of one record
                holders.setdefault(id(node), (node, placed, how))


def _forgets(container: Sequence | Mapping) -> bool:
    """Whether a deque has a bound that a long run comes to: from then on it holds no more than
    before.
    """
    most = container.most if isinstance(container, Sequence) else None
    return most is not None and most < _LONG


def _nodes(m: Machine, item: Abstract, depth: int = 0) -> list[Value]:
    if isinstance(item, Tensor):
        return [item.node]
    if isinstance(item, Unknown):
        return [m.nodes[item.symbol]] if item.symbol in m.nodes else []
    return (
        [node for inner in _inside(item) for node in _nodes(m, inner, depth + 1)]
        if depth < 2
        else []
    )


def _inside(value: Abstract) -> list[Abstract]:
    match value:
        case Sequence():
            return value.items
        case Mapping():
            return list(value.items.values())
        case Instance() | Object():
            return [
                *value.attrs.values(),
                *(part for part in value.state.values() if isinstance(part, Abstract)),
            ]
        case Function() if value.scope.function is not None:  # what it has from around it
            return list(value.scope.locals.values())
    return []


def _own_rounds(loop: Loop, node: Value) -> set[int]:
    return {number for owner, number in node.iteration if owner == loop.number}


def _rounds(loop: Loop, node: Value, sure: AbstractSet[int] | None = None) -> set[int]:
    """The rounds of the loop whose operations the graph of `node` still holds; of the assumed ones,
    those in `sure`.

    A sum of what was there before the loop, as the losses of several layers are, holds nothing of
    its rounds.
    """
    found: set[int] = set()
    for inner in tape.graph(node):
        is_sum = inner.at == node.at and inner.op in _SUMS
        if (
            inner.kind is Kind.OPERATION
            and not is_sum
            and (sure is None or not inner.assumed or id(inner) in sure)
        ):
            found |= _own_rounds(loop, inner)
    return found
