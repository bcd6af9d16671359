"""The module itertools."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gradlint.interpret import conditions, counters, estimates
from gradlint.interpret.iteration import is_endless, iterates, rounds
from gradlint.interpret.operators import binary
from gradlint.interpret.registry import function, method
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import NONE, Abstract, Call, Const, Object, Range, Sequence, Unknown
from gradlint.library.python.lazies import in_step, is_open, lazy, listed
from gradlint.library.python.results import argument, functions, last, pair, place, settled

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MAX_COMBINED = 32  # tuples of a product or of combinations


@function("itertools.chain")
def chain(m: Machine, call: Call) -> Abstract:
    """`chain(a, b)`: a generator where all of it is known."""
    return chained(m, list(call.args), call)


@function("itertools.chain.from_iterable")
def chain_from(m: Machine, call: Call) -> Abstract:
    """`chain.from_iterable(x)`."""
    return chained(m, m.items(call.args[0], call) if call.args else [], call)


def chained(m: Machine, sources: list[Abstract], call: Call) -> Abstract:
    """The items of several iterables, one after the other."""
    if not all(isinstance(source, Sequence) for source in sources):
        return lazy("itertools.chain", call, sources)
    parts = [listed(m, source, call) for source in sources]
    rest = next((part.rest for part in parts if part.rest is not None), None)
    more = any(part.open for part in parts)
    return Sequence(
        "generator", [item for part in parts for item in part.items], more, rest, at=place(call)
    )


@iterates("itertools.chain")
def over_chain(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """Each source in its turn."""
    ended = False

    def step(item: Abstract) -> bool:
        nonlocal ended
        ended = visit(item)
        return ended

    for source in receiver.state["sources"]:
        if not ended:
            m.iterate(source, step, call)


@function("itertools.islice")
def islice(m: Machine, call: Call) -> Abstract:
    """`islice(x, n)` and `islice(x, start, stop, step)`."""
    bounds = [settled(m, bound) for bound in call.args[1:]]
    made = lazy("itertools.islice", call, call.args[:1], bounds=bounds)
    stop = bounds[min(len(bounds), 2) - 1] if bounds else NONE
    if isinstance(stop, Const) and isinstance(stop.value, int):
        made.state["endless"] = False
    return made


@iterates("itertools.islice")
def over_islice(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """The items between known bounds; all of them where a bound is not known."""
    bounds = receiver.state["bounds"]
    known = [bound.value for bound in bounds if isinstance(bound, Const)]
    wanted = slice(*known) if known and len(known) == len(bounds) else slice(None)
    numbers = _counted(receiver.state["sources"], wanted)
    if numbers is not None:
        m.iterate(numbers, visit, call)
        return
    if (most := _shown(m, bounds, receiver.state["sources"])) is not None:
        wanted = slice(most)
        m.loops[-1].rounds = max(m.loops[-1].rounds, most)
    picked = itertools.islice(itertools.count(), wanted.start or 0, wanted.stop, wanted.step or 1)
    position, target = -1, next(picked, None)

    def step(item: Abstract) -> bool:
        nonlocal position, target
        position += 1
        if target is None:
            return True
        if position != target:
            return False
        target = next(picked, None)
        return visit(item) or target is None

    for source in receiver.state["sources"] if target is not None else []:
        m.iterate(source, step, call)


def _shown(m: Machine, bounds: list[Abstract], sources: list[Abstract]) -> int | None:
    """How many items to show of the first `n` of what has as many, or never ends: as of a loop of
    that length.
    """
    if len(bounds) != 1 or not m.loops or not all(map(_is_long, sources)):
        return None
    number, loops = estimates.estimated(m, bounds[0]), m.session.loops
    if number is None:
        return None
    return loops.shown(number, m.loops[-1]) if loops.trains(m) else loops.items(number)


def _is_long(source: Abstract) -> bool:
    """Whether something never ends, or is a stream: what it yields is not counted."""
    is_stream = isinstance(source, Object) and source.cls == "builtins.generator"
    return is_stream or is_endless(source)


def _counted(sources: list[Abstract], wanted: slice) -> Range | None:
    """`islice(count(1), 8)` is `range(1, 9)`."""
    match sources:
        case [
            Object(
                cls="itertools.count",
                state={"start": Const(value=int(start)), "step": Const(value=int(by))} as made,
            )
        ]:
            if "passed" not in made and isinstance(wanted.stop, int):
                first, stop, step = wanted.start or 0, wanted.stop, wanted.step or 1
                return Range(Const(start + by * first), Const(start + by * stop), Const(by * step))
    return None


@function("itertools.cycle", "itertools.repeat")
def endless(m: Machine, call: Call) -> Abstract:
    """`cycle(x)` and `repeat(x, times)`."""
    return lazy(
        call.name, call, call.args[:1], endless=True, times=settled(m, call.get(1, "times") or NONE)
    )


@iterates("itertools.cycle")
def over_cycle(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """Round and round, until the loop has had its rounds."""
    left, ended, moved = len(rounds(m)), False, True

    def step(item: Abstract) -> bool:
        nonlocal left, ended, moved
        moved, left = True, left - 1
        ended = visit(item) or left <= 0
        return ended

    while moved and not ended:
        moved = False
        for source in receiver.state["sources"]:
            m.iterate(source, step, call)


@iterates("itertools.repeat")
def over_repeat(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """The same item, as often as is known or the loop has rounds."""
    times = receiver.state["times"]
    count = (
        times.value if isinstance(times, Const) and isinstance(times.value, int) else len(rounds(m))
    )
    for item in receiver.state["sources"]:
        for _ in range(min(count, max(len(rounds(m)), 12))):
            if visit(item):
                return


@function("itertools.count")
def count(m: Machine, call: Call) -> Abstract:
    """`count(start, step)`."""
    bounds = {"start": call.get(0, "start") or Const(0), "step": call.get(1, "step") or Const(1)}
    return lazy("itertools.count", call, [], endless=True, **bounds)


@iterates("itertools.count")
def over_count(m: Machine, receiver: Object, visit: Visit, call: Call) -> None:
    """Plain constants where the start is known."""
    start, step = settled(m, receiver.state["start"]), receiver.state["step"]
    known = all(
        isinstance(bound, Const) and isinstance(bound.value, int) for bound in (start, step)
    )
    item: Abstract = start
    for round_ in rounds(m):
        if known and isinstance(start, Const) and isinstance(step, Const):
            item = counters.counts_on(m, item, Const(start.value + round_ * step.value))
        else:
            item = Unknown(m.symbol(receiver).derive(round_, "count"), data=True, type="number")
        if visit(item):
            return


@method("itertools.count", "__next__")
def next_count(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`next(counter)`."""
    passed = receiver.state["passed"] = receiver.state.get("passed", 0) + 1
    start, step = receiver.state["start"], receiver.state["step"]
    if isinstance(start, Const) and isinstance(step, Const) and isinstance(start.value, int):
        return Const(start.value + (passed - 1) * step.value)
    return Unknown(m.symbol(receiver).derive(passed, "count"), data=True, type="number")


