"""What wraps an iterable: enumerate, zip, map, reversed, iter and next, range, sorted, any and all.

A wrapper is an object that keeps what it wraps under "sources" and hands its items on, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint.interpret import conditions, counters, shapes
from gradlint.interpret.iteration import is_endless, is_window, iterates, shorten
from gradlint.interpret.registry import function
from gradlint.interpret.symbols import Test
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import (
    FALSE,
    TRUE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Range,
    Sequence,
    Tensor,
    Unknown,
    range_length,
)
from gradlint.library.python.results import (
    argument,
    functions,
    keys,
    last,
    pair,
    place,
    plain,
    settled,
    text,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

SHORT = 12  # a range up to this length is listed in full


def lazy(cls: str, call: Call, sources: list[Abstract], **state: Any) -> Object:
    """An object that hands on the items of `sources` when it is iterated."""
    return Object(cls, place(call), {"sources": sources, **state})


def is_open(value: Abstract) -> bool:
    """Whether there can be more items than iterating shows."""
    match value:
        case Sequence() | Mapping():
            return value.open
        case Const():
            return False
        case Range():
            bounds = plain([value.start, value.stop, value.step])
            return bounds is None or not _are_bounds(bounds) or range_length(*bounds) > SHORT
        case Object() if "endless" in value.state:
            return bool(value.state["endless"])
        case Object() if "sources" in value.state:
            opens = [is_open(source) for source in value.state["sources"]]
            return all(opens) if value.cls == "builtins.zip" else any(opens) or not opens
    return True


def _are_bounds(bounds: list[Any]) -> bool:
    return all(isinstance(bound, int) for bound in bounds) and bounds[2] != 0


def listed(m: Machine, value: Abstract, call: Call, kind: str = "list") -> Sequence:
    """The items of `value` as a sequence of its own."""
    if isinstance(value, Sequence) and value.kind != "generator":
        copied = Sequence(
            kind, list(value.items), value.open, value.rest, at=place(call), window=value.window
        )
        copied.left_out = value.left_out
        return copied
    more = is_open(value) and not (m.listed == m.session.loops.batches and _has_known_length(value))
    rest = value.rest if isinstance(value, Sequence) else None
    items = m.items(value, call)
    if isinstance(value, Sequence) and more:
        items = items[: len(value.items)]
    made = Sequence(
        kind, items, more and bool(items), rest, at=place(call), window=is_window(value)
    )
    return made if more else shorten(m, made)


def _has_known_length(value: Abstract) -> bool:
    if isinstance(value, Range):
        bounds = plain([value.start, value.stop, value.step])
        return bounds is not None and _are_bounds(bounds)
    return isinstance(value, Tensor) and shapes.known_length(value) is not None


def following(m: Machine, sequence: Sequence, position: int) -> Abstract | None:
    """The item at `position`; None behind the end."""
    if position < len(sequence.items):
        return sequence.items[position]
    if not sequence.open:
        return None
    return sequence.rest or Unknown(m.symbol(sequence).derive(("rest", position), "item"))


@function("builtins.enumerate")
def enumerate_(m: Machine, call: Call) -> Abstract:
    """`enumerate(x, start)`."""
    return lazy("builtins.enumerate", call, call.args[:1], start=call.get(1, "start") or Const(0))


@iterates("builtins.enumerate")
def over_enumerate(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """Counts in plain constants, which is how a counter is known."""
    start = settled(m, receiver.state["start"])
    first = start.value if isinstance(start, Const) and isinstance(start.value, int) else None
    counter = Const(first)
    passed = 0

    def step(item: Abstract) -> bool:
        nonlocal passed, counter
        passed += 1
        if first is not None:
            number = Const(first + _position(source, item, passed - 1))
            counter = counters.counts_on(m, counter, number) if passed > 1 else number
            return visit(pair(counter, item))
        count = Unknown(
            m.symbol(start).derive(("count", passed), "count"), data=True, type="number"
        )
        return visit(pair(count, item))

    for source in receiver.state["sources"]:
        m.iterate(source, step, call)


def _position(source: Abstract, item: Abstract, passed: int) -> int:
    """Which item of `source` it is: of a range that is not shown in full, the last round has the
    last number.
    """
    match source, item:
        case Range(start=Const(value=int() as start), step=Const(value=int() as step)), Const(
            value=int() as number
        ):
            return (number - start) // step
    return passed


@function("builtins.zip")
def zip_(m: Machine, call: Call) -> Abstract:
    """`zip(a, b)`; of `zip(*columns)` it is not known what there is beside the columns that are
    named.
    """
    if call.open and not call.args:
        return m.unknown(text(call))
    return lazy("builtins.zip", call, list(call.args), open=call.open)


@iterates("builtins.zip")
def over_zip(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """One source drives, the first whose length is known; the others are read alongside."""
    is_open = receiver.state.get("open", False)
    in_step(
        m, receiver.state["sources"], lambda items: visit(Sequence("tuple", items, is_open)), call
    )


def in_step(m: Machine, sources: list[Abstract], visit: Any, call: Call) -> None:
    """Hands the items of several iterables on together, up to the end of the shortest."""
    if not sources:
        return
    driver = _driver(sources)
    counters = {n: source for n, source in enumerate(sources) if n != driver and _counts(source)}
    others = {
        n: listed(m, source, call)
        for n, source in enumerate(sources)
        if n != driver and n not in counters
    }
    periods = {n: len(made.items) for n, made in others.items() if _turns(sources[n])}
    position = 0

    def step(item: Abstract) -> bool:
        nonlocal position
        others_now = {
            n: following(m, made, position % (periods.get(n) or position + 1))
            for n, made in others.items()
        }
        others_now |= {
            n: m.invoke(m.attribute(source, "__next__", call), [], call)
            for n, source in counters.items()
        }
        items = [item if n == driver else others_now[n] for n in range(len(sources))]
        position += 1
        return None in items or bool(visit(items))

    m.iterate(sources[driver], step, call)


def _driver(sources: list[Abstract]) -> int:
    """The source that says how far all of them are followed: one whose length is known, or one that
    has an end.
    """
    known = (n for n, source in enumerate(sources) if not is_open(source))
    with_an_end = (n for n, source in enumerate(sources) if not is_endless(source))
    return next(known, next(with_an_end, 0))


def _counts(source: Abstract) -> bool:
    return isinstance(source, Object) and source.cls == "itertools.count"


def _turns(source: Abstract) -> bool:
    return isinstance(source, Object) and source.cls == "itertools.cycle"


@function("builtins.map")
def map_(m: Machine, call: Call) -> Abstract:
    """`map(f, x)`."""
    return lazy("builtins.map", call, call.args[1:], function=argument(m, call))


@iterates("builtins.map")
def over_map(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """`f` of each item, when it is asked for."""
    called = receiver.state["function"]
    in_step(m, receiver.state["sources"], lambda items: visit(m.invoke(called, items, call)), call)


@function("builtins.filter", "itertools.filterfalse")
def filter_(m: Machine, call: Call) -> Abstract:
    """`filter(f, x)`: what `f` is not known to reject."""
    kept = Sequence("generator", [], at=place(call))
    if len(call.args) != 2:
        return kept
    test, source = call.args
    turned = last(call.name) == "filterfalse"
    for item in listed(m, source, call).items:
        answer = item if isinstance(test, Const) else m.invoke(test, [item], call)
        truth = conditions.truth(m, conditions.asked(m, answer))
        if truth is not turned or (turned and truth is None):
            kept.items.append(item)
    kept.open = is_open(source)
    return kept


@function("itertools.takewhile", "itertools.dropwhile")
def while_(m: Machine, call: Call) -> Abstract:
    """`takewhile(f, x)`: up to what `f` rejects; `dropwhile(f, x)`: from what `f` is not known to
    accept on.
    """
    kept = Sequence("generator", [], at=place(call))
    if len(call.args) != 2:
        return kept
    test, source = call.args
    takes = last(call.name) == "takewhile"
    items = listed(m, source, call).items
    for position, item in enumerate(items):
        truth = conditions.truth(m, conditions.asked(m, m.invoke(test, [item], call)))
        if takes and truth is False:
            return kept
        if not takes and truth is not True:
            kept.items.extend(items[position:])
            break
        if takes:
            kept.items.append(item)
    kept.open = is_open(source)
    return kept


@function("builtins.reversed")
def reversed_(m: Machine, call: Call) -> Abstract:
    """`reversed(x)`."""
    made = listed(m, argument(m, call), call, "generator")
    made.items.reverse()
    return made


@function("builtins.sorted")
def sorted_(m: Machine, call: Call) -> Abstract:
    """`sorted(x)`: constants in their order, anything else as it comes."""
    made = listed(m, argument(m, call), call)
    order(m, made, call)
    return made


def order(m: Machine, sequence: Sequence, call: Call) -> None:
    """Sorts by constants, and tuples of them; what else there is stays in its place."""
    known = keys(m, sequence.items, call)
    if known is None:
        return
    try:
        positions = sorted(
            range(len(known)), key=known.__getitem__, reverse=call.constant(None, "reverse") is True
        )
    except TypeError:
        return
    sequence.items = [sequence.items[position] for position in positions]


@function("builtins.range")
def range_(m: Machine, call: Call) -> Abstract:
    """`range(start, stop, step)`."""
    args = [settled(m, arg) for arg in call.args]
    start = args[0] if len(args) > 1 else Const(0)
    stop = (
        args[1]
        if len(args) > 1
        else args[0]
        if args
        else m.unknown(text(call), data=True, type="number")
    )
    return Range(start, stop, args[2] if len(args) > 2 else Const(1))


@functions("builtins.any", "builtins.all")
def quantified(m: Machine, call: Call, name: str) -> Abstract:
    """`any(x)` and `all(x)`: decided by one item, or by all of them."""
    decisive = name == "builtins.any"
    made = listed(m, argument(m, call), call)
    undecided = []
    for item in (conditions.asked(m, item) for item in made.items):
        known = conditions.truth(m, item)
        if known is decisive:
            return TRUE if decisive else FALSE
        if known is None:
            undecided.append(item)
    if not undecided and not made.open:
        return FALSE if decisive else TRUE
    if len(undecided) == 1 and not made.open:
        return conditions.boolean(m, conditions.test_of(m, undecided[0]), text(call))
    symbol = m.session.constant_symbol(name)
    for item in undecided or [made]:
        symbol = symbol.derive(m.symbol(item), text(call))
    return conditions.boolean(m, Test(symbol, "true"), text(call))
