"""Iteration: the items that a loop gets from each kind of value, one after the other.

It is push style: the iterable calls the body. So a generator of the program runs interleaved with
the loop over it, as it does in Python, and what wraps an iterable (`enumerate`, `tqdm`) wraps the
body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradlint.interpret import defaults, estimates, fed, memory, shapes
from gradlint.interpret.derived import derived
from gradlint.interpret.generators import run_generator
from gradlint.interpret.instances import library_receiver
from gradlint.interpret.lineage import bases
from gradlint.interpret.machine import MAX_ITEMS
from gradlint.interpret.registry import notify
from gradlint.interpret.tables import ITERATE, Visit, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Package,
    Sequence,
    Super,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.ir import walk
from gradlint.ir.lower import body

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
# of tensors and constants, which a list has when they are named one by one: layers, activations
MOST_WRITTEN = 40
# the same where a counter decides when the step comes: as many as show its remainder
MOST_SHOWN = 22

ITERATES: dict[str, Callable[[Any, Any, Visit, Call], None]] = {}


def iterates(*classes: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers how objects of these library classes are iterated:
    `(machine, receiver, visit, call)`.
    """

    def register(handler: Callable[..., None]) -> Callable[..., None]:
        for cls in classes:
            if cls in ITERATES:
                raise ValueError(f"{cls} is registered twice")
            ITERATES[cls] = handler
        return handler

    return register


def rounds(m: Machine) -> range:
    """The rounds of the innermost loop, where its iterable does not say how many there are."""
    return range(m.loops[-1].rounds if m.loops else 2)


def is_endless(iterable: Abstract) -> bool:
    """Whether something goes on for ever, as `itertools.count()` does, and what wraps it."""
    if not isinstance(iterable, Object):
        return False
    if "endless" in iterable.state:
        return bool(iterable.state["endless"])
    function = iterable.state.get("function")
    if isinstance(function, Function):
        return walk.goes_on(body(function.node))
    sources = [is_endless(source) for source in iterable.state.get("sources", ())]
    return bool(sources) and (all(sources) if iterable.cls == "builtins.zip" else any(sources))


def is_window(iterable: Abstract) -> bool:
    """Whether something holds the next few items of a stream: `islice(iterator, n)`, what
    `batched(x, n)` gives.
    """
    if isinstance(iterable, Sequence):
        return iterable.window
    sources = iterable.state.get("sources", ()) if isinstance(iterable, Object) else ()
    if isinstance(iterable, Object) and iterable.cls == "itertools.islice":
        return any(map(_is_iterator, sources))
    return any(map(is_window, sources))


def is_next_slice(m: Machine, node: ir.Node, iterable: Abstract) -> bool:
    """Whether a loop runs over the part of a list that a loop around it has come to:
    `batches[start : start + 4]`.
    """
    is_list = isinstance(iterable, Sequence) and iterable.kind in ("list", "tuple")
    if not is_list or not isinstance(node, ir.Subscript) or not isinstance(node.index, ir.Slice):
        return False
    lower, upper = node.index.lower, node.index.upper
    moving = {loop.target.id for loop in m.loops if isinstance(loop.target, ir.Name)}
    return isinstance(lower, ir.Name) and lower.id in moving and upper is not None


def _is_iterator(value: Abstract) -> bool:
    """Whether each that takes items out of it leaves the rest to the next."""
    if isinstance(value, Sequence):
        return value.kind == "generator"
    return isinstance(value, Object) and value.cls in ("builtins.iterator", "builtins.generator")


def is_counted(m: Machine) -> bool:
    """Whether a counter was met: then a list has as many items as leave the remainder of its
    length.
    """
    return m.session.loops.listed == m.session.loops.batches


def is_in_full(m: Machine) -> None:
    """Notes that the innermost loop is run in all of its rounds."""
    if m.loops:
        m.state.setdefault("in full", set()).add(m.loops[-1].number)


def skip(m: Machine, rounds: int) -> None:
    """Notes how many rounds of the innermost loop are left out before this one."""
    if m.loops:
        m.loops[-1].skipped = rounds