@function("itertools.starmap")
def starmap(m: Machine, call: Call) -> Abstract:
    """`starmap(f, pairs)`."""
    called, source = call.args if len(call.args) == 2 else (NONE, NONE)
    items = [m.invoke(called, m.items(item, call), call) for item in m.items(source, call)]
    return Sequence("generator", items, is_open(source), at=place(call))


@function("itertools.pairwise")
def pairwise(m: Machine, call: Call) -> Abstract:
    """`pairwise(x)`."""
    made = listed(m, argument(m, call), call)
    return Sequence(
        "generator",
        [pair(*both) for both in itertools.pairwise(made.items)],
        made.open,
        at=place(call),
    )


@function("itertools.batched")
def batched(m: Machine, call: Call) -> Abstract:
    """`batched(x, n)`."""
    made, size = listed(m, argument(m, call), call, "tuple"), call.constant(1, "n")
    if not isinstance(size, int) or size < 1:
        return Sequence("generator", [made], True, at=place(call))
    parts = [
        Sequence("tuple", made.items[at : at + size], window=True)
        for at in range(0, len(made.items), size)
    ]
    return Sequence("generator", [*parts], made.open, at=place(call))


@functions(
    "itertools.product", "itertools.combinations", "itertools.permutations",
    "itertools.combinations_with_replacement"
)  # fmt: skip
def combined(m: Machine, call: Call, name: str) -> Abstract:
    """Tuples of items."""
    run = getattr(itertools, last(name))
    if name == "itertools.product":
        sources = [listed(m, source, call) for source in call.args]
        made = run(
            *(source.items for source in sources), repeat=_length(call.constant(None, "repeat", 1))
        )
    else:
        sources = [listed(m, argument(m, call), call)]
        most = len(sources[0].items) if name == "itertools.permutations" else 2
        made = run(sources[0].items, _length(call.constant(1, "r", most)))
    tuples: list[Abstract] = [pair(*items) for items in itertools.islice(made, MAX_COMBINED)]
    return Sequence("generator", tuples, any(source.open for source in sources), at=place(call))


