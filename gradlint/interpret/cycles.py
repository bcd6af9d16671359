"""Cycles of loops: counters that are reset when they reach a literal, and state machines."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint.interpret.comparisons import state_of
from gradlint.interpret.keys import hashable
from gradlint.interpret.names import lookup_name
from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Package,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.ir.walk import path_of
from gradlint.source import effects, reach
from gradlint.source.effects import How
from gradlint.source.reach import Path

if TYPE_CHECKING:
    from gradlint.interpret.counters import Met
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Branch

MAX_DEPTH = 3  # calls within calls that are looked through for what sets a counter back


def come_round(m: Machine, branch: Branch, node: ir.If, frame: Frame) -> None:
    """Registers the period of each counter that this branch compares with a literal and resets on
    one of its sides.
    """
    block = [*node.source.body, *node.source.orelse, *node.behind]
    for met in branch.met:
        if met.is_near or _is_set_back(m, met, block, frame, 0):
            if m.session.loops.counting(m) is None and trains(m, block, frame):
                m.session.loops.leads_to_training(m)
            m.session.loops.comes_to(m, met.place, met.period, met.numbers)


def is_on_the_way(m: Machine, loop: Loop) -> bool:
    """Whether a loop runs a state machine that has not returned to the state in which the loop
    first tested it.
    """
    return any(
        state_of(_held(m, path_of(node), frame)) not in (first, None)
        for first, node, frame in loop.states.values()
    )


def trains(m: Machine, block: Iterable[ast.AST], frame: Frame, depth: int = 0) -> bool:
    """Whether these statements hold a part of a training step, in loops of theirs or in functions
    that they call.
    """
    return any(
        found.trains
        or any(_trains_in(m, _called(m, call, frame), depth) for call in found.does.calls)
        for found in effects.of(block, functions=False)
    )


def _trains_in(m: Machine, function: Function | None, depth: int) -> bool:
    if function is None or depth >= MAX_DEPTH:
        return False
    inner = Frame(function.node.code, {}, function.scope, function=function)
    return trains(m, effects.body(function.node.source), inner, depth + 1)


def _is_set_back(m: Machine, met: Met, block: Iterable[ast.AST], frame: Frame, depth: int) -> bool:
    """Whether these statements, or those of a function that they call, let what was counted begin
    again.
    """
    begins_again = How.EMPTIED if met.is_length else How.LESS if met.counts_up else How.MORE
    return any(
        any(
            how is begins_again and _is_met(m, met, path, frame) for path, how in found.does.written
        )
        or any(
            _is_met(m, met, path, frame) and not _goes_on(m, met, value, frame)
            for path, value in found.does.bound
        )
        or (
            depth < MAX_DEPTH
            and any(_is_set_back_by(m, met, call, frame, depth) for call in found.does.calls)
        )
        for found in effects.of(block, functions=False)
    )


def _goes_on(m: Machine, met: Met, value: ast.expr, frame: Frame) -> bool:
    """Whether a value is made of what holds the counter: `count = count + 1`."""
    return any(_is_met(m, met, path, frame) for path in reach.paths_in(value))


def _is_met(m: Machine, met: Met, path: Path, frame: Frame) -> bool:
    """Whether it is what holds the counter: by identity, whatever it is called there."""
    held = _held(m, path, frame)
    return held is not None and (
        m.symbol(held) is met.counter if met.is_length else held is met.counter
    )


def _is_set_back_by(m: Machine, met: Met, call: effects.Call, frame: Frame, depth: int) -> bool:
    function = _called(m, call, frame)
    if function is None:
        return False
    held = _held(m, call.path, frame)
    given: list[Abstract | None] = [held.receiver] if isinstance(held, Bound) else []
    given += [_held(m, path, frame) for path in call.args]
    names = [
        parameter.name for parameter in function.node.parameters if parameter.kind == "positional"
    ]
    known = {name: value for name, value in zip(names, given, strict=False) if value is not None}
    known |= {
        key: value for key, path in call.keywords if (value := _held(m, path, frame)) is not None
    }
    inner = Frame(function.node.code, known, function.scope, function=function)
    return _is_set_back(m, met, effects.body(function.node.source), inner, depth + 1)


def _called(m: Machine, call: effects.Call, frame: Frame) -> Function | None:
    """The function of the program that a call runs."""
    held = _held(m, call.path, frame)
    function = held.function if isinstance(held, Bound) else held
    return function if isinstance(function, Function) else None


def _held(m: Machine, path: Path, frame: Frame) -> Abstract | None:
    """What a name, an attribute or an item of a dict is at this moment; nothing is run for it."""
    if not path or path[0] in (reach.SUPER, reach.TYPE):
        return None
    held: Abstract | None = lookup_name(m, str(path[0]), frame)
    for part in path[1:]:
        match held, part:
            case Mapping(), (key,):
                held = held.items.get(hashable(Const(key)))
            case Abstract(), str(name):
                held = _attribute(m, held, name)
            case _:
                return None
    return held


def _attribute(m: Machine, owner: Abstract, name: str) -> Abstract | None:
    match owner:
        case Instance():
            found = owner.attrs.get(name) or m.session.member_of(owner.cls, name)
            return (
                Bound(found, owner)
                if isinstance(found, Function) and name not in owner.attrs
                else found
            )
        case Class():
            return m.session.member_of(owner, name)
        case Package():
            return owner.scope.locals.get(name)
        case Object() | Function():
            return owner.attrs.get(name)
        case Unknown():
            return m.override(owner.symbol, "attribute", name)
    return None
