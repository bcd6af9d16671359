"""Iterators: `iter(x)`, `next(x)`, and loops that take items out of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import handlers
from gradlint.interpret.iteration import is_endless, iterates
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import function
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Instance,
    Object,
    Sequence,
)
from gradlint.ir import nodes as ir
from gradlint.library.python.inspection import defines
from gradlint.library.python.lazies import following, is_open, lazy, listed
from gradlint.library.python.results import (
    argument,
    pair,
    place,
    settled,
    text,
)

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine


@function("builtins.iter", "builtins.aiter")
def iter_(m: Machine, call: Call) -> Abstract:
    """`iter(x)`: of a sequence, a generator of what it holds now."""
    value = argument(m, call)
    if isinstance(value, Sequence):
        return value if value.kind == "generator" else listed(m, value, call, "generator")
    if isinstance(value, Instance) and m.session.member_of(value.cls, "__iter__") is not None:
        return m.invoke(m.attribute(value, "__iter__", call), [], call)
    if isinstance(value, Object) and value.cls in ("builtins.iterator", "builtins.generator"):
        return value
    return lazy("builtins.iterator", call, [value])


@iterates("builtins.iterator")
def over_iterator(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """What is behind the iterator."""
    for source in receiver.state["sources"]:
        m.iterate(source, visit, call)


@function("builtins.next", "builtins.anext")
def next_(m: Machine, call: Call) -> Abstract:
    """`next(x)`: the next item of a known generator; of anything else, an item."""
    value = argument(m, call)
    _drain(m, value, call)
    if isinstance(value, Sequence) and value.kind == "generator":
        return value.items.pop(0) if value.items else following(m, value, 0) or _exhausted(m, call)
    if isinstance(value, Instance | Object) and defines(value, "__next__"):
        return m.invoke(m.attribute(value, "__next__", call), [], call)
    if isinstance(value, Object) and "left" in value.state:
        return value.state["left"].pop(0) if value.state["left"] else _exhausted(m, call)
    if isinstance(value, Object) and value.cls in _STEPS and not is_open(value):
        return _step(m, value, call) or _exhausted(m, call)
    return first(m, value, call) or m.unknown(text(call))


_STEPS = ("builtins.zip", "builtins.map", "builtins.enumerate", "builtins.iterator")


def _step(m: Machine, lazy: Object, call: Call) -> Abstract | None:
    """The next item of what wraps iterables that have an end, which leaves those behind it to the
    next who asks.
    """
    if not lazy.state.get("begun"):
        lazy.state["sources"] = [
            listed(m, source, call, "generator") for source in lazy.state["sources"]
        ]
        lazy.state["begun"] = True
    sources: list[Sequence] = lazy.state["sources"]
    if not sources or not all(source.items for source in sources):
        return None
    items = [source.items.pop(0) for source in sources]
    if lazy.cls == "builtins.map":
        return m.invoke(lazy.state["function"], items, call)
    if lazy.cls == "builtins.enumerate":
        number = settled(m, lazy.state["start"])
        lazy.state["start"] = Const(number.value + 1) if isinstance(number, Const) else number
        return pair(number, *items)
    return pair(*items) if lazy.cls == "builtins.zip" else items[0]


def _drain(m: Machine, value: Abstract, call: Call) -> None:
    """Lists what a `while` loop gets that takes items out of an iterator until there are none.

    It is what a `for` loop would run over; the loop goes round once more, to find that nothing is
    left.
    """
    loop = m.loops[-1] if m.loops else None
    is_lazy = isinstance(value, Object) and "sources" in value.state and "left" not in value.state
    if (
        loop is None
        or loop.over != "while"
        or loop.drains is not None
        or not (is_lazy or _is_generator(value))
    ):
        return
    if is_endless(value) or not _ends(m, loop, call):
        return
    items: list[Abstract] = []

    def visit(item: Abstract) -> bool:
        items.append(item)
        return False

    with m.loop("", loop.rounds) as inner:
        m.iterate(value, visit, Call("for", [value], {}, call.node, call.frame))
    loop.drains = loop.round + len(items)
    loop.sizes.update(inner.sizes)
    if isinstance(value, Sequence):
        value.items, value.open = items, False
    elif isinstance(value, Object):
        value.state["left"] = items


def _is_generator(value: Abstract) -> bool:
    return isinstance(value, Sequence) and value.kind == "generator" and value.consumed is None


def _ends(m: Machine, loop: Loop, call: Call) -> bool:
    """Whether a loop ends where `next` finds nothing: by a handler, or by the value that it gives
    then.
    """
    if len(call.args) < 2:
        return handlers.leads_out(m, "builtins.StopIteration", loop)
    return isinstance(loop.node, ir.While) and (
        handlers.leaves(loop.node.body) or not isinstance(loop.node.test, ir.Literal)
    )


def _exhausted(m: Machine, call: Call) -> Abstract:
    if m.loops and m.loops[-1].drains is not None:
        m.loops[-1].ends()
    if len(call.args) > 1:
        return call.args[1]
    raise Raised(Object("builtins.StopIteration", place(call)), place(call))


def first(m: Machine, value: Abstract, call: Call) -> Abstract | None:
    """The first item of `value`; None where there is none."""
    found: list[Abstract] = []

    def visit(item: Abstract) -> bool:
        found.append(item)
        return True

    with m.loop(""):
        m.iterate(value, visit, call)
    return found[0] if found else None
