"""Expressions: literals, attributes, calls, displays, functions, `yield`, and unknown syntax."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.gaps import BACKWARDS
from gradlint.interpret.iteration import is_endless
from gradlint.interpret.keys import hashable
from gradlint.interpret.storage import assign
from gradlint.interpret.subscripts import item
from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    MOST_ITEMS,
    NONE,
    Abstract,
    Bound,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Sequence,
    Unknown,
    is_small,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.ir.lower import body
from gradlint.ir.walk import within
from gradlint.tape import GLANCES

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_MOST_WRAPPERS = 8  # of one function that are looked into


@handles(EVALUATE, ir.Literal)
def literal(m: Machine, node: ir.Literal, frame: Frame) -> Abstract:
    if type(node.value) is int and node.value in m.session.loops.periods.smaller:
        return Const(m.session.loops.periods.smaller[node.value], frame.span(node), node.value)
    if node.cached is None:
        if not is_small(node.value):
            return m.unknown(
                frame.text(node), data=True, type="number" if isinstance(node.value, int) else "str"
            )
        node.cached = Const(node.value, frame.span(node))
    assert isinstance(node.cached, Const)
    return node.cached


@handles(EVALUATE, ir.Attribute)
def attribute(m: Machine, node: ir.Attribute, frame: Frame) -> Abstract:
    if node.name in GLANCES or (node.name == "data" and m.state.get("glance") is node):
        m.state["glance"] = node.target
    target = m.evaluate(node.target, frame)
    if isinstance(target, Instance):  # self.model
        found = target.attrs.get(node.name)
        if found is not None:
            return found
    elif isinstance(target, Unknown) and not node.name.startswith("__"):
        conditions.use(m, target, "AttributeError", frame.span(node))
    return m.attribute(target, node.name, Call(node.name, [], {}, node, frame))


@handles(EVALUATE, ir.Call)
def call(m: Machine, node: ir.Call, frame: Frame) -> Abstract:
    function = m.evaluate(node.function, frame)
    if isinstance(node.function, ir.Attribute) and node.function.name in BACKWARDS:
        m.session.reached.add((frame.code.path, node.at[0]))
    if isinstance(function, Unknown):
        conditions.use(m, function, "TypeError", frame.span(node))
    args, is_open = _arguments(m, node.args, frame, function, node.kwargs)
    kwargs: dict[str, Abstract] = {}
    rest: Abstract | None = None
    for key, value_node in node.kwargs:
        value = m.evaluate(value_node, frame)
        if key is not None:
            kwargs[key] = value
        elif isinstance(value, Mapping):
            kwargs.update({str(k): v for k, v in value.items.items()})
            rest = value if value.open else rest
        else:
            rest = value
    text = frame.text(node.function)
    return m.call(
        function, Call(text, args, kwargs, node, frame, is_open or rest is not None, rest=rest)
    )


def _arguments(
    m: Machine, nodes: list[ir.Node], frame: Frame,
    function: Abstract | None = None, named: Many[tuple[str | None, ir.Node]] = (),
) -> tuple[list[Abstract], bool]:  # fmt: skip
    values: list[Abstract] = []
    is_open = False
    for position, node in enumerate(nodes):
        if type(node) is not ir.Star:
            values.append(m.evaluate(node, frame))
        else:
            value = m.evaluate(node.value, frame)
            if isinstance(value, Sequence) and not value.open:
                values.extend(value.items)
            elif isinstance(value, Unknown) or (
                isinstance(value, Sequence | Mapping) and value.open
            ):
                values.extend(value.items if isinstance(value, Sequence) else [])
                following = nodes[position + 1 :]
                if (
                    following
                    and function is not None
                    and not any(isinstance(other, ir.Star) for other in following)
                ):
                    left = (
                        _wanted(m, function, {name for name, _ in named})
                        - len(values)
                        - len(following)
                    )
                    values.extend(
                        item(m, value, Const(number), node, frame) for number in range(left)
                    )
                is_open = True
            else:
                values.extend(m.items(value, Call("*", [], {}, node, frame)))
    return values, is_open


def _wanted(
    m: Machine, function: Abstract, named: Collection[str | None], depth: int = _MOST_WRAPPERS
) -> int:
    """How many arguments a function of the program needs by position: `f(x, *batch, optimizer)`
    fills them all.
    """
    bound = 1
    match function:
        case Function():
            own: Abstract | None = function
            bound = 0
        case Bound():
            own = function.function
        case Class():
            own = m.session.member_of(function, "__init__")
        case Instance():
            own = m.session.member_of(function.cls, "forward") or m.session.member_of(
                function.cls, "__call__"
            )
        case _:
            own = None
    if not isinstance(own, Function):
        return 0
    rest = next((each.name for each in own.node.parameters if each.kind == "args"), None)
    if rest is not None:
        before, wrapped = _handed_on(own, rest) if depth else (0, None)
        return 0 if wrapped is None else max(_wanted(m, wrapped, named, depth - 1) - before, 0)
    taken = [
        parameter for parameter in own.node.parameters[bound:] if parameter.kind == "positional"
    ]
    return sum(parameter.default is None and parameter.name not in named for parameter in taken)


def _handed_on(function: Function, rest: str) -> tuple[int, Abstract | None]:
    """What a wrapper hands its `*args` on to, a function that it is a closure over, and how many
    arguments stand before them: `return function(*args, **kwargs)`.
    """
    for node in within(body(function.node)):
        if not isinstance(node, ir.Call) or not isinstance(node.function, ir.Name):
            continue
        for before, each in enumerate(node.args):
            if isinstance(each, ir.Star) and isinstance(each.value, ir.Name):
                frame: Frame | None = function.scope if each.value.id == rest else None
                while frame is not None and node.function.id not in frame.locals:
                    frame = frame.parent
                return before, None if frame is None else frame.locals[node.function.id]
    return 0, None


@handles(EVALUATE, ir.Display)
def display(m: Machine, node: ir.Display, frame: Frame) -> Abstract:
    items, is_open = _arguments(m, node.items[:MOST_ITEMS], frame)
    return Sequence(node.kind, items, is_open or len(node.items) > MOST_ITEMS, at=frame.span(node))


@handles(EVALUATE, ir.DictDisplay)
def dict_display(m: Machine, node: ir.DictDisplay, frame: Frame) -> Abstract:
    made = Mapping({}, len(node.items) > MOST_ITEMS, at=frame.span(node))
    for key_node, value_node in node.items[:MOST_ITEMS]:
        value = m.evaluate(value_node, frame)
        if key_node is None:
            if isinstance(value, Mapping):
                made.items.update(value.items)
                made.open = made.open or value.open
            else:
                made.open = True
            continue
        key = hashable(m.evaluate(key_node, frame))
        if key is None:
            made.open = True
        else:
            made.items[key] = value
    return made


@handles(EVALUATE, ir.Unlisted)
def unlisted(m: Machine, node: ir.Unlisted, frame: Frame) -> Abstract:
    """Syntax that is not known: what stands in it is computed, and what that gives is unknown."""
    for part in node.parts:
        m.evaluate(part, frame)
    m.gap("syntax", frame.span(node), node.kind)
    return m.unknown(frame.text(node))


@handles(EVALUATE, ir.Walrus)
def walrus(m: Machine, node: ir.Walrus, frame: Frame) -> Abstract:
    value = m.evaluate(node.value, frame)
    assign(m, node.target, value, frame)
    return value


@handles(EVALUATE, ir.Yield)
def yield_(m: Machine, node: ir.Yield, frame: Frame) -> Abstract:
    value = NONE if node.value is None else m.evaluate(node.value, frame)
    scope: Frame | None = frame
    while scope is not None and scope.on_yield is None:
        scope = scope.parent
    if scope is None or scope.on_yield is None:
        return m.unknown("yield", data=True)
    if not node.delegates:
        return scope.on_yield(value)
    hand_on = scope.on_yield

    def visit(item: Abstract) -> bool:
        hand_on(item)
        return False

    m.iterate(value, visit, Call("yield from", [], {}, node, frame))
    scope.is_endless = scope.is_endless or is_endless(value)
    return m.unknown("yield from")  # what the generator returns


@handles(EVALUATE, ir.Function)
def function(m: Machine, node: ir.Function, frame: Frame) -> Abstract:
    defaults = {
        p.name: m.evaluate(p.default, frame) for p in node.parameters if p.default is not None
    }
    scope = frame
    while scope.is_class and scope.parent is not None:
        scope = scope.parent
    return Function(node, scope, defaults)


@handles(EVALUATE, ir.Star)
def star(m: Machine, node: ir.Star, frame: Frame) -> Abstract:
    return m.evaluate(node.value, frame)
