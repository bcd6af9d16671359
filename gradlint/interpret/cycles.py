"""What comes round: counters that begin again where they have come to a number, and machines of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.expressions import hashable, lookup_name, state_of
from gradlint.interpret.machine import Frame
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
from gradlint.ir.lower import body

if TYPE_CHECKING:
    from gradlint.interpret.counters import Met
    from gradlint.interpret.machine import Branch, Loop, Machine

TRAINING = frozenset(
    ["backward", "step", "zero_grad", "manual_backward", "training_step", "training_step_end", "accumulate", "unscale_"]
)
MAX_DEPTH = 3  # calls within calls that are looked through for what sets a counter back


def come_round(m: Machine, branch: Branch, node: ir.If, frame: Frame) -> None:
    """Has the rounds of counters counted that were held against a number, where a side of the branch sets them back."""
    block = [*node.then, *node.otherwise, *node.behind]
    for met in branch.met:
        if met.is_near or _is_set_back(m, met, block, frame, 0):
            if m.session.counting(m) is None and _trains(m, block, frame, 0):
                m.session.leads_to_training(m)
            m.session.comes_to(m, met.place, met.period, met.numbers)


def is_on_the_way(m: Machine, loop: Loop) -> bool:
    """Whether a loop runs a machine that has not come back to the state that it was first asked for in its rounds."""
    return any(state_of(_held(m, node, frame)) not in (first, None) for first, node, frame in loop.states.values())


def _trains(m: Machine, block: list[ir.Node], frame: Frame, depth: int) -> bool:
    """Whether these statements hold a part of a training step, in loops of theirs or in functions that they call."""
    for node in ir.within(block):
        if isinstance(node, ir.Call):
            name = node.function.name if isinstance(node.function, ir.Attribute) else ""
            called = _held(m, node.function, frame) if depth < MAX_DEPTH and name not in TRAINING else None
            function = called.function if isinstance(called, Bound) else called
            if name in TRAINING or (isinstance(function, Function) and _trains_in(m, function, depth)):
                return True
    return False


def _trains_in(m: Machine, function: Function, depth: int) -> bool:
    return _trains(m, body(function.node), Frame(function.node.code, {}, function.scope, function=function), depth + 1)


def _is_set_back(m: Machine, met: Met, block: list[ir.Node], frame: Frame, depth: int) -> bool:
    """Whether these statements, or those of a function that they call, let what was counted begin again."""
    return any(_begins_again(m, met, node, frame, depth) for node in ir.within(block))


def _begins_again(m: Machine, met: Met, node: ir.Node, frame: Frame, depth: int) -> bool:
    match node:
        case ir.Assign(value=ir.Display(items=[])):
            return met.is_length and any(_is_met(m, met, target, frame) for target in node.targets)
        case ir.Assign():
            goes_on = any(_is_met(m, met, part, frame) for part in ir.within([node.value]))
            return not goes_on and any(_is_met(m, met, target, frame) for target in node.targets)
        case ir.Augment(op="+" | "-"):
            return (node.op == "-") == met.counts_up and _is_met(m, met, node.target, frame)
        case ir.Delete(targets=[ir.Subscript(target=target, index=ir.Slice(lower=None, upper=None))]):
            return met.is_length and _is_met(m, met, target, frame)
        case ir.Call(function=ir.Attribute(target=target, name="clear")) if met.is_length:
            return _is_met(m, met, target, frame)
        case ir.Call() if depth < MAX_DEPTH:
            return _is_set_back_by(m, met, node, frame, depth)
    return False


def _is_met(m: Machine, met: Met, node: ir.Node, frame: Frame) -> bool:
    """Whether it is what holds the counter: by identity, whatever it is called there."""
    held = _held(m, node, frame)
    return held is not None and (m.symbol(held) is met.counter if met.is_length else held is met.counter)


def _is_set_back_by(m: Machine, met: Met, call: ir.Call, frame: Frame, depth: int) -> bool:
    given = [_held(m, arg, frame) for arg in call.args]
    function = _held(m, call.function, frame)
    if isinstance(function, Bound):
        given.insert(0, function.receiver)
        function = function.function
    if not isinstance(function, Function):
        return False
    names = [parameter.name for parameter in function.node.parameters if parameter.kind == "positional"]
    known = {name: value for name, value in zip(names, given, strict=False) if value is not None}
    known |= {key: value for key, node in call.kwargs if key and (value := _held(m, node, frame)) is not None}
    inner = Frame(function.node.code, known, function.scope, function=function)
    return _is_set_back(m, met, body(function.node), inner, depth + 1)


def _held(m: Machine, node: ir.Node, frame: Frame) -> Abstract | None:
    """What a name, an attribute or an item of a dict is at this moment; nothing is run for it."""
    match node:
        case ir.Literal():
            return m.evaluate(node, frame)
        case ir.Name(id=name):
            return lookup_name(m, name, frame)
        case ir.Attribute(target=target, name=name):
            owner = _held(m, target, frame)
            return None if owner is None else _attribute(m, owner, name)
        case ir.Subscript(target=target, index=ir.Literal(value=key)):
            owner = _held(m, target, frame)
            return owner.items.get(hashable(Const(key))) if isinstance(owner, Mapping) else None
    return None


def _attribute(m: Machine, owner: Abstract, name: str) -> Abstract | None:
    match owner:
        case Instance():
            found = owner.attrs.get(name) or m.session.member_of(owner.cls, name)
            return Bound(found, owner) if isinstance(found, Function) and name not in owner.attrs else found
        case Class():
            return m.session.member_of(owner, name)
        case Package():
            return owner.scope.locals.get(name)
        case Object() | Function():
            return owner.attrs.get(name)
        case Unknown():
            return m.override(owner.symbol, "attribute", name)
    return None
