"""NumPy, SciPy, scikit-learn and pandas: arrays carry no gradient, and remember the tensor that
they were copied from.

An array is an `Unknown` of type "array"; its `origin` is the value on the tape behind it, where
there is one. What is computed from arrays is an array, and its origin is an operation outside torch
on theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint.interpret import copies, memory, tensors
from gradlint.interpret.registry import attribute, fallback, function, guesses, method, notify
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.python.results import is_tensor
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PACKAGES = (
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "cupy",
    "numba",
    "statsmodels",
    "xgboost",
    "lightgbm",
)
_ARRAY = "numpy.ndarray"
_GENERATOR = "numpy.random.Generator"
_NUMBERS = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "Inf": math.inf,
    "infty": math.inf,
    "nan": math.nan,
    "NaN": math.nan,
    "NAN": math.nan,
}
_MATH: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "floor": math.floor,
    "ceil": math.ceil,
    "abs": abs,
    "absolute": abs,
    "cos": math.cos,
    "sin": math.sin,
    "tanh": math.tanh,
    "prod": math.prod,
    "maximum": max,
    "minimum": min,
    "log1p": math.log1p,
    "power": pow,
    "square": lambda x: x * x,
}
_FLAGS = {
    "isnan",
    "isinf",
    "isfinite",
    "isclose",
    "allclose",
    "array_equal",
    "any",
    "all",
    "isscalar",
}
_WRITES = {"fill", "sort", "put", "partition", "itemset", "resize", "shuffle"}
_WRITES_FIRST = {"copyto", "fill_diagonal", "put", "putmask", "place", "put_along_axis", "shuffle"}
_OBJECTS = {"dtype", "flags", "index", "columns", "dtypes", "str", "dt", "cat"}
_MEASURES = {"size", "ndim", "itemsize", "nbytes"}
_SAME = {
    "T",
    "real",
    "imag",
    "flat",
    "values",
    "iloc",
    "loc",
    "at",
    "iat",
}  # still the array itself, or a part of it


def array(
    m: Machine,
    op: str,
    values: Iterable[Abstract],
    call: Call,
    symbol: Symbol | None = None,
    kind: str = "array",
) -> Unknown:
    """What NumPy computes from these values: for the same values the same, unless it has a `symbol`
    of its own.
    """
    values = list(values)
    if symbol is None:
        symbol = m.session.constant_symbol(op)
        for value in values:
            symbol = symbol.derive(m.symbol(value), call.frame.text(call.node))
    inputs = origins(m, op, values, call)
    made = (
        tensors.operation(m, op, inputs, call.node, call.frame, in_torch=False) if inputs else None
    )
    return Unknown(symbol, data=True, origin=made, type=kind)


def origins(
    m: Machine, op: str, values: Iterable[Abstract], call: Call, depth: int = 0
) -> list[Value]:
    """The values on the tape behind these arguments; tensors among them are copied out of torch
    here.
    """
    found: list[Value] = []
    for value in values:
        copied = (
            copies.number(m, value, op, call.node, call.frame, "array")
            if is_tensor(m, value)
            else value
        )
        if isinstance(copied, Unknown) and copied.origin is not None:
            found.append(copied.origin)
        elif depth < tensors.MAX_NESTING:
            found += origins(m, op, _inside(value), call, depth + 1)
    return found


def _inside(value: Abstract) -> list[Abstract]:
    if isinstance(value, Sequence):
        return [*value.items, value.rest] if value.rest is not None else value.items
    return list(value.items.values()) if isinstance(value, Mapping) else []


@fallback
def outside_torch(m: Machine, call: Call) -> Abstract | None:
    """Any function or class of these packages."""
    package, _, rest = call.name.partition(".")
    if package not in _PACKAGES:
        return None
    name = rest.rpartition(".")[2]
    if package == "numpy" and (known := _known(name, call)) is not None:
        return known
    into = _written_by(name, call)
    if into is not None:
        written(m, into, call.name, call)
        return into if "out" in call.kwargs else NONE
    is_random = ".random." in call.name or name[:1].isupper()
    kind = "" if package == "pandas" else "bool" if name in _FLAGS else "array"
    symbol = m.unknown(call.frame.text(call.node)).symbol if is_random else None
    return array(m, call.name, call.values, call, symbol, kind)


def _written_by(name: str, call: Call) -> Unknown | None:
    """The array that a function writes into: `np.clip(a, 0, 1, out=a)`, `np.copyto(a, b)`."""
    into = call.kwargs.get("out")
    if into is None and name in _WRITES_FIRST and call.args:
        into = call.args[0]
    return into if isinstance(into, Unknown) and into.type == "array" else None


def _known(name: str, call: Call) -> Const | None:
    """What a function of plain numbers gives."""
    numbers = [value.value for value in call.args if isinstance(value, Const)]
    if (
        name not in _MATH
        or len(numbers) != len(call.values)
        or not all(type(number) in (int, float) for number in numbers)
    ):
        return None
    try:
        return Const(_MATH[name](*numbers))
    except (TypeError, ValueError, ArithmeticError):
        return None


@function("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
def generator(m: Machine, call: Call) -> Abstract:
    """A source of random numbers: each call of it gives others."""
    return Object(_GENERATOR, call.frame.span(call.node))


@method(_GENERATOR, "*")
def draw(m: Machine, rng: Object, call: Call) -> Abstract:
    """Random numbers, others at each call."""
    made = array(
        m,
        f"{_GENERATOR}.{call.name}",
        call.values,
        call,
        m.unknown(call.frame.text(call.node)).symbol,
    )
    notify("library call", m, replace(call, name=f"numpy.random.{call.name}"), made)
    return made


def _constant(name: str, number: float) -> None:
    @attribute("numpy", name)
    def handler(m: Machine, package: Abstract, at: Call) -> Abstract:
        return Const(number)


for _name, _number in _NUMBERS.items():
    _constant(_name, _number)


@attribute("numpy", "newaxis")
def newaxis(m: Machine, package: Abstract, at: Call) -> Abstract:
    """`np.newaxis` is `None`."""
    return NONE


# arrays


@guesses()
def array_attribute(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute or method of an array."""
    if unknown.type != "array" or name.startswith("__"):
        return None
    symbol = unknown.symbol.derive(("attribute", name), f"{unknown.symbol.text}.{name}")
    if name == "shape" or name in _OBJECTS:
        return Unknown(symbol, data=True, type="" if name == "shape" else "object")
    if name in _MEASURES:
        return Unknown(symbol, data=True, type="number")
    if name in _SAME:
        return Unknown(symbol, data=True, origin=unknown.origin, type="array")
    return _method(unknown, name)


