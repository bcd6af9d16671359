"""Lists, tuples, sets, deques, dicts: how they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import retention
from gradlint.interpret.keys import hashable, key_of
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.python.lazies import listed
from gradlint.library.python.results import functions, last, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@functions("builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset")
def sequence(m: Machine, call: Call, name: str) -> Abstract:
    """`list(x)`."""
    kind = last(name).removeprefix("frozen")
    if not call.args:
        return Sequence(kind, [], at=place(call))
    sinks = len(m.sinks)
    made = listed(m, call.args[0], call, kind)
    if len(m.sinks) > sinks:
        retention.report_list(m, made.items, m.sinks[sinks:], place(call))
    return made


@function("collections.deque", "typing.Deque")
def deque(m: Machine, call: Call) -> Abstract:
    """`deque(x, maxlen)`: with a bound it forgets what came first."""
    source = call.get(0, "iterable")
    made = (
        Sequence("deque", [], at=place(call))
        if source is None
        else listed(m, source, call, "deque")
    )
    most = call.constant(1, "maxlen")
    if isinstance(most, int) and most >= 0:
        made.most = most
        made.items = made.items[max(0, len(made.items) - most) :]
    return made


@function("builtins.dict", "collections.OrderedDict", "typing.OrderedDict")
def dict_(m: Machine, call: Call) -> Abstract:
    """`dict(x, key=value)`."""
    made = Mapping({}, open=call.open, at=place(call))
    if call.args:
        merge(m, made, call.args[0], call)
    made.items.update(call.kwargs)
    return made


def merge(m: Machine, into: Mapping, source: Abstract, call: Call) -> None:
    """`into.update(source)`: of a mapping, or of pairs."""
    contents = source.state.get("items") if isinstance(source, Instance | Object) else None
    source = contents if isinstance(contents, Mapping) else source
    if isinstance(source, Mapping):
        into.put(source)
        into.open, into.symbol = into.open or source.open, into.symbol or source.symbol
        return
    if isinstance(source, Unknown):
        into.open, into.symbol = True, into.symbol or m.symbol(source).derive("dict", text(call))
        return
    pairs = listed(m, source, call)
    into.open = into.open or pairs.open
    for item in pairs.items:
        if not isinstance(item, Sequence) or len(item.items) != 2:
            into.open = True
            continue
        key, value = item.items
        into.open = into.open or (hashable(key) is None and not isinstance(key, Tensor))
        into.put(Mapping({key_of(m, key): value}))


@function("collections.defaultdict", "typing.DefaultDict")
def defaultdict(m: Machine, call: Call) -> Abstract:
    """`defaultdict(factory)`."""
    made = Mapping({}, open=call.open, at=place(call))
    made.factory = call.args[0] if call.args and not _is_none(call.args[0]) else None
    if len(call.args) > 1:
        merge(m, made, call.args[1], call)
    made.items.update(call.kwargs)
    return made


def _is_none(value: Abstract) -> bool:
    return isinstance(value, Const) and value.value is None


@function("collections.Counter", "typing.Counter")
def counter(m: Machine, call: Call) -> Abstract:
    """`Counter(x)`: numbers by keys that are not followed."""
    for arg in call.args:
        m.items(arg, call)
    return Mapping({}, open=True, at=place(call), symbol=m.unknown(text(call)).symbol)


@function("collections.ChainMap", "typing.ChainMap")
def chain_map(m: Machine, call: Call) -> Abstract:
    """`ChainMap(a, b)`: the first one wins."""
    made = Mapping({}, at=place(call))
    for arg in reversed(call.args):
        merge(m, made, arg, call)
    return made


@function("collections.namedtuple", "typing.NamedTuple")
def namedtuple(m: Machine, call: Call) -> Abstract:
    """`namedtuple("Name", fields)`: a class that nothing is known of but its fields."""
    from gradlint.library.python.records import named_tuple_class

    fields = call.get(1, "field_names") or NONE
    if isinstance(fields, Const):
        names = str(fields.value).replace(",", " ").split()
    else:
        names = [str(item.value) for item in m.items(fields, call) if isinstance(item, Const)]
    return named_tuple_class(str(call.constant(0, "typename", "tuple")), names)
