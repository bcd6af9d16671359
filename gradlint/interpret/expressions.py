"""Expressions: what each gives."""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
from collections.abc import Callable, Collection, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint.interpret import ahead, chances, conditions, counters, filters, kept, shares, tensors
from gradlint.interpret.gaps import BACKWARDS
from gradlint.interpret.machine import EVALUATE, Raised, handles
from gradlint.interpret.registry import find_method, is_a, tell
from gradlint.interpret.values import (
    MOST_ITEMS,
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
    Range,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    is_small,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup
from gradlint.source import effects
from gradlint.source.effects import How
from gradlint.tape import COMPUTED_ANEW, GLANCES, DType, Kind, Storage, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Loop, Machine

OPERATIONS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder",
    "**": "pow", "@": "matmul",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
}  # fmt: skip
_BITWISE = frozenset("&|^")
ARITHMETIC = frozenset(f"torch.{name}" for name in OPERATIONS.values())
MAX_DEPTH = 4  # of arithmetic that is looked through for a tensor
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "**": operator.pow,
}  # fmt: skip
SPECIAL = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "@": "__matmul__",
    "//": "__floordiv__",
    "%": "__mod__", "**": "__pow__", "&": "__and__", "|": "__or__", "^": "__xor__",
    "<<": "__lshift__",
    ">>": "__rshift__",
}  # fmt: skip
_WIDTH = re.compile(r"[0-9]{4}|\*")
_CONVERSIONS: dict[str, Callable[[object], object]] = {
    "": lambda value: value,
    "s": str,
    "r": repr,
    "a": ascii,
}
_WRITTEN = (str, int, float, bool, type(None))
_PLAIN = ("number", "bool", "str", "array", "object", "module")
MOST_PARTS = 200  # of a tuple that is a key, with all that is in it
MOST_PICKED = 6  # of the functions and classes that an unknown key may find
MAX_CONSTANT = 1 << 20  # larger results of constant arithmetic are not computed


@handles(EVALUATE, ir.Literal)
def literal(m: Machine, node: ir.Literal, frame: Frame) -> Abstract:
    if type(node.value) is int and node.value in m.session.periods.smaller:
        return Const(m.session.periods.smaller[node.value], frame.span(node), node.value)
    if node.cached is None:
        if not is_small(node.value):
            return m.unknown(
                frame.text(node), data=True, type="number" if isinstance(node.value, int) else "str"
            )
        node.cached = Const(node.value, frame.span(node))
    assert isinstance(node.cached, Const)
    return node.cached


@handles(EVALUATE, ir.Name)
def name(m: Machine, node: ir.Name, frame: Frame) -> Abstract:
    if frame.source is None:  # most are local, and so nothing to be bound or asked for
        found = frame.locals.get(node.id)
        if found is not None:
            return found
    return lookup_name(m, node.id, frame)


def lookup_name(m: Machine, name: str, frame: Frame) -> Abstract:
    """What a name is bound to: in this scope, those around it, the module (which is executed as far
    as needed).
    """
    scope: Frame | None = frame
    while scope is not None:
        bound = scope.locals.get(name)
        if bound is not None and (scope is frame or not scope.is_class):
            if scope.source is not None:
                m.session.program.ask(scope, name)
            return bound
        if scope.parent is None:
            found = m.session.program.bind(m, scope, name)
            if found is not None:
                return found
        scope = scope.parent
    return (
        Lib(f"builtins.{name}")
        if m.session.is_builtin(name)
        else m.session.missing(frame.module, name)
    )


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


def _wanted(m: Machine, function: Abstract, named: Collection[str | None]) -> int:
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
    if not isinstance(own, Function) or any(
        parameter.kind == "args" for parameter in own.node.parameters
    ):
        return 0
    taken = [
        parameter for parameter in own.node.parameters[bound:] if parameter.kind == "positional"
    ]
    return sum(parameter.default is None and parameter.name not in named for parameter in taken)


@handles(EVALUATE, ir.Binary)
def binary_node(m: Machine, node: ir.Binary, frame: Frame) -> Abstract:
    left = m.evaluate(node.left, frame)
    return binary(m, node.op, left, m.evaluate(node.right, frame), node, frame)


