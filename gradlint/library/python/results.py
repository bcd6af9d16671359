"""What handlers answer with: constants made here, and unknowns that are the same for the same
question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gradlint.finding import Span
from gradlint.interpret import copies, tensors
from gradlint.interpret.registry import FunctionHandler, function
from gradlint.interpret.values import Abstract, Call, Const, Sequence, Tensor, Unknown
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

NamedHandler = Callable[[Any, Call, str], Abstract]


def text(call: Call) -> str:
    """The source of the call."""
    return call.frame.text(call.node)


def place(call: Call) -> Span:
    """Where the call stands."""
    return call.frame.span(call.node)


def constant(call: Call, value: Any) -> Const:
    """A constant that this call makes."""
    return Const(value, place(call))


def argument(m: Machine, call: Call, position: int = 0) -> Abstract:
    """An argument, the first one; something unknown where it is not seen."""
    return call.args[position] if position < len(call.args) else m.unknown(text(call))


def fresh(m: Machine, call: Call, kind: str = "object") -> Unknown:
    """Something without gradient that differs from call to call."""
    return m.unknown(text(call), data=True, type=kind)


def same(
    m: Machine, call: Call, name: str, values: Iterable[Abstract], kind: str = "number"
) -> Unknown:
    """What the function `name` gives for these values: the same unknown for the same values."""
    values = list(values)
    symbol = m.session.constant_symbol(name)
    for value in values:
        symbol = symbol.derive(m.symbol(value), text(call))
    origins = list(_origins(m, values, name, call, set()))
    return Unknown(
        symbol, data=True, origin=copies.python(m, name, origins, call.node, call.frame), type=kind
    )


def _origins(
    m: Machine, values: Iterable[Abstract], name: str, call: Call, seen: set[int], depth: int = 0
) -> Iterator[Unknown]:
    """What among `values` came out of a tensor, in containers too."""
    for value in values:
        found = copied(m, value, name, call)
        if isinstance(found, Unknown) and found.origin is not None:
            yield found
        elif isinstance(found, Sequence) and depth < tensors.MAX_NESTING and id(found) not in seen:
            seen.add(id(found))
            yield from _origins(m, found.items, name, call, seen, depth + 1)


def settled(m: Machine, value: Abstract) -> Abstract:
    """`value`, or the number that this path took it to be."""
    return m.concrete.get(value.symbol, value) if isinstance(value, Unknown) else value


def is_tensor(m: Machine, value: Abstract) -> bool:
    """Whether `value` is a tensor, or something unknown that has been used as one."""
    if isinstance(value, Tensor):
        return True
    if (
        not isinstance(value, Unknown)
        or value.data
        or value.origin is not None
        or copies.is_no_tensor(m, value)
    ):
        return False
    known = m.nodes.get(value.symbol)
    return value.type == "tensor" or (known is not None and known.kind is Kind.OPERATION)


def copied(m: Machine, value: Abstract, name: str, call: Call) -> Abstract:
    """`value`, as a number where it is a tensor: Python's own functions copy out of the graph."""
    return (
        copies.number(m, value, name, call.node, call.frame)
        if is_tensor(m, value)
        else settled(m, value)
    )


def plain(values: Iterable[Abstract]) -> list[Any] | None:
    """The Python constants that all of `values` are; None where one is not."""
    found = []
    for value in values:
        if not isinstance(value, Const):
            return None
        found.append(value.value)
    return found


def keys(m: Machine, items: list[Abstract], call: Call) -> list[Any] | None:
    """What `items` are ordered by: themselves, or what `key=` makes of each; None where that is no
    constant.
    """
    key = call.kwargs.get("key")
    asked = (
        items
        if key is None or isinstance(key, Const)
        else [m.invoke(key, [item], call) for item in items]
    )
    found = [_comparable(item) for item in asked]
    return None if ... in found else found


def _comparable(value: Abstract) -> Any:
    """The constant, or the tuple or list of constants, that a value is; `...` where it is none."""
    if isinstance(value, Const):
        return value.value
    if not isinstance(value, Sequence) or value.open or value.kind not in ("tuple", "list"):
        return ...
    parts = [_comparable(item) for item in value.items]
    return ... if ... in parts else tuple(parts) if value.kind == "tuple" else parts


def pair(*items: Abstract) -> Sequence:
    """A tuple of these."""
    return Sequence("tuple", list(items))


def functions(*names: str) -> Callable[[NamedHandler], NamedHandler]:
    """Registers one handler for several functions; it is told the full name of the one that was
    called.
    """

    def register(handler: NamedHandler) -> NamedHandler:
        for name in names:
            function(name)(_named(handler, name))
        return handler

    return register


def _named(handler: NamedHandler, name: str) -> FunctionHandler:
    def run(m: Any, call: Call) -> Abstract:
        return handler(m, call, name)

    return run


def last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]
