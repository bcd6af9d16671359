"""The methods of lists, tuples, sets, deques and generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import comparing, placing
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import method
from gradlint.interpret.values import (
    FALSE,
    NONE,
    Abstract,
    Call,
    Const,
    Object,
    Sequence,
    Tensor,
    member,
)
from gradlint.library.python.iterators import first
from gradlint.library.python.lazies import following, listed, order
from gradlint.library.python.results import argument, constant, fresh, place, plain, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_GROWING = ("list", "deque")
_ALL = ("list", "tuple", "set", "deque", "generator")


def noted(m: Machine, call: Call, value: Abstract) -> None:
    """Writes the change of a container into the journal of the branch."""
    placing.note(m, "item", text(call), value)


def kept_before(m: Machine, receiver: Sequence, value: Abstract) -> bool:
    """Whether a set has the item already."""
    if receiver.kind != "set":
        return False
    if isinstance(value, Const):
        return any(isinstance(item, Const) and item.value == value.value for item in receiver.items)
    return id(value) in map(id, receiver.items)


def _new_in(receiver: Sequence, more: Sequence) -> list[Abstract]:
    """The items of another that a set does not have."""
    known = set(map(member, receiver.items))
    return [item for item in more.items if member(item) not in known]


@method(_GROWING, "append")
@method("set", "add")
def append(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.append(item)`."""
    for value in call.args[:1]:
        if not kept_before(m, receiver, value):
            receiver.items.append(value)
            _forget(receiver)
            if isinstance(value, Tensor) and value.node.records:
                at = call.frame.span(call.node)
                m.emit(tape.Fact(at=at, what="gathered", value=value.node))
        m.appended[id(receiver)] = place(call)
        noted(m, call, value)
    return NONE


def _forget(deque: Sequence, *, at_end: bool = False) -> None:
    """Takes what is too much for a bounded deque from its other end."""
    excess = 0 if deque.most is None else max(0, len(deque.items) - deque.most)
    del deque.items[len(deque.items) - excess if at_end else 0 : None if at_end else excess]


