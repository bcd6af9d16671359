"""`while` and `for`: in how many rounds a loop is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import (
    calm,
    comparing,
    conditions,
    cycles,
    emptied,
    filters,
    retention,
)
from gradlint.interpret.iteration import is_endless, is_next_slice, is_window
from gradlint.interpret.looping import Loop
from gradlint.interpret.machine import MAX_ITEMS
from gradlint.interpret.scopes import BREAK, CONTINUE, Branch, Frame, Signal
from gradlint.interpret.storage import assign
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Call,
    Function,
    Instance,
    Object,
    Sequence,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.source.blocks import ends_early

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@handles(EXECUTE, ir.While)
def while_(m: Machine, node: ir.While, frame: Frame) -> Signal | None:
    rounds = max(m.session.loops.rounds(node), m.session.loops.wanted(node, frame))
    with m.loop("while", rounds) as loop:
        loop.node, loop.ends_early = node, ends_early(node.source)
        loop.rounds = max(loop.rounds, _counted_rounds(m, node, frame))
        while loop.goes_on:
            value = conditions.ask(m, Branch(leaves=False, repeats=True), node.test, frame)
            known = conditions.truth(m, value)
            if known is False:
                loop.ends()
                return m.execute(node.otherwise, frame)
            if known is None:
                m.oracle.facts.learn(conditions.test_of(m, value), True)
            signal = _round(m, loop, node, node.body, frame)
            if signal is BREAK:
                if loop.drains is not None:
                    # in the last one it found nothing left
                    m.turn(loop, min(loop.round, loop.drains))
                retention.report(m, loop)
                return None
            if signal is not None and signal.kind == "return":
                return signal
            if loop.rounds < MAX_ITEMS and cycles.is_on_the_way(m, loop):
                loop.is_on_the_way()
        frame.is_endless = frame.is_endless or isinstance(node.test, ir.Literal)
        m.emit(tape.Fact(at=frame.span(node), what="endless", text=frame.text(node.test)))
        retention.report(m, loop)
    return m.execute(node.otherwise, frame) if not isinstance(node.test, ir.Literal) else None


def _counted_rounds(m: Machine, node: ir.While, frame: Frame) -> int:
    """In how many rounds `while epoch < 10` is run, which is `for epoch in range(10)` written out;
    else 0.
    """
    match node.test:
        case ir.Compare(
            ops=["<"], left=ir.Name(id=name) as left, rights=[ir.Name() | ir.Literal() as right]
        ):
            if not any(_counts(each, name) for each in node.body):
                return 0
        case _:
            return 0
    counter, end = (comparing.known_number(m.evaluate(side, frame)) for side in (left, right))
    if not isinstance(counter, int) or not isinstance(end, int) or counter >= end:
        return 0
    if m.session.loops.trains(m):
        return m.session.loops.shown(end - counter, m.loops[-1])
    return min(end - counter, MAX_ITEMS)


def _counts(node: ir.Node, name: str) -> bool:
    """Whether it is `name += 1`."""
    match node:
        case ir.Augment(op="+", target=ir.Name(id=counter), value=ir.Literal(value=1)):
            return counter == name
    return False


def _round(
    m: Machine, loop: Loop, node: ir.For | ir.While, body: list[ir.Node], frame: Frame
) -> Signal | None:
    text = frame.text(node.iterable if isinstance(node, ir.For) else node.test)
    text = (
        "while True" if isinstance(node, ir.While) and isinstance(node.test, ir.Literal) else text
    )
    if m.steps > m.calm:
        calm.look(m)
    with m.round(loop, frame.span(node), text):
        return m.execute(body, frame)


@handles(EXECUTE, ir.For)
def for_(m: Machine, node: ir.For, frame: Frame) -> Signal | None:
    if _is_left_empty(m, node, frame):
        return m.execute(node.otherwise, frame)
    iterable = m.evaluate(node.iterable, frame)
    ended: list[Signal] = []
    begun = emptied.before(m, frame)
    is_next = is_window(iterable) or is_next_slice(m, node.iterable, iterable)
    over = "window" if is_next else "for"
    rounds = max(m.session.loops.rounds(node), m.session.loops.wanted(node, frame))
    with m.loop(over, rounds) as loop:
        loop.node, loop.ends_early = node, ends_early(node.source)
        loop.target, loop.looks_up = node.target, filters.looks_up(node, node.target, node.iterable)
        loop.is_sized = isinstance(iterable, Sequence) and iterable.kind in ("list", "tuple")
        loop.is_single = (
            isinstance(iterable, Sequence) and not iterable.open and len(iterable.items) == 1
        )

        visited = False

        def visit(entry: Abstract) -> bool:
            nonlocal visited
            visited = True
            if _is_called(m, entry):
                m.over_callables.add(loop.number)
            assign(m, node.target, entry, frame)
            signal = _round(m, loop, node, node.body, frame)
            if signal is None or signal is CONTINUE:
                return False
            ended.append(signal)
            return True

        at = Call("for", [], {}, node.iterable, frame)
        m.iterate(iterable, visit, at)
        if not visited and isinstance(iterable, Object) and _steps_in(m, node, frame):
            m.iterate(m.unknown(frame.text(node.iterable), data=True), visit, at)
        if not ended and not is_endless(iterable):
            loop.ends()
        retention.report(m, loop)
    if ended:
        return ended[0] if ended[0].kind == "return" else None
    if begun is not None and not loop.looks_up:
        emptied.filled(m, begun, iterable)
    return m.execute(node.otherwise, frame)


def _is_left_empty(m: Machine, node: ir.For, frame: Frame) -> bool:
    """Whether a container of a part has nothing in it on this path, as its constructor has left it.

    `for hook in self.hooks.values():`, where another method registers hooks: most objects have
    none.
    """
    left_empty: set[Symbol] = m.state.get("left empty", set())
    match node.iterable:
        case ir.Call(function=ir.Attribute(target=ir.Attribute() as held)):  # `self.hooks.values()`
            pass
        case ir.Attribute() as held:
            pass
        case _:
            return False
    container = m.evaluate(held, frame) if left_empty else None
    if not isinstance(container, Unknown) or container.symbol not in left_empty:
        return False
    filled = conditions.boolean(m, Test(container.symbol, "true"), frame.text(held))
    known = conditions.truth(m, filled)
    if known is None:
        known = conditions.choose(m, filled, held, frame, default=False, whole=node)
    return not known


def _steps_in(m: Machine, node: ir.For, frame: Frame) -> bool:
    """Whether a backward stands in a loop, or in what it calls: then what it runs over is not
    empty.
    """
    return m.session.may_train and m.session.is_written(
        node.source, frame.code.path, tape.May.BACKWARD
    )


def _is_called(m: Machine, entry: Abstract) -> bool:
    """Whether a loop runs over functions, methods or objects of the program that are called."""
    if isinstance(entry, Instance):
        return entry.module is None and m.session.member_of(entry.cls, "__call__") is not None
    return isinstance(entry, Function | Bound)
