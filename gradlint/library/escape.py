"""What code out of view can fill: the empty containers that it is given, alone, in an object or
through a closure.

    features = {}
    backbone.layer4.register_forward_hook(lambda _, inputs, output: features.update(last=output))

Nobody in view calls the hook, and yet `features` is not empty later on. So whatever code out of
view has been handed is left open each time that such code is called: the closure keeps what it can
reach, also after it was emptied.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.registry import on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.program import fields
from gradlint.source import effects

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

MAX_DEPTH = 3  # of containers in objects in containers
MOST_KEPT = 32  # callbacks that are looked through again at each call: the latest
_FILLED = ("list", "deque", "set")
_CALLED = (Function, Bound, Builtin)
# what something can be reached through
_REACHING = frozenset([*_CALLED, Object, Instance, Mapping, Sequence])


@on("unknown call")
def open_what_escapes(m: Machine, symbol: Symbol, call: Call) -> None:
    """Code out of view is called: it can fill what it is given now, and what the callbacks given
    before can reach.
    """
    callbacks: deque[Abstract] = m.state.setdefault("callbacks", deque(maxlen=MOST_KEPT))
    opened: dict[int, int] = {}
    for value in [*call.values, *receiver(m, symbol)]:
        if is_callback(value) and value not in callbacks:
            callbacks.append(value)
        _open(m, value, opened)
    for callback in callbacks:
        _open(m, callback, opened)


def receiver(m: Machine, symbol: Symbol) -> list[Abstract]:
    """`self` of `self.visit(batch)`, where a base class out of view defines `visit`."""
    owner = m.objects.get(symbol.source) if symbol.source is not None else None
    return [] if owner is None else [owner]


def is_callback(value: Abstract) -> bool:
    return isinstance(value, _CALLED) or (
        isinstance(value, Object) and value.cls == "functools.partial"
    )


def within(callback: Abstract) -> list[Abstract]:
    """What a callback has at hand: the object of a method, what a partial holds, what free names
    are bound to.
    """
    match callback:
        case Bound():
            return [callback.receiver, callback.function]
        case Builtin():
            return [part for part in (callback.wraps, callback.receiver) if part is not None]
        case Object() if callback.cls == "functools.partial":
            return [
                callback.state["func"],
                *callback.state["args"],
                *callback.state["keywords"].values(),
            ]
        case Function():
            return _reached(callback)
    return []


def _open(m: Machine, value: Abstract, opened: dict[int, int], depth: int = 0) -> None:
    """Leaves open what is empty in `value`, and in what it can reach; `opened` says at what depth
    that was done.
    """
    if isinstance(value, Mapping | Sequence):
        _open_container(m, value, depth)
    elif isinstance(value, Instance):
        if depth < MAX_DEPTH:
            _forget_numbers(m, value)
            for part in value.attrs.values():
                if isinstance(part, Mapping | Sequence):
                    _open_container(m, part, depth + 1)
    elif depth < MAX_DEPTH and is_callback(value) and opened.get(id(value), MAX_DEPTH) > depth:
        opened[id(value)] = depth
        for part in within(value):
            if type(part) in _REACHING:
                _open(m, part, opened, depth + 1)


def _forget_numbers(m: Machine, instance: Instance) -> None:
    """Makes unknown the numbers of an object that methods change which code out of view can call.

    `meter.add(loss)` can be called by `model(x, meter)`; a method that is being run is not called
    anew.
    """
    if any(frame.locals.get("self") is instance for frame in m.frames):
        return
    for name in _changed(instance.cls) & instance.attrs.keys():
        number = instance.attrs[name]
        if isinstance(number, Const) and type(number.value) in (int, float):
            instance.attrs[name] = Unknown(m.symbol(instance).derive(("attribute", name), name))


@memo.of_programs
def _changed(cls: Class) -> frozenset[str]:
    """The attributes that methods of a class write, after it is made."""
    lineage = [each for each in cls.lineage() if isinstance(each, Class)]
    methods = [
        node.source for each in lineage for node in each.node.body if isinstance(node, ir.Function)
    ]
    return fields.elsewhere("__init__", methods).written


def _open_container(m: Machine, container: Mapping | Sequence, depth: int) -> None:
    if isinstance(container, Sequence) and container.kind not in _FILLED:
        return
    if not container.items:
        container.open = True
        # what was read from it before says nothing of what is in it now
        m.symbols.pop(id(container), None)
        return
    for item in container.items.values() if isinstance(container, Mapping) else container.items:
        if isinstance(item, Mapping | Sequence | Instance) and depth < MAX_DEPTH:
            _open(m, item, {}, depth + 1)


def _reached(function: Function) -> list[Abstract]:
    """What the free names of a function are bound to."""
    found: list[Abstract] = []
    for name in _names(function.node):
        frame: Frame | None = function.scope
        while frame is not None:
            bound = frame.locals.get(name)
            if bound is not None:
                found.append(bound)
                break
            frame = frame.parent
    return found


@memo.of_programs
def _names(function: ir.Function) -> tuple[str, ...]:
    """The names that stand in a function."""
    return tuple(sorted({name for found in effects.of([function.source]) for name in found.names}))