@method("deque", "appendleft")
def append_left(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.appendleft(item)`."""
    for value in call.args[:1]:
        receiver.items.insert(0, value)
        _forget(receiver, at_end=True)
        m.appended[id(receiver)] = place(call)
        noted(m, call, value)
    return NONE


@method(_GROWING, "extend")
@method("set", "update")
def extend(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.extend(items)`."""
    for source in call.args:
        more = listed(m, source, call)
        receiver.extend(_new_in(receiver, more) if receiver.kind == "set" else more.items)
        _forget(receiver)
        if more.open:
            receiver.open, receiver.rest = True, receiver.rest or more.rest
        m.appended[id(receiver)] = place(call)
        noted(m, call, more)
    return NONE


@method("deque", "extendleft")
def extend_left(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.extendleft(items)`: the last of them comes to stand first."""
    for source in call.args[:1]:
        more = listed(m, source, call)
        receiver.items[:0] = reversed(more.items)
        receiver.open, receiver.rest = receiver.open or more.open, receiver.rest or more.rest
        _forget(receiver, at_end=True)
        m.appended[id(receiver)] = place(call)
        noted(m, call, more)
    return NONE


@method(_GROWING, "insert")
def insert(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.insert(position, item)`."""
    if len(call.args) == 2:
        position = call.constant(0, "index", len(receiver.items))
        receiver.items.insert(
            position if isinstance(position, int) else len(receiver.items), call.args[1]
        )
        m.appended[id(receiver)] = place(call)
        noted(m, call, call.args[1])
    return NONE


@method(_GROWING, "pop")
@method("set", "pop")
def pop(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.pop()`."""
    position = call.constant(0, "index", -1 if not call.args else None)
    noted(m, call, NONE)
    if isinstance(position, int) and -len(receiver.items) <= position < len(receiver.items):
        return receiver.items.pop(position)
    if receiver.items and not isinstance(position, int):
        return receiver.items.pop()
    return (following(m, receiver, len(receiver.items)) if receiver.open else None) or m.unknown(
        text(call)
    )


@method("deque", "popleft")
def pop_left(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.popleft()`."""
    noted(m, call, NONE)
    return (
        receiver.items.pop(0)
        if receiver.items
        else following(m, receiver, 0) or m.unknown(text(call))
    )


@method(_GROWING, "remove")
@method("set", "remove", "discard")
def remove(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.remove(item)`."""
    for value in call.args[:1]:
        for position, item in enumerate(receiver.items):
            if item is value or (
                isinstance(item, Const) and isinstance(value, Const) and item.value == value.value
            ):
                del receiver.items[position]
                break
        noted(m, call, value)
    return NONE


@method(("list", "set", "deque"), "clear")
def clear(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.clear()`."""
    receiver.items.clear()
    receiver.open, receiver.rest = False, None
    noted(m, call, receiver)
    return NONE


@method(_GROWING, "reverse")
def reverse(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.reverse()`."""
    receiver.items.reverse()
    return NONE


@method("deque", "rotate")
def rotate(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.rotate(n)`: which item is where is not followed where the number or the length is not
    known.
    """
    turns = call.constant(0, "n", None if call.args else 1)
    if isinstance(turns, int) and receiver.items and not receiver.open:
        turns %= len(receiver.items)
        receiver.items[:] = (
            receiver.items[-turns:] + receiver.items[:-turns] if turns else receiver.items
        )
    return NONE


@method("list", "sort")
def sort(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.sort()`."""
    order(m, receiver, call)
    return NONE


@method(("list", "set", "deque"), "copy")
def copy(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.copy()`."""
    made = listed(m, receiver, call, receiver.kind)
    made.most = receiver.most
    return made


@method(("list", "tuple", "deque"), "index", "count")
def position(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.index(item)` and `x.count(item)`, of constants."""
    known, wanted = plain(receiver.items), plain(call.args)
    if known is not None and wanted and not receiver.open:
        name = call.name.rpartition(".")[2]
        if name == "count":
            return constant(call, known.count(wanted[0]))
        if name == "index" and wanted[0] in known:
            return Const(known.index(wanted[0]))
    return fresh(m, call, "number")


def _set_operation(name: str, keeps: bool | None) -> None:
    """A set of items of both sides: `keeps` says whether the second must have them; None: it adds
    its own.
    """

    @method("set", name)
    def handler(m: Machine, receiver: Sequence, call: Call) -> Abstract:
        made = Sequence("set", list(receiver.items), receiver.open, receiver.rest, at=place(call))
        for source in call.args:
            other = listed(m, source, call, "set")
            if keeps is None:
                made.extend(_new_in(made, other))
                made.open = made.open or other.open
            else:
                known = set(map(member, other.items))
                made.items = [
                    item for item in made.items if other.open or (member(item) in known) is keeps
                ]
        return made


for _name, _keeps in (("union", None), ("intersection", True), ("difference", False)):
    _set_operation(_name, _keeps)


@method("set", "symmetric_difference")
def symmetric_difference(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.symmetric_difference(y)`: what one of the two has and the other has not."""
    other = listed(m, argument(m, call), call, "set")
    one = receiver.items if other.open else _new_in(other, receiver)
    two = other.items if receiver.open else _new_in(receiver, other)
    return Sequence(
        "set",
        [*one, *two],
        receiver.open or other.open,
        receiver.rest or other.rest,
        at=place(call),
    )


@method("set", "issubset", "issuperset", "isdisjoint")
def compared(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """How two sets relate is not followed."""
    return fresh(m, call, "bool")


@method(_ALL, "__len__")
def length(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.__len__()`."""
    return fresh(m, call, "number") if receiver.open else Const(len(receiver.items))


@method(_ALL, "__contains__")
def contains(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.__contains__(item)`."""
    return comparing.compare(m, "in", call.args[0], receiver, text(call)) if call.args else FALSE


@method(_ALL, "__iter__")
def iterator(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`x.__iter__()`."""
    return receiver if receiver.kind == "generator" else listed(m, receiver, call, "generator")


@method("generator", "send", "__next__")
def send(m: Machine, receiver: Sequence, call: Call) -> Abstract:
    """`next(x)` and `x.send(value)`."""
    if receiver.items:
        return receiver.items.pop(0)
    if receiver.open:
        return following(m, receiver, 0) or NONE
    raise Raised(Object("builtins.StopIteration", place(call)), place(call))


@method("generator", "close")
@method("builtins.generator", "close")
def close(m: Machine, receiver: Abstract, call: Call) -> Abstract:
    """`x.close()`."""
    return NONE


@method("builtins.generator", "send", "__next__")
def send_generator(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`next(generator)`: what it yields first."""
    return first(m, receiver, call) or m.unknown(text(call))