@handles(ITERATE, Sequence)
def over_sequence(m: Machine, sequence: Sequence, visit: Visit, call: Call) -> None:
    if sequence.kind == "generator":
        if sequence.consumed is not None:
            notify("used up", m, sequence, call)
            return
        sequence.consumed = call.frame.span(call.node)
    most = MOST_SHOWN if is_counted(m) else MAX_ITEMS
    if not sequence.open and len(sequence.items) <= most:
        is_in_full(m)
    for position, item in enumerate(list(sequence.items)):
        if position >= most and not _is_each_meant(item, position):
            break
        if sequence.left_out and position == len(sequence.items) - 1:
            skip(m, sequence.left_out)
        if visit(item):
            return
    if sequence.open:
        estimates.runs_to(m, m.symbol(sequence), max(len(rounds(m)), len(sequence.items)), call)
        for number in rounds(m)[len(sequence.items) :]:
            rest = sequence.rest or Unknown(m.symbol(sequence).derive(("rest", number), "item"))
            if visit(rest):
                return


def shorten(m: Machine, made: Sequence) -> Sequence:
    """Keeps as many items of a list as leave what all of them leave to the counters, where there
    are any.
    """
    if is_counted(m) and not any(_is_each_meant(item, MOST_WRITTEN) for item in made.items):
        kept = made.items[: m.session.loops.listed_as(len(made.items))]
        made.items, made.left_out = kept, len(made.items) - len(kept)
    return made


def _is_each_meant(item: Abstract, position: int) -> bool:
    """Whether every item counts: a parameter or a module, alone or behind its name; what was
    written down by hand.
    """
    if isinstance(item, Sequence) and item.items:
        return _is_each_meant(item.items[-1], position)
    if isinstance(item, Tensor):
        return item.node.parameter is not None or position < MOST_WRITTEN
    if isinstance(item, Const):
        return position < MOST_WRITTEN
    return isinstance(item, Object | Instance) and item.module is not None


@handles(ITERATE, Mapping)
def over_mapping(m: Machine, mapping: Mapping, visit: Visit, call: Call) -> None:
    for key in list(mapping.items):
        if visit(key_value(m, mapping, key)):
            return
    if mapping.open:
        for number in rounds(m)[len(mapping.items) :] or range(1):
            if visit(
                Unknown(
                    (mapping.symbol or m.symbol(mapping)).derive(("key", number), "key"),
                    data=True,
                    type="str",
                )
            ):
                return


def key_value(m: Machine, mapping: Mapping, key: Any) -> Abstract:
    """The abstract value of a key."""
    if isinstance(key, Abstract):
        return key
    if isinstance(key, tuple) and key and key[0] == "unknown":
        held = next(
            (value for value in m.values_of((key[1],)) if value.parameter is not None), None
        )
        return Unknown(key[1], data=True) if held is None else Tensor(held)
    return NONE if key == ("None",) else Const(key)


@handles(ITERATE, Tensor)
def over_tensor(m: Machine, tensor: Tensor, visit: Visit, call: Call) -> None:
    if shapes.known_length(tensor) == 0:  # `torch.rand(0, 4)`: there are no rows
        return
    loops = m.session.loops
    takes_batches = bool(m.loops) and m.loops[-1].rounds == loops.batches
    length = shapes.known_length(tensor) if takes_batches else None
    turns = rounds(m)
    if length is not None:
        turns = range(loops.shown(length, m.loops[-1]) if loops.trains(m) else loops.items(length))
    estimates.runs_to(m, m.symbol(tensor), len(turns), call)
    for round_ in turns:
        if length is not None and round_ == turns[-1]:
            skip(m, max(0, length - len(turns)))
        row = memory.view(m, tensor, "torch.Tensor.unbind", call.node, call.frame)
        m.identify(row.node, m.symbol(tensor).derive(("row", round_), "row"))
        if visit(row):
            return


