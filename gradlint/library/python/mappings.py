"""The methods of dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import comparing
from gradlint.interpret.iteration import key_value
from gradlint.interpret.keys import hashable, key_of
from gradlint.interpret.registry import function, method
from gradlint.interpret.subscripts import item
from gradlint.interpret.values import FALSE, NONE, Abstract, Call, Const, Mapping, Sequence, Unknown
from gradlint.library.python.containers import merge
from gradlint.library.python.results import argument, fresh, pair, place, text
from gradlint.library.python.sequences import noted

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def _open_entry(m: Machine, mapping: Mapping, name: str) -> Abstract:
    """What stands for the keys or values that are not known."""
    if mapping.rest is not None and name == "value":
        return mapping.rest
    symbol = mapping.symbol or m.symbol(mapping)
    return Unknown(
        symbol.derive(("any", name), f"a {name}"), data=mapping.symbol is not None or name == "key"
    )


def _listing(mapping: Mapping, call: Call, items: list[Abstract], rest: Abstract) -> Sequence:
    """The known entries, and one that stands for the others."""
    if not mapping.open:
        return Sequence("list", items, at=place(call))
    return Sequence("list", [*items, rest] if items else [], open=True, rest=rest, at=place(call))


@method("dict", "keys", "__iter__")
def keys(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.keys()`."""
    known = [key_value(m, receiver, key) for key in receiver.items]
    return _listing(receiver, call, known, _open_entry(m, receiver, "key"))


@method("dict", "values")
def values(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.values()`."""
    return _listing(
        receiver, call, list(receiver.items.values()), _open_entry(m, receiver, "value")
    )


@method("dict", "items")
def items(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.items()`."""
    rest = pair(_open_entry(m, receiver, "key"), _open_entry(m, receiver, "value"))
    known: list[Abstract] = [
        pair(key_value(m, receiver, key), value) for key, value in receiver.items.items()
    ]
    return _listing(receiver, call, known, rest)


def lookup(
    m: Machine, mapping: Mapping, index: Abstract, default: Abstract, call: Call
) -> Abstract:
    """`mapping.get(index, default)`."""
    from gradlint.library.samples import can_be_missing

    key = hashable(index)
    if key is not None and key in mapping.items:
        return mapping.items[key]
    if key is not None and not mapping.open:
        return default
    if can_be_missing(m, key or m.symbol(index), mapping, call):
        return default
    if key is None and not mapping.items and not mapping.open:
        return default
    own = (
        mapping
        if mapping.factory is None
        else Mapping(mapping.items, mapping.open, symbol=mapping.symbol)
    )
    return item(m, own, index, call.node, call.frame)


@method("dict", "get")
def get(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.get(key, default)`."""
    return (
        lookup(m, receiver, call.args[0], call.get(1, "default") or NONE, call)
        if call.args
        else NONE
    )


@method("dict", "pop")
def pop(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.pop(key, default)`."""
    if not call.args:
        return NONE
    found = lookup(m, receiver, call.args[0], call.get(1, "default") or m.unknown(text(call)), call)
    receiver.items.pop(key_of(m, call.args[0]), None)
    noted(m, call, found)
    return found


@method("dict", "popitem")
def pop_item(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.popitem()`: the last one; of an ordered one, the first with `last=False`."""
    if not receiver.items:
        return pair(_open_entry(m, receiver, "key"), _open_entry(m, receiver, "value"))
    key = (
        next(iter(receiver.items))
        if call.constant(0, "last") is False
        else next(reversed(receiver.items))
    )
    value = receiver.items.pop(key)
    noted(m, call, value)
    return pair(key_value(m, receiver, key), value)


@method("dict", "setdefault")
def set_default(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.setdefault(key, value)`."""
    if not call.args:
        return NONE
    key, value = key_of(m, call.args[0]), call.get(1, "default") or NONE
    if key not in receiver.items:
        receiver.put(Mapping({key: value}))
        noted(m, call, value)
    return receiver.items[key]


@method("dict", "update")
def update(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.update(other, key=value)`."""
    for source in call.args:
        merge(m, receiver, source, call)
        noted(m, call, source)
    for value in call.kwargs.values():
        noted(m, call, value)
    receiver.put(Mapping(dict(call.kwargs)))
    receiver.open = receiver.open or call.open
    return NONE


@method("dict", "clear")
def clear(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.clear()`."""
    receiver.items.clear()
    receiver.open = False
    noted(m, call, receiver)
    return NONE


@method("dict", "copy")
def copy(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.copy()`."""
    return Mapping(
        dict(receiver.items), receiver.open, receiver.factory, place(call), receiver.symbol
    )


@function("builtins.dict.fromkeys", "collections.OrderedDict.fromkeys")
def from_keys(m: Machine, call: Call) -> Mapping:
    """`dict.fromkeys(keys, value)`."""
    made = Mapping({}, at=place(call))
    value = call.get(1, "value") or NONE
    pairs: list[Abstract] = [pair(key, value) for key in m.items(argument(m, call), call)]
    merge(m, made, Sequence("list", pairs), call)
    return made


@method("dict", "fromkeys")
def from_keys_of_class(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.fromkeys(keys, value)`."""
    return from_keys(m, call)


@method("dict", "move_to_end")
def move_to_end(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.move_to_end(key)`."""
    key = hashable(call.args[0]) if call.args else None
    if key in receiver.items:
        moved = {key: receiver.items.pop(key)}
        first = call.constant(1, "last") is False
        receiver.items = {**moved, **receiver.items} if first else {**receiver.items, **moved}
    return NONE


@method("dict", "most_common", "elements", "total")
def counted(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """What a `Counter` counted."""
    return fresh(m, call, "")


@method("dict", "__len__")
def length(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.__len__()`."""
    return fresh(m, call, "number") if receiver.open else Const(len(receiver.items))


@method("dict", "__contains__")
def contains(m: Machine, receiver: Mapping, call: Call) -> Abstract:
    """`x.__contains__(key)`."""
    return comparing.compare(m, "in", call.args[0], receiver, text(call)) if call.args else FALSE