def binary(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """`left op right`."""
    number = right
    if op == "%":
        shares.counted(m, number)
    left, right = _counted(m, _concrete(m, left), right), _counted(m, _concrete(m, right), left)
    if op == "%" and isinstance(left, Const) and isinstance(left.value, str | bytes):
        text = _filled(left.value, right)
        return m.unknown(frame.text(node), data=True, type="str") if text is None else Const(text)
    if isinstance(left, Const) and isinstance(right, Const):
        if left.value is None or right.value is None:
            raise Raised(Object("builtins.TypeError", frame.span(node)), frame.span(node))
        if op == "%" and type(left.value) is int:
            m.session.counted(m, right)
        made = _constants(op, left.value, right.value, m, node, frame)
        if op in ("*", "/"):
            _scaled_zero(made, left, right)
        if isinstance(made, Const) and m.loops:
            return ahead.computed(m, op, left, right, counters.computed(op, left, right, made))
        return made
    special = _overloaded(m, op, left, right, node, frame)
    if special is not None:
        return special
    if op not in _BITWISE and _is_of_none(left, right):
        raise Raised(Object("builtins.TypeError", frame.span(node)), frame.span(node))
    if _is_of_tensors(m, op, left, right):
        left, right = (_collated(m, side, node, frame) for side in (left, right))
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if op in _BITWISE:
            _take_for_masks(left, right)
        made = arithmetic(m, op, left, right, node, frame)
        shares.made(m, op, made.node, number)
        return made
    if isinstance(left, Instance) or isinstance(right, Instance):
        return m.unknown(frame.text(node))
    if isinstance(left, Sequence) or isinstance(right, Sequence):
        return _sequences(m, op, left, right, node, frame)
    if isinstance(left, Mapping) and isinstance(right, Mapping) and op == "|":
        return Mapping({**left.items, **right.items}, left.open or right.open)
    if (
        op == "%"
        and isinstance(left, Const)
        and type(left.value) is int
        and isinstance(right, Unknown)
        and m.loops
    ):
        return binary(m, op, left, conditions.window(m, right), node, frame)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        result = _unknown(m, op, left, right, node, frame)
        shares.made(m, op, m.nodes.get(m.symbol(result)), number)
        return result
    return m.unknown(frame.text(node))


def _is_of_none(left: Abstract, right: Abstract) -> bool:
    """Whether one side of an arithmetic operator is None and the other nothing that takes it."""
    return any(
        isinstance(one, Const) and one.value is None and isinstance(other, Tensor | Unknown)
        for one, other in ((left, right), (right, left))
    )


def _is_of_tensors(m: Machine, op: str, left: Abstract, right: Abstract) -> bool:
    """Whether what a loader has put together is surely a tensor where this is done with it: masks
    are joined, or it is scaled by a fraction. A number of it, as a collate function counts, can be
    anything else.
    """
    sides = (left, right)
    if op in _BITWISE:
        return any(_is_collated(m, side) for side in sides)
    is_scaled = any(isinstance(side, Const) and type(side.value) is float for side in sides)
    others = [side for side in sides if not isinstance(side, Const)]
    return (is_scaled or len(others) == len(sides)) and all(
        _is_collated(m, side) for side in others
    )


def _take_for_masks(*sides: Abstract) -> None:
    """What is given to a bitwise operator is of bools or integers, and carries no gradient."""
    for side in sides:
        if isinstance(side, Tensor) and side.node.kind is Kind.UNKNOWN and side.node.assumed:
            side.node.requires_grad, side.node.dtype = False, DType.BOOL


def _counted(m: Machine, value: Abstract, other: Abstract) -> Abstract:
    """A length that is counted with: `len(batches) - 1`."""
    if (
        isinstance(value, Unknown)
        and isinstance(other, Const)
        and type(other.value) is int
        and conditions.is_length(m, value)
    ):
        return conditions.concretise(m, value, conditions.length(m, value))
    return value


def _concrete(m: Machine, value: Abstract) -> Abstract:
    return m.concrete.get(value.symbol, value) if isinstance(value, Unknown) else value


def _is_below(value: Any, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) < limit


def _filled(template: str | bytes, values: Abstract) -> str | None:
    """A template filled with constants, `"layer%d" % i`; none where something is unknown, or a
    width is large.
    """
    items = values.items if isinstance(values, Sequence) else [values]
    given = [item.value for item in items if isinstance(item, Const)]
    if isinstance(template, bytes) or not is_small(template, *given) or _WIDTH.search(template):
        return None
    try:
        return template % tuple(given)
    except (TypeError, ValueError, KeyError):
        return None


def _constants(op: str, left: Any, right: Any, m: Machine, node: ir.Node, frame: Frame) -> Abstract:
    kind = "str" if isinstance(left, str) else "number"
    if (isinstance(left, str | bytes) and op == "*") or not is_small(left, right):
        return m.unknown(frame.text(node), data=True, type="str")
    if op == "**" and not (_is_below(right, 64) and _is_below(left, MAX_CONSTANT)):
        return m.unknown(frame.text(node), data=True, type=kind)
    if op == "<<" and not (isinstance(right, int) and 0 <= right < 64):
        return m.unknown(frame.text(node), data=True, type=kind)
    try:
        return Const(_PYTHON[op](left, right))
    except (TypeError, ValueError, ArithmeticError):
        return m.unknown(frame.text(node), data=True, type=kind)


def _scaled_zero(made: Abstract, left: Const, right: Const) -> None:
    """A zero that is scaled is written where it was: `weight * loss` of a `loss = 0` that nothing
    was added to.
    """
    if isinstance(made, Const) and type(made.value) in (int, float) and made.value == 0:
        made.at = next((side.at for side in (left, right) if side.value == 0), None)


def arithmetic(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Tensor:
    """Arithmetic with a tensor; in reverse (`1 - x`) the tensor is still what the table calls the
    input.
    """
    name = OPERATIONS[op]
    reverse = not isinstance(left, Tensor | Unknown)
    effect = lookup(name, "scalar" if is_scalar(right) and not reverse else "") or lookup(name)
    if reverse and op in ("/", "-", "**", "//"):
        effect = lookup(f"r{name}") or effect
    made = tensors.apply(
        m, f"torch.{name}", [right, left] if reverse else [left, right], node, frame, effect
    )
    made.node.arguments = tensors.given(m, [left, right], {})
    if op == "/":
        made.node.dtype = (
            DType.FLOAT if made.node.dtype in (DType.INTEGER, DType.BOOL) else made.node.dtype
        )
        made.node.factor = _factor(m, right)
        made.node.flags |= {"division"}
        _note_count(m, made.node, right)
    if op == "*":
        made.node.factor = _factor(m, left if isinstance(left, Const | Unknown) else right)
        made.node.flags |= {"product"}
    _scalar_constant(op, left, right, made)
    return made


def _note_count(m: Machine, quotient: Value, divisor: Abstract) -> None:
    """Writes down whether a count that something with gradient is divided by is ever zero, by what
    is seen.
    """
    if isinstance(divisor, Tensor) and quotient.requires_grad and not divisor.node.requires_grad:
        chances.note(m, quotient, chances.of_none(divisor.node))


def _scalar_constant(op: str, left: Abstract, right: Abstract, made: Tensor) -> None:
    """Keeps the value of constant tensors through arithmetic: `if total > 0` on what no batch added
    to is decided.
    """
    numbers = []
    for side in (left, right):
        number = (
            side.value
            if isinstance(side, Const)
            else side.node.number
            if isinstance(side, Tensor) and not side.node.inputs
            else None
        )
        numbers.append(number)
    if (
        op in ("+", "-", "*")
        and all(isinstance(n, int | float) for n in numbers)
        and not made.node.requires_grad
    ):
        made.node.number = _PYTHON[op](*numbers)


def _factor(m: Machine, value: Abstract) -> object:
    """What identifies a number that a tensor is multiplied by or divided by."""
    return (
        value.value
        if isinstance(value, Const)
        else m.symbol(value)
        if isinstance(value, Unknown)
        else None
    )


def is_scalar(value: Abstract) -> bool:
    """Whether an operand is a Python number, which an operation saves nothing of."""
    return isinstance(value, Const) or (
        isinstance(value, Unknown) and value.type in ("number", "bool")
    )


def _overloaded(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract | None:
    """`__add__` and its like of a class of the program, `__radd__` where the left side knows
    nothing of the right.
    """
    name = SPECIAL.get(op)
    for owner, other, method_name in (
        (left, right, name),
        (right, left, f"__r{name[2:]}" if name else None),
    ):
        if not isinstance(owner, Instance) or method_name is None:
            continue
        if not isinstance(other, Tensor) or m.session.member_of(owner.cls, method_name):
            at = Call(op, [other], {}, node, frame)
            method = m.attribute(owner, method_name, at)
            if not isinstance(method, Unknown):
                return m.call(method, at)
    return None


_SETS = {"-": "difference", "&": "intersection", "|": "union", "^": "symmetric_difference"}


def _sequences(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    if (
        isinstance(left, Sequence) and isinstance(right, Sequence | Mapping) and op in _SETS
    ):  # keys are a list here
        handler = find_method("set", _SETS[op])
        assert handler is not None
        return handler(m, left, Call(op, [right], {}, node, frame))
    if isinstance(left, Sequence) and isinstance(right, Sequence) and op == "+":
        return Sequence(
            left.kind,
            [*left.items, *right.items],
            left.open or right.open,
            left.rest or right.rest,
            at=frame.span(node),
        )
    from gradlint.interpret.iteration import shorten

    sequence, times = (left, right) if isinstance(left, Sequence) else (right, left)
    if op == "*" and isinstance(sequence, Sequence):
        if (
            isinstance(times, Const)
            and isinstance(times.value, int)
            and times.value * len(sequence.items) <= MOST_ITEMS
        ):
            items = sequence.items * times.value
            return shorten(
                m, Sequence(sequence.kind, items, sequence.open, sequence.rest, at=frame.span(node))
            )
        return Sequence(
            sequence.kind,
            list(sequence.items),
            True,
            sequence.items[0] if sequence.items else None,
            at=frame.span(node),
        )
    if op == "-" and isinstance(left, Sequence):
        return Sequence(left.kind, list(left.items), True, at=frame.span(node))
    if isinstance(left, Sequence) and op == "+":
        return Sequence(left.kind, list(left.items), True, at=frame.span(node))
    return m.unknown(frame.text(node), data=True)


def _unknown(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """Arithmetic on something unknown: a number where both sides are, else perhaps a tensor."""
    base, other = (left, right) if isinstance(left, Unknown) else (right, left)
    assert isinstance(base, Unknown)
    operand = (
        other.value
        if isinstance(other, Const) and isinstance(other.value, int | float | str)
        else m.symbol(other)
    )
    symbol = base.symbol.derive((op, operand, base is left), frame.text(node))
    if all(_is_plain(side) for side in (left, right)):
        kind = (
            "str" if "str" in (getattr(left, "type", ""), getattr(right, "type", "")) else "number"
        )
        if any(getattr(side, "type", "") == "array" for side in (left, right)):
            kind = "array"
        return Unknown(
            symbol, data=True, origin=_of_numbers(m, op, left, right, node, frame), type=kind
        )
    if (
        base.data
        and (not isinstance(other, Unknown) or other.data)
        and not isinstance(other, Instance | Object)
    ):
        return Unknown(
            symbol, data=True, origin=tensors.python(m, "python", [left, right], node, frame)
        )
    # args.height // 2 ** encoder.levels
    is_of_sizes = op == "//" or (op == "**" and isinstance(left, Const))
    if is_of_sizes and not any(_is_computed(m, side) for side in (left, right)):
        return Unknown(symbol, data=True, type="number")
    effect = lookup(OPERATIONS[op])
    made = tensors.apply(m, f"torch.{OPERATIONS[op]}", [left, right], node, frame, effect)
    made.node.saves = ()
    result = Unknown(symbol)
    m.nodes[result.symbol] = made.node
    return result


def _of_numbers(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Value | None:
    """What was copied out of tensors and is reckoned with, if one of two numbers was."""
    made = tensors.python(m, "python", [left, right], node, frame)
    if made is not None and op == "/":
        sides = (
            side.value if isinstance(side, Const) else getattr(side, "origin", None)
            for side in (left, right)
        )
        made.arguments = tuple(
            (place, side) for place, side in enumerate(sides) if side is not None
        )
        made.flags |= {"quotient"}
    return made


def _is_computed(m: Machine, value: Abstract) -> bool:
    """Whether something speaks for a tensor: it was called for, or used as one."""
    if not isinstance(value, Unknown) or value.symbol in m.tensors:
        return isinstance(value, Unknown)
    made = m.nodes.get(value.symbol)
    return made is not None and _comes_from_tensors(made)


def _comes_from_tensors(made: Value, depth: int = 0) -> bool:
    """Whether it is more than an attribute of a model, or what is reckoned with such:
    `model.config.patch_size * 2`.
    """
    if made.op == "part" and made.inputs:
        whole = made.inputs[0]
        return not _is_model(whole) and _comes_from_tensors(whole, depth)
    if made.op in ARITHMETIC and depth < MAX_DEPTH:
        return any(_comes_from_tensors(source, depth + 1) for source in made.inputs)
    return made.kind is not Kind.PARAMETER


def _is_model(value: Value, depth: int = 0) -> bool:
    """Whether it is a model, or what a call that was given nothing but models makes of them."""
    if value.op != "call" or not value.inputs or depth == MAX_DEPTH:
        return all(source.kind is Kind.PARAMETER for source in value.inputs or (value,))
    return all(
        source.kind is Kind.PARAMETER or _is_model(source, depth + 1) for source in value.inputs
    )


def _is_plain(value: Abstract) -> bool:
    return isinstance(value, Const) or (
        isinstance(value, Unknown) and (value.type in _PLAIN or value.origin is not None)
    )


@handles(EVALUATE, ir.Unary)
def unary(m: Machine, node: ir.Unary, frame: Frame) -> Abstract:
    operand = _concrete(m, m.evaluate(node.operand, frame))
    if node.op == "not":
        return conditions.negate(m, operand, node, frame)
    if node.op == "~":
        operand = _collated(m, operand, node, frame)
    if isinstance(operand, Const) and isinstance(operand.value, int | float):
        value = operand.value
        return Const(
            -value
            if node.op == "-"
            else value
            if node.op == "+" or isinstance(value, float)
            else ~value
        )
    if isinstance(operand, Tensor):
        if node.op == "+":
            return operand  # the very tensor
        op = {"-": "neg", "~": "bitwise_not"}[node.op]
        return tensors.apply(m, f"torch.{op}", [operand], node, frame, lookup(op))
    if isinstance(operand, Unknown):
        return _unknown(m, "*", operand, Const(-1), node, frame)
    return m.unknown(frame.text(node))


@handles(EVALUATE, ir.Boolean)
def boolean(m: Machine, node: ir.Boolean, frame: Frame) -> Abstract:
    """`and` and `or` give an operand; which one can be a branch of its own."""
    stops_at = node.op == "or"
    # if kind == "b" and size is None: raise …
    default = not stops_at and m.branch.refused is not node
    value: Abstract = NONE
    for position, part in enumerate(node.values):
        value = m.evaluate(part, frame)
        if position == len(node.values) - 1:
            return value
        said = conditions.asked(m, value, part)
        known = conditions.truth_at(m, said, part)
        if known is None:
            known = conditions.choose(m, said, part, frame, default=default)
        if not stops_at and isinstance(value, Object) and find_method(value.cls, "__with__"):
            tell("discarded", m, value, part, frame)  # with no_grad() and autocast("cpu"): …
        if known == stops_at:
            return (
                Const(stops_at) if isinstance(value, Unknown) and value.test is not None else value
            )
    return value


@handles(EVALUATE, ir.Compare)
def compare(m: Machine, node: ir.Compare, frame: Frame) -> Abstract:
    if node.ops[0] in ("is", "is not"):
        m.state["glance"] = node.left
    left = m.evaluate(node.left, frame)
    if (
        m.loops
        and isinstance(m.loops[-1].node, ir.While)
        and isinstance(node.left, ir.Name | ir.Attribute)
    ):
        _note_state(m.loops[-1], left, node.left, frame)
    result: Abstract = NONE
    for op, right_node in zip(node.ops, node.rights, strict=True):
        right = m.evaluate(right_node, frame)
        result = compare_values(m, op, left, right, node, frame)
        if len(node.ops) > 1 and not conditions.decide(m, result, right_node, frame):
            return result
        left = right
    return result


def _note_state(loop: Loop, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """Notes the state that a machine is asked for, and where that stands: `if state == "load"`."""
    state = state_of(value)
    if state is not None:
        first, *_ = loop.states.get(id(node), (state,))
        loop.states[id(node)] = first, node, frame


def state_of(value: Abstract | None) -> object:
    """What tells a state of a machine from others: a word, or a member of an enum by its
    identity.
    """
    if isinstance(value, Const):
        return value.value if isinstance(value.value, str) else None
    return id(value) if isinstance(value, Instance) and "member" in value.state else None


def _collated(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """What a loader has put together of samples, or a part is given as a tensor, as the tensor that
    it is.
    """
    return tensors.as_tensor(m, value, node, frame) if _is_collated(m, value) else value


def _is_collated(m: Machine, value: Abstract) -> bool:
    if (
        not isinstance(value, Unknown)
        or value.type not in ("", "tensor")
        or value.origin is not None
    ):
        return False
    is_given = bool(m.session.contract) and value.type == "tensor"
    return is_given or conditions.is_collated(m.symbol(value))


def compare_values(
    m: Machine, op: str, left: Abstract, right: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """`left op right`: elementwise where one is a tensor."""
    text = frame.text(node)
    if op in _COMPARISONS:
        left, right = (_collated(m, side, node, frame) for side in (left, right))
    if op in _COMPARISONS and (isinstance(left, Tensor) or isinstance(right, Tensor)):
        plain = [conditions.known_number(side) for side in (left, right)]
        if None not in plain:
            return conditions.compare(m, op, left, right, text, node)
        made = tensors.apply(
            m, f"torch.{_COMPARISONS[op]}", [left, right], node, frame, lookup(_COMPARISONS[op])
        )
        made.node.dtype = DType.BOOL
        conditions.name_comparison(m, made, op, left, right, text)
        return made
    result = conditions.compare(m, op, left, right, text, node)
    if (
        op in _COMPARISONS
        and isinstance(result, Unknown)
        and any(isinstance(side, Unknown) and side.type == "array" for side in (left, right))
    ):
        result.type, result.origin = (
            "array",
            tensors.python(m, "python", [left, right], node, frame),
        )
    return result


@handles(EVALUATE, ir.Conditional)
def conditional(m: Machine, node: ir.Conditional, frame: Frame) -> Abstract:
    asked = conditions.question(m, node.test, frame)
    known = conditions.truth_at(m, asked, node.test)
    taken = conditions.choose(m, asked, node.test, frame, whole=node) if known is None else known
    return m.evaluate(node.then if taken else node.otherwise, frame)


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


def hashable(value: Abstract) -> object | None:
    """The key that a value is in a dict: a constant itself, a known object its identity; None where
    unknown.
    """
    part = tensors.bounds(value)
    if part is not None:
        return ("slice", part.start, part.stop, part.step)
    if isinstance(value, Const):
        return value.value if value.value is not None else ("None",)
    if isinstance(value, Sequence) and value.kind == "tuple" and not value.open:
        if len(list(itertools.islice(_leaves(value), MOST_PARTS + 1))) > MOST_PARTS:
            return None
        parts = tuple(hashable(item) for item in value.items)
        return None if None in parts else parts
    if isinstance(value, Unknown | Sequence | Mapping):
        return None
    is_computed = isinstance(value, Tensor) and value.node.kind is not Kind.PARAMETER
    # a parameter is itself for as long as it lives: `states[p]`
    return None if is_computed else value


def key_of(m: Machine, index: Abstract) -> object:
    """Where a dict keeps what is put under `index`: one that is not known is the same key as long
    as it is the same.
    """
    key = hashable(index)
    return ("unknown", m.symbol(index)) if key is None else key


def _leaves(value: Abstract) -> Iterator[Abstract]:
    """What stands in a tuple and in the tuples in it."""
    yield value
    if isinstance(value, Sequence):
        for item in value.items:
            yield from _leaves(item)


@handles(EVALUATE, ir.Comprehension)
def comprehension(m: Machine, node: ir.Comprehension, frame: Frame) -> Abstract:
    from gradlint.interpret.iteration import shorten
    from gradlint.interpret.machine import Frame as Scope

    scope = Scope(frame.code, {}, frame, function=frame.function)
    if frame.is_class:
        scope.locals.update(frame.locals)
    items: list[Abstract] = []
    mapping = Mapping({}, at=frame.span(node))
    sinks = len(m.sinks)

    def finish() -> None:
        if node.value is None:
            items.append(m.evaluate(node.element, scope))
            return
        key_value = m.evaluate(node.element, scope)
        key, value = hashable(key_value), m.evaluate(node.value, scope)
        if key is None:
            mapping.open = True
            m.state.setdefault("copied from", {})[m.symbol(mapping)] = m.symbol(key_value)
            mapping.items.setdefault(("unknown", m.symbol(key_value)), value)
        else:
            mapping.items[key] = value

    left_out: list[Abstract] = []
    _clauses(m, node, 0, scope, finish, left_out)
    if any(sink.iteration == m.rounds and sink.sink != "autograd.grad" for sink in m.sinks[sinks:]):
        m.session.trains_in(node)
    if node.value is not None:
        return mapping
    if node.kind != "generator" and len(m.sinks) > sinks:
        kept.report_list(m, items, m.sinks[sinks:], frame.span(node.element))
    made = Sequence(node.kind, items, at=frame.span(node))
    if not m.session.is_training(node):
        shorten(m, made)
    if left_out and not items:
        m.state.setdefault("all left out", []).append(made)
    return made


def _clauses(
    m: Machine,
    node: ir.Comprehension,
    position: int,
    scope: Frame,
    finish: Callable[[], None],
    left_out: list[Abstract],
) -> None:
    from gradlint.interpret.iteration import is_endless
    from gradlint.interpret.statements import assign

    if position == len(node.clauses):
        finish()
        return
    target, iterable, tests = node.clauses[position]
    source = m.evaluate(iterable, scope)

    def is_left_in(test: ir.Node) -> bool:
        before, m.branch.keeps = m.branch.keeps, True
        try:
            return conditions.decide(m, conditions.question(m, test, scope), test, scope)
        finally:
            m.branch.keeps = before

    def visit(item: Abstract) -> bool:
        assign(m, target, item, scope)
        if all(map(is_left_in, tests)):
            _clauses(m, node, position + 1, scope, finish, left_out)
        else:
            left_out.append(item)
        return False

    call = Call("for", [], {}, iterable, scope)
    if not m.session.is_training(node):
        with m.loop("", m.listed) as loop:
            loop.target, loop.looks_up = target, filters.looks_up(node, target, iterable)
            m.iterate(source, visit, call)
        return

    def step(item: Abstract) -> bool:  # losses = [self.step(batch) for batch in loader]
        with m.round(loop, scope.span(node), scope.text(iterable)):
            return visit(item)

    with m.loop("for", m.session.batches) as loop:
        loop.node = node
        m.iterate(source, step, call)
        if not is_endless(source):
            loop.ends()
        kept.report(m, loop)


@handles(EVALUATE, ir.Format)
def format_string(m: Machine, node: ir.Format, frame: Frame) -> Abstract:
    parts = [m.evaluate(part, frame) for part in node.parts]
    constants = [part.value for part in parts if isinstance(part, Const)]
    if len(constants) == len(parts) and is_small(*constants):
        return Const("".join(map(str, constants)))
    symbol = m.session.constant_symbol("format")
    for part in parts:
        symbol = symbol.derive(m.symbol(part), frame.text(node))
    return Unknown(symbol, data=True, type="str")


@handles(EVALUATE, ir.Formatted)
def formatted(m: Machine, node: ir.Formatted, frame: Frame) -> Abstract:
    """`{value!r:spec}`: computed where both are known, and the width is not large."""
    value = m.evaluate(node.value, frame)
    spec = m.evaluate(node.spec, frame) if node.spec is not None else Const("")
    if (
        isinstance(value, Const)
        and isinstance(spec, Const)
        and _is_written(value.value, spec.value)
    ):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return Const(format(_CONVERSIONS[node.conversion](value.value), spec.value))
    key = ("format", node.conversion, m.symbol(spec))
    return Unknown(m.symbol(value).derive(key, frame.text(node)), data=True, type="str")


def _is_written(value: object, spec: str) -> bool:
    return isinstance(value, _WRITTEN) and is_small(value) and not _WIDTH.search(spec)


@handles(EVALUATE, ir.Unlisted)
def unlisted(m: Machine, node: ir.Unlisted, frame: Frame) -> Abstract:
    """Syntax that is not known: what stands in it is computed, and what that gives is unknown."""
    for part in node.parts:
        m.evaluate(part, frame)
    m.gap("syntax", frame.span(node), node.kind)
    return m.unknown(frame.text(node))


@handles(EVALUATE, ir.Walrus)
def walrus(m: Machine, node: ir.Walrus, frame: Frame) -> Abstract:
    from gradlint.interpret.statements import assign

    value = m.evaluate(node.value, frame)
    assign(m, node.target, value, frame)
    return value


@handles(EVALUATE, ir.Yield)
def yield_(m: Machine, node: ir.Yield, frame: Frame) -> Abstract:
    from gradlint.interpret.iteration import is_endless

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


@handles(EVALUATE, ir.Slice)
def slice_(m: Machine, node: ir.Slice, frame: Frame) -> Abstract:
    bounds = [
        NONE if part is None else _concrete(m, m.evaluate(part, frame))
        for part in (node.lower, node.upper, node.step)
    ]
    if all(isinstance(bound, Const) and isinstance(bound.value, int | None) for bound in bounds):
        return Const(slice(*(bound.value for bound in bounds if isinstance(bound, Const))))
    return Object("builtins.slice", frame.span(node), {"bounds": bounds})


@handles(EVALUATE, ir.Star)
def star(m: Machine, node: ir.Star, frame: Frame) -> Abstract:
    return m.evaluate(node.value, frame)


@handles(EVALUATE, ir.Subscript)
def subscript(m: Machine, node: ir.Subscript, frame: Frame) -> Abstract:
    target = m.evaluate(node.target, frame)
    return item(m, target, _concrete(m, m.evaluate(node.index, frame)), node, frame)


def item(m: Machine, target: Abstract, index: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`target[index]`."""
    match target:
        case Sequence():
            return _sequence_item(m, target, index, node, frame)
        case Mapping():
            return _mapping_item(m, target, index, node, frame)
        case Tensor():
            return tensor_item(m, target, index, node, frame)
        case Unknown():
            handler = (
                find_method("numpy.ndarray", "__getitem__") if target.type == "array" else None
            )
            if handler is not None:
                return handler(m, target, Call("__getitem__", [index], {}, node, frame))
            if target.data and _adds_axes(index) and _is_collated(m, target):
                return tensor_item(m, tensors.as_tensor(m, target, node, frame), index, node, frame)
            found = derived(m, target, "item", hashable(index) or m.symbol(index), node, frame)
            if (
                found.origin is None
                and target.data
                and isinstance(index, Unknown)
                and index.origin is not None
            ):
                kind = "array" if index.type == "array" else found.type
                found = replace(
                    found, origin=tensors.python(m, "python", [index], node, frame), type=kind
                )
            return found
        case Const() if isinstance(target.value, str | bytes) and isinstance(index, Const):
            try:
                return Const(target.value[index.value])
            except (TypeError, IndexError, ValueError):  # a step of zero
                return m.unknown(frame.text(node), data=True)
        case Lib():
            return target
        case Class() if not any(
            is_a(base, "enum.Enum") for base in target.libraries()
        ):  # Base[int]
            return target
        case Instance() | Object():
            at = Call("__getitem__", [index], {}, node, frame)
            method = m.attribute(target, "__getitem__", at)
            if not isinstance(method, Unknown):
                return m.call(method, at)
        case Builtin() | Function():
            return target
    return m.unknown(frame.text(node), data=isinstance(target, Const | Range))


def _adds_axes(index: Abstract) -> bool:
    """Whether an index makes axes, as one of a tensor alone does: `mask[:, None]`."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else ()
    return any(isinstance(part, Const) and part.value is None for part in parts)


def derived(
    m: Machine, base: Unknown, how: str, key: object, node: ir.Node, frame: Frame
) -> Unknown:
    """A part of something unknown: an item or attribute, which carries the gradient that the whole
    carries.
    """
    symbol = base.symbol.derive((how, key), frame.text(node))
    override = m.override(base.symbol, how, key)
    if isinstance(override, Unknown):
        return override
    is_data = base.data and not _is_made_of_what_it_keeps(m, base.symbol)
    result = Unknown(symbol, data=is_data, type="array" if base.type == "array" else "")
    origin = base.origin
    if origin is not None:
        result.origin = origin
    elif (
        base.symbol in m.nodes
        and symbol not in m.nodes
        and not (how == "attribute" and _is_module(m, base.symbol))
    ):
        whole = m.nodes[base.symbol]
        if whole.kind not in (Kind.UNKNOWN, Kind.DATA):
            # Taking a part is no operation: grad mode has no say in it, and it has been there as
            # long as the whole.
            part = tensors.value(
                m, "part", Kind.OPERATION, [whole], node, frame, assumed=whole.assumed
            )
            part.requires_grad, part.iteration = whole.requires_grad, whole.iteration
            part.inference, part.inference_at = whole.inference, whole.inference_at
            part.cut_at, part.cut_stack = whole.cut_at, whole.cut_stack
            part.storage = Storage()
            m.nodes[symbol] = part
    return result


def _is_module(m: Machine, symbol: Symbol) -> bool:
    """Whether its parameters or those of an item were asked for: a call that gave a module computed
    nothing.
    """
    own = m.leaves.get(symbol)
    if own is not None:
        return own.parameter in m.parameters
    asked = (part for part, leaf in m.leaves.items() if leaf.parameter in m.parameters)
    return any(part.source is symbol and _is_item(part.key) for part in asked)


def _is_item(key: object) -> bool:
    return isinstance(key, tuple) and key[0] == "item"


def _is_made_of_what_it_keeps(m: Machine, symbol: Symbol) -> bool:
    """Whether it is a part of what has computed with the values that it was given to keep."""
    made: set[Symbol] | None = m.state.get("made of what it keeps")
    part: Symbol | None = symbol if made else None
    while made and part is not None and part not in made:
        part = part.source
    return part is not None


def _sequence_item(
    m: Machine, target: Sequence, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    if isinstance(index, Const):
        if isinstance(index.value, int) and -len(target.items) <= index.value < len(target.items):
            if m.loops and isinstance(target.items[index.value], Tensor):
                _taken(m, target).setdefault(index.value % len(target.items), index)
            return target.items[index.value]
        if isinstance(index.value, slice) and index.value.step != 0:
            return Sequence(
                target.kind, target.items[index.value], target.open, target.rest, at=target.at
            )
        if target.rest is not None:
            return target.rest
    if isinstance(index, Object):
        return Sequence(target.kind, list(target.items), target.open, target.rest, at=target.at)
    if target.items and not isinstance(index, Const):
        return _looked_up(m, _at_unknown(m, target, index, node, frame), index, node, frame)
    if _is_left_empty(m, target, node):
        raise Raised(Object("builtins.IndexError", frame.span(node)), frame.span(node))
    carries = any(not isinstance(entry, Const) for entry in target.items)
    return m.unknown(frame.text(node), data=not carries)


def _is_left_empty(m: Machine, target: Sequence, node: ir.Node) -> bool:
    """Whether all that the program puts into a list was left out; one that it puts nothing into,
    others may fill.
    """
    if (
        target.items
        or target.open
        or target.rest is not None
        or target.kind not in ("list", "tuple")
    ):
        return False
    return any(target is each for each in m.state.get("all left out", ())) or _is_filled_at_first(
        m, node
    )


def _is_filled_at_first(m: Machine, node: ir.Node) -> bool:
    """Whether an `__init__` puts something into the attribute that `node` takes an item of."""
    held = node.target if isinstance(node, ir.Subscript) else None
    if not isinstance(held, ir.Attribute):
        return False
    initial = (
        effects.body(function.source) for function in m.executed if function.name == "__init__"
    )
    found = (found for block in initial for found in effects.of(block, functions=False))
    written = (each for summary in found for each in summary.does.written)
    return any(
        how is How.FILLED and len(path) > 1 and path[-1] == held.name for path, how in written
    )


def _at_unknown(
    m: Machine, target: Sequence, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """The item at an unknown index: the first; of tensors with a graph, one that no other index has
    found.
    """
    first = target.items[0]
    if not isinstance(first, Tensor) or not first.node.requires_grad:
        return first
    taken, symbol = _taken(m, target), m.symbol(index)
    for number, item in enumerate(target.items):
        if m.symbol(taken.setdefault(number, index)) == symbol:
            return item
    return m.unknown(frame.text(node))


def _taken(m: Machine, target: Sequence) -> dict[int, Abstract]:
    """By which index each item of a list was looked up first."""
    _, taken = m.state.setdefault("looked up", {}).setdefault(id(target), (target, {}))
    found: dict[int, Abstract] = taken
    return found


def _looked_up(
    m: Machine, item: Abstract, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """An item at an unknown index. A number that is looked up by what came from a tensor comes from
    it, too.
    """
    if not isinstance(item, Const):
        return item
    if not (isinstance(index, Unknown) and index.origin is not None):
        found = Const(item.value, item.at)
        m.state.setdefault("found constants", {})[id(found)] = found
        return found
    origin = tensors.python(m, "python", [index], node, frame)
    return Unknown(m.unknown(frame.text(node)).symbol, data=True, origin=origin, type="number")


def _mapping_item(
    m: Machine, target: Mapping, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    key = hashable(index)
    if key is not None and _has(target.items, key):
        return target.items[key]
    if (
        key is None
        and ("unknown", m.symbol(index)) not in target.items
        and target.items
        and not target.open
    ):
        return _looked_up(m, _chosen(m, target, index, node, frame), index, node, frame)
    if target.factory is not None:
        place = key_of(m, index)
        if place not in target.items:
            target.items[place] = m.call(target.factory, Call("factory", [], {}, node, frame))
        return target.items[place]
    symbol = target.symbol or m.symbol(target)
    unknown_key = key if key is not None else m.symbol(index)
    held = target.items.get(("unknown", m.symbol(index)))
    if held is None and target.symbol is None:
        held = _any_filled_in(m, target, unknown_key)
    if held is not None:
        return held
    return Unknown(
        symbol.derive(("item", unknown_key), frame.text(node)), data=target.symbol is not None
    )


def _any_filled_in(m: Machine, target: Mapping, key: object) -> Abstract | None:
    """What a dict that is filled under unknown keys has under another key: data and no graph, or a
    module.

    One key after the other finds one module after the other.
    """
    values = list(target.items.values())
    if not all(isinstance(known, tuple) and known[:1] == ("unknown",) for known in target.items):
        return None
    if all(isinstance(value, Tensor) and not value.node.requires_grad for value in values):
        return next(iter(values), None)
    if not all(
        isinstance(value, Instance | Object) and value.module is not None for value in values
    ):
        return None
    found: dict[object, Abstract] = m.state.setdefault("found under", {}).setdefault(
        m.symbol(target), {}
    )
    return found.setdefault(key, values[len(found) % len(values)])


def _chosen(m: Machine, target: Mapping, index: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """What an unknown key finds: what this path knows it to be, else what it is by default, else
    the first.

    Of functions and classes of the program, each is found on some path.
    """
    symbol = m.symbol(index)
    known = m.oracle.facts.equal.get(symbol)
    if known is not None and _has(target.items, known):
        return target.items[known]
    _, default = m.state.get("options", {}).get(symbol) or (None, None)
    key = default.value if isinstance(default, Const) else None
    key = key if key is not None and _has(target.items, key) else next(iter(target.items))
    others = [
        other for other, value in target.items.items() if other != key and _is_of_program(value)
    ]
    picked = conditions.pick(m, symbol, others[:MOST_PICKED], node, frame)
    return target.items[key if picked is None else picked]


def _is_of_program(value: Abstract) -> bool:
    return isinstance(value, Function | Bound | Class)


def _has(items: dict[Any, Abstract], key: object) -> bool:
    try:
        return key in items
    except TypeError:
        return False


def _is_basic(index: Abstract) -> bool:
    """Whether an index is a number or a slice, and no tensor or list."""
    if isinstance(index, Unknown):
        return index.type == "number" and index.origin is None
    return isinstance(index, Const) or (isinstance(index, Object) and index.cls == "builtins.slice")


def _copies_rows(index: Abstract) -> bool:
    """Whether what an index picks is a copy for sure: a mask, or a list of numbers."""
    if isinstance(index, Sequence):
        return index.kind == "list"
    return isinstance(index, Tensor) and index.node.dtype is DType.BOOL


def tensor_item(m: Machine, target: Tensor, index: Abstract, node: ir.Node, frame: Frame) -> Tensor:
    """`tensor[index]`: a view for integers and slices, a copy for tensors, lists and masks."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    if all(map(_is_basic, parts)):
        made = tensors.view(m, target, "torch.Tensor.__getitem__", node, frame)
        made.node.arguments = tensors.given(m, [target, index], {})
        if all(
            isinstance(part, Const) and part.value in (None, ..., slice(None)) for part in parts
        ):
            made.node.flags |= {"reshaping"}  # labels[:, None]
    else:
        chosen = [
            index for index in tensors.sources(m, parts, node, frame) if not index.requires_grad
        ]
        made = tensors.apply(m, "torch.Tensor.__getitem__", [target], node, frame, None)
        made.node.inputs = tuple(dict.fromkeys((*made.node.inputs, *chosen)))
        made.node.dtype = target.node.dtype
        if not all(isinstance(part, Unknown) and part.type == "number" for part in parts):
            made.node.flags |= {"selection"}
        if any(map(_copies_rows, parts)):
            made.node.flags |= {COMPUTED_ANEW}
        made.node.inference = made.node.inference or False
        for mask in chosen if made.node.requires_grad else ():
            if mask.dtype is DType.BOOL:
                chances.note(m, made.node, chances.of_nothing(mask))
    key = tuple(_index_key(m, part) for part in parts)
    m.identify(made.node, m.symbol(target).derive(("item", key), frame.text(node)))
    return made


def _index_key(m: Machine, part: Abstract) -> object:
    if isinstance(part, Const):
        return repr(part.value)
    return m.symbol(part)