@handles(ITERATE, Unknown)
def over_unknown(m: Machine, unknown: Unknown, visit: Visit, call: Call) -> None:
    letters = defaults.text(m, unknown)
    if letters is not None:  # for layer in mode: the letters of a default go together
        over_other(m, Const(letters), visit, call)
        return
    number = m.loops[-1].number if m.loops else 0
    m.session.loops.runs_over(m, unknown.symbol)
    around = next((loop for loop in reversed(m.loops) if loop.over), None)
    if around is not None and call.name == "builtins.next":
        around.drawn.add(unknown.symbol)
    estimates.runs_to(m, unknown.symbol, len(rounds(m)), call)
    feeds = call.name != "builtins.next" and fed.is_fed(m, unknown, call.frame)
    for round_ in rounds(m):
        item = derived(m, unknown, "item", (number, round_), call.node, call.frame)
        if feeds:
            fed.feed(m, item)
        if round_ == 0:
            _note_key(m, unknown, item, call)
        if visit(item):
            return


def _note_key(m: Machine, listing: Unknown, first: Unknown, call: Call) -> None:
    """Writes down the first key of a dict that nothing is known of, which `items()` or `keys()`
    lists.
    """
    if listing.symbol in m.state.get("entries", ()):
        m.state.setdefault("first entries", set()).update((first.symbol, first.symbol.asked))
        first = derived(m, first, "item", 0, call.node, call.frame)
    elif listing.symbol not in m.state.get("names", ()) and not (m.loops and m.loops[-1].looks_up):
        return
    m.state.setdefault("first keys", set()).update((first.symbol, first.symbol.asked))


@handles(ITERATE, Object)
def over_object(m: Machine, made: Object, visit: Visit, call: Call) -> None:
    if made.cls == "builtins.generator":
        run_generator(m, made, visit, call)
        return
    for cls in bases(made.cls):
        if cls in ITERATES:
            ITERATES[cls](m, made, visit, call)
            return
    over_unknown(m, Unknown(m.symbol(made)), visit, call)


@handles(ITERATE, Instance)
def over_instance(m: Machine, instance: Instance, visit: Visit, call: Call) -> None:
    own = m.session.member_of(instance.cls, "__iter__") or m.session.member_of(
        instance.cls, "__aiter__"
    )
    if own is not None:
        made = m.invoke(own, [instance], call)
        if made is instance:
            _by_next(m, instance, visit, call)
        else:
            m.iterate(made, visit, call)
        return
    for base in instance.cls.libraries():
        own = library_receiver(instance, base)
        for cls in bases(base) if own is not None else ():
            if cls in ITERATES:
                ITERATES[cls](m, own, visit, call)
                return
    item = m.session.member_of(instance.cls, "__getitem__")
    if item is None:
        over_unknown(m, Unknown(m.symbol(instance)), visit, call)
        return
    for round_ in rounds(m):
        if visit(m.invoke(item, [instance, Const(round_)], call)):
            return


def _by_next(m: Machine, instance: Instance, visit: Visit, call: Call) -> None:
    step = m.session.member_of(instance.cls, "__next__") or m.session.member_of(
        instance.cls, "__anext__"
    )
    for round_ in rounds(m):
        item = (
            m.invoke(step, [instance], call)
            if step is not None
            else Unknown(m.symbol(instance).derive(round_, "item"))
        )
        if visit(item):
            return


@handles(ITERATE, Class)
def over_class(m: Machine, cls: Class, visit: Visit, call: Call) -> None:
    """What the class's own kind says: the members of an enum."""
    for base in cls.libraries():
        for parent in bases(base):
            if f"type {parent}" in ITERATES:
                ITERATES[f"type {parent}"](m, cls, visit, call)
                return
    over_other(m, cls, visit, call)


@handles(ITERATE, Const, Lib, Function, Builtin, Bound, Package, Super)
def over_other(m: Machine, value: Abstract, visit: Visit, call: Call) -> None:
    if isinstance(value, Const) and isinstance(value.value, str | bytes):
        for letter in value.value[:MAX_ITEMS]:
            if visit(Const(letter)):
                return
    elif not isinstance(value, Const):
        over_unknown(m, m.unknown(call.frame.text(call.node)), visit, call)