def _length(given: object) -> int:
    """How long a tuple is; 2 where Python would refuse what is given."""
    return min(given, MAX_COMBINED) if isinstance(given, int) and given >= 0 else 2


@function("itertools.zip_longest")
def zip_longest(m: Machine, call: Call) -> Abstract:
    """`zip_longest(a, b)`."""
    fill = call.kwargs.get("fillvalue", NONE)
    sources = [listed(m, source, call) for source in call.args]
    columns = [source.items for source in sources]
    tuples: list[Abstract] = [
        pair(*items) for items in itertools.zip_longest(*columns, fillvalue=fill)
    ]
    return Sequence("generator", tuples, any(source.open for source in sources), at=place(call))


@function("itertools.accumulate")
def accumulate(m: Machine, call: Call) -> Abstract:
    """`accumulate(x, f)`: running totals."""
    source, combine, start = (
        call.get(0, "iterable") or NONE,
        call.get(1, "func"),
        call.kwargs.get("initial"),
    )
    totals: list[Abstract] = [] if start is None else [start]
    for item in m.items(source, call):
        if not totals:
            totals.append(item)
        elif combine is None:
            totals.append(binary(m, "+", totals[-1], item, call.node, call.frame))
        else:
            totals.append(m.invoke(combine, [totals[-1], item], call))
    return Sequence("generator", totals, is_open(source), at=place(call))


@function("itertools.groupby")
def groupby(m: Machine, call: Call) -> Abstract:
    """`groupby(x, key)`: one group of everything."""
    made = listed(m, argument(m, call), call, "generator")
    return Sequence("generator", [pair(m.unknown("key", data=True), made)], True, at=place(call))


@function("itertools.tee")
def tee(m: Machine, call: Call) -> Abstract:
    """`tee(x, n)`."""
    made = listed(m, argument(m, call), call)
    count = call.constant(1, "n", 2)
    copies = range(min(count, MAX_COMBINED) if isinstance(count, int) else 2)
    return Sequence(
        "tuple",
        [Sequence("generator", list(made.items), made.open, made.rest) for _ in copies],
        at=place(call),
    )


@function("itertools.compress")
def compress(m: Machine, call: Call) -> Abstract:
    """`compress(x, selectors)`."""
    made = Sequence("generator", [], True, at=place(call))

    def visit(items: list[Abstract]) -> bool:
        if conditions.truth(m, conditions.asked(m, items[1])) is not False:
            made.items.append(items[0])
        return False

    in_step(m, [argument(m, call), argument(m, call, 1)], visit, call)
    return made
