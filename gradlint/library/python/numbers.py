"""Python's builtins on numbers, and what they make of tensors."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import (
    conditions,
    copies,
    counters,
    counts,
    estimates,
    retention,
    shapes,
    tensors,
)
from gradlint.interpret.arithmetic import bound_numbers
from gradlint.interpret.operators import binary
from gradlint.interpret.registry import function
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Lib,
    Mapping,
    Range,
    Sequence,
    Tensor,
    Unknown,
    range_length,
)
from gradlint.library.python.results import (
    argument,
    constant,
    copied,
    fresh,
    functions,
    is_tensor,
    keys,
    last,
    place,
    plain,
    same,
    settled,
    text,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MAX_DIGITS = 1 << 20  # larger constants are not computed


def computed(
    m: Machine, call: Call, name: str, run: Callable[..., Any], values: list[Abstract]
) -> Abstract:
    """`run` of constants; of anything else, a number copied from what it is."""
    values = [copied(m, value, name, call) for value in values]
    known = plain(values)
    if known is not None and not call.open:
        try:
            return constant(call, run(*known))
        except (TypeError, ValueError, ArithmeticError):
            return fresh(m, call, "number")
    made = same(m, call, name, values)
    bound = bound_numbers(m, values)
    if bound is not None and not call.open and isinstance(made, Unknown):
        with contextlib.suppress(TypeError, ValueError, ArithmeticError):
            m.oracle.facts.bind(made.symbol, run(*bound))
    return made


def _in_torch(name: str, run: Callable[..., Any]) -> None:
    """Registers a builtin that torch implements for tensors."""

    @function(f"builtins.{name}")
    def handler(m: Machine, call: Call) -> Abstract:
        if any(is_tensor(m, value) for value in call.args):
            return m.call(Lib(f"torch.{name}"), call)
        return computed(m, call, name, run, call.args)


def _power(base: Any, exponent: Any, *modulus: Any) -> Any:
    if abs(exponent) > 64 or abs(base) > MAX_DIGITS:
        raise ArithmeticError
    return pow(base, exponent, *modulus)


def _round(value: Any, digits: Any = None) -> Any:
    if digits is not None and abs(digits) > 64:
        raise ArithmeticError
    return round(value, digits)


_in_torch("abs", abs)
_in_torch("round", _round)
_in_torch("pow", _power)


@function("builtins.divmod")
def divmod_(m: Machine, call: Call) -> Abstract:
    """`divmod(a, b)`: `(a // b, a % b)`."""
    if len(call.args) != 2:
        return fresh(m, call)
    left, right = call.args
    return Sequence(
        "tuple",
        [binary(m, op, left, right, call.node, call.frame) for op in ("//", "%")],
        at=place(call),
    )


@functions("builtins.int", "builtins.float", "builtins.complex")
def number(m: Machine, call: Call, full: str) -> Abstract:
    """`float(x)`: a constant, or a number copied out of a tensor."""
    name = last(full)
    value = settled(m, call.args[0]) if call.args else constant(call, 0.0 if name == "float" else 0)
    if len(call.args) > 1:  # int("11", 2)
        return same(m, call, full, call.args, "number")
    if isinstance(value, Const):
        return _converted(m, call, name, value)
    if is_tensor(m, value) or (name == "float" and _can_be_tensor(value)):
        return copies.number(m, value, name, call.node, call.frame)
    if name == "float" and isinstance(value, Unknown) and value.type == "number":
        return value
    return same(m, call, full, [value])


def _can_be_tensor(value: Abstract) -> bool:
    return isinstance(value, Unknown) and not value.data and value.type in ("", "tensor")


def _converted(m: Machine, call: Call, name: str, value: Const) -> Abstract:
    try:
        return constant(call, getattr(builtins, name)(value.value))
    except (TypeError, ValueError, ArithmeticError):
        return fresh(m, call, "number")


@function("builtins.bool")
def bool_(m: Machine, call: Call) -> Abstract:
    """`bool(x)`: the question that `if x` asks."""
    if not call.args:
        return Const(False)
    value = conditions.asked(m, call.args[0])
    known = conditions.truth(m, value)
    if known is not None:
        return Const(known)
    answer = conditions.boolean(m, conditions.test_of(m, value), text(call))
    if isinstance(answer, Unknown) and is_tensor(m, value):
        answer.origin = copies.number(m, value, "bool", call.node, call.frame).origin
    return answer


@function("builtins.sum", "math.fsum")
def sum_(m: Machine, call: Call) -> Abstract:
    """`sum(iterable, start=0)`: `start + first + second + …`. Of nothing, the constant that it
    starts with.
    """
    total, sinks = call.get(1, "start") or constant(call, 0), len(m.sinks)
    items = m.items(call.args[0], call) if call.args else []
    for item in items:
        total = binary(m, "+", total, item, call.node, call.frame)
    retention.report_sum(m, total, items, m.sinks[sinks:], place(call))
    return total


@functions("builtins.max", "builtins.min")
def extreme(m: Machine, call: Call, full: str) -> Abstract:
    """`max(a, b)` gives one of them: of two, one a tensor, the path forks."""
    name = last(full)
    items = call.args if len(call.args) != 1 else m.items(call.args[0], call)
    if not items:
        return call.kwargs.get("default", fresh(m, call, ""))
    if "key" in call.kwargs or len(items) == 1:
        return _best(m, call, name, items)
    if len(items) == 2 and any(is_tensor(m, item) for item in items):
        return _larger(m, call, name, *items)
    if any(is_tensor(m, item) for item in items):
        return tensors.apply(m, f"torch.{name}", items, call.node, call.frame, None)
    return computed(m, call, name, max if name == "max" else min, list(items))


def _best(m: Machine, call: Call, name: str, items: list[Abstract]) -> Abstract:
    """The first of the largest (or smallest) by their keys; the first of all where these are not
    known.
    """
    known = keys(m, items, call) if len(items) > 1 else None
    if known is None:
        return items[0]
    try:
        return items[known.index(max(known) if name == "max" else min(known))]
    except TypeError:
        return items[0]


def _larger(m: Machine, call: Call, name: str, left: Abstract, right: Abstract) -> Abstract:
    asked = conditions.boolean(m, Test(m.symbol(left), f"{name} of", m.symbol(right)), text(call))
    nodes = [tensors.node_of(m, each, call.node, call.frame) for each in (left, right)]
    trained = (leaf for node in nodes if node is not None for leaf in tape.leaves(node))
    picks_data = all(leaf.parameter is None for leaf in trained)
    return (
        left if conditions.decide(m, asked, call.node, call.frame, picks_data=picks_data) else right
    )


@function("builtins.len")
def length(m: Machine, call: Call) -> Abstract:
    """`len(x)`: what is known, what a class says, or an unknown number that is the same for the
    same `x`.
    """
    from gradlint.library.python.inspection import defines

    value = argument(m, call)
    known = _known_length(value)
    if known is not None:
        if not isinstance(value, Sequence):
            return Const(known)
        m.state["measured"] = value
        return counters.grows(
            m, value, Const(known, None, known + value.left_out if value.left_out else None)
        )
    if defines(value, "__len__"):
        return m.invoke(m.attribute(value, "__len__", call), [], call)
    symbol = m.symbol(value)
    if symbol in m.session.loops.loaders:
        return Const(m.session.loops.batches)
    key: object = ("len", len(value.items)) if isinstance(value, Sequence) else "len"
    derived = symbol.derive(key, f"len({symbol.text})")
    m.state.setdefault("lengths", {})[derived] = (
        estimates.length(m, value) if isinstance(value, Tensor) else None
    )
    if isinstance(value, Tensor):
        counts.learn(m, value, derived)
        if (size := shapes.known_length(value)) is not None:
            m.oracle.facts.bind(derived, size)
    if isinstance(value, Sequence) and value.items:
        m.oracle.facts.learn(Test(derived, ">", 0), True)
    return Unknown(derived, data=True, type="number")


def _known_length(value: Abstract) -> int | None:
    match value:
        case Sequence() if not value.open and value.kind != "generator":
            return len(value.items)
        case Mapping() if not value.open:
            return len(value.items)
        case Const() if isinstance(value.value, str | bytes | tuple):
            return len(value.value)
        case Range():
            bounds = plain([value.start, value.stop, value.step])
            if bounds is not None and all(type(bound) is int for bound in bounds) and bounds[2]:
                return range_length(*bounds)
    return None


@functions("builtins.hash", "builtins.id", "builtins.ord")
def identity(m: Machine, call: Call, full: str) -> Abstract:
    """A number that stands for a value."""
    return same(m, call, full, call.args[:1])


@functions("builtins.bin", "builtins.hex", "builtins.oct", "builtins.chr", "builtins.ascii")
def spelled(m: Machine, call: Call, full: str) -> Abstract:
    """A number as text."""
    return same(m, call, full, call.args[:1], "str")