def _method(unknown: Unknown, name: str) -> Abstract:
    from gradlint.interpret.values import Builtin

    return Builtin(f"{_ARRAY}.{name}", lambda m, call: array_method(m, unknown, name, call))


def array_method(m: Machine, receiver: Unknown, name: str, call: Call) -> Abstract:
    """`array.name(…)`."""
    if name in _WRITES:
        written(m, receiver, f"{_ARRAY}.{name}", call)
        return NONE
    kind = "number" if name == "item" else "bool" if name in _FLAGS else "array"
    symbol = receiver.symbol
    for value in (Const(name), *call.values):
        symbol = symbol.derive(m.symbol(value), call.frame.text(call.node))
    return array(m, f"{_ARRAY}.{name}", [receiver, *call.values], call, symbol, kind)


def written(m: Machine, receiver: Unknown, op: str, call: Call) -> None:
    """Writes an array in place. A tensor that shares its memory changes, and autograd does not see
    it.
    """
    origin, inputs = receiver.origin, origins(m, op, call.values, call)
    if origin is not None and origin.storage is not None:
        alias = Tensor(origin, detached=True, uncounted=True)
        memory.write(m, alias, op, inputs, call.node, call.frame)
    if inputs:
        before = [origin] if origin is not None else []
        receiver.origin = tensors.operation(
            m, op, [*before, *inputs], call.node, call.frame, in_torch=False
        )
        receiver.origin.storage = origin.storage if origin is not None else None


@method(_ARRAY, "__setitem__")
def set_item(m: Machine, receiver: Any, call: Call) -> Abstract:
    """`array[index] = value`."""
    written(m, receiver, f"{_ARRAY}.__setitem__", call)
    return NONE


@method(_ARRAY, "__augment__")
def augment(m: Machine, receiver: Any, call: Call) -> Abstract:
    """`array -= value`, where the array shares its memory with a tensor."""
    written(
        m,
        Unknown(receiver.symbol, data=True, origin=receiver.origin, type="array"),
        f"{_ARRAY}.{call.name}",
        call,
    )
    return NONE


@method(_ARRAY, "__getitem__")
def get_item(m: Machine, receiver: Any, call: Call) -> Abstract:
    """`array[index]`: it comes from the array, and from the tensor behind the index."""
    index = call.args[0] if call.args else NONE
    symbol = receiver.symbol.derive(("item", m.symbol(index)), call.frame.text(call.node))
    return array(m, f"{_ARRAY}.__getitem__", [receiver, index], call, symbol)
