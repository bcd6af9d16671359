"""Estimates of trip counts: the value of an expression under the defaults of its options.

A count that leaves no remainder under the defaults gives no report of one, although options can be
given other values. A count that is a multiple of the window has the remainder 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.operands import concretise
from gradlint.interpret.shapes import first_size
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Const, Tensor, Unknown, range_length

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_DEEPEST = 8  # operations in an expression that is followed


def estimated(m: Machine, value: Abstract | None) -> int | None:
    """What `value` comes to, by the defaults of the options that it is computed from."""
    if isinstance(value, Const):
        return _written(value)
    return _of(m, value.symbol, _DEEPEST) if isinstance(value, Unknown) else None


def _written(known: Const) -> int | None:
    if type(known.value) is not int:
        return None
    return known.value if known.written is None else known.written


def by_default(m: Machine, symbol: Symbol) -> int | None:
    """What a number comes to by the defaults of options, where all that it is computed from has
    one.
    """
    return _of(m, symbol, _DEEPEST, unknown=None)


def length(m: Machine, tensor: Tensor) -> int | None:
    """The first size of a tensor, by the defaults of the options that it is computed from."""
    size = first_size(tensor.node)
    if isinstance(size, Symbol):
        return _of(m, size, _DEEPEST)
    return size if isinstance(size, int) else None


def _of(
    m: Machine, symbol: Symbol, depth: int, unknown: int | None = conditions.SMALL
) -> int | None:
    """What a number comes to; an `unknown` factor of a product is taken for that."""
    known = m.concrete.get(symbol)
    if known is None:
        _, known = m.state.get("options", {}).get(symbol) or (None, None)
    if isinstance(known, Const):
        return _written(known)
    length: int | None = m.state.get("lengths", {}).get(symbol)
    made = _operation(symbol)
    if length is not None or made is None or depth == 0:
        return length
    op, operand, base_is_left = made
    one = _of(m, symbol.source, depth - 1, unknown) if symbol.source is not None else None
    other = operand if isinstance(operand, int) else _of(m, operand, depth - 1, unknown)
    if op == "*":
        one, other = unknown if one is None else one, unknown if other is None else other
    if one is None or other is None:
        return None
    if op == "*":
        return one * other
    left, right = (one, other) if base_is_left else (other, one)
    if op == "//":
        return left // right if right else None
    return left + right if op == "+" else left - right


def _operation(symbol: Symbol) -> tuple[str, int | Symbol, bool] | None:
    """The arithmetic that gave a symbol: the operator, the other operand, and whether that one is
    the right one.
    """
    match symbol.key:
        case ("+" | "-" | "*" | "//" as op, int() | Symbol() as operand, bool(side)):
            return op, operand, side
    return None


def turns(m: Machine, start: int, stop: Unknown, step: int) -> range:
    """The rounds of a training loop over `range(start, stop, step)`; `stop` is taken for what they
    come to.

    A list that is made of it, `[draw() for _ in range(n)]`, has as many items as leave the same
    remainder.
    """
    if not m.session.loops.takes_batches(m):
        return range(_listed(m, start, stop, step))
    lengths = m.state.get("lengths", {})
    written = lengths.get(stop.symbol)
    number = estimated(m, stop) if written is None else written
    if number is None and stop.symbol in lengths:
        number = m.session.loops.batches
    many = m.session.loops.batches
    if number is not None:
        length = range_length(start, number, step)
        many = (
            m.session.loops.like(length)
            if _is_product(stop.symbol)
            else m.session.loops.shown(length, m.loops[-1])
        )
    _take(m, stop, Const(start + many * step, None, written))
    return range(many)


def _listed(m: Machine, start: int, stop: Unknown, step: int) -> int:
    """How many rounds are run of what trains nothing."""
    rounds = m.loops[-1].rounds if m.loops else 2
    number = estimated(m, stop) if m.loops and not m.loops[-1].over else None
    return rounds if number is None else m.session.loops.items(range_length(start, number, step))


def _is_product(symbol: Symbol) -> bool:
    made = _operation(symbol)
    return made is not None and made[0] == "*"


def _take(m: Machine, stop: Unknown, number: Const) -> None:
    """Takes what a loop runs to for `number`, so that `i == n - 1` holds in its last round; for
    `n + 1`, n too.
    """
    concretise(m, stop, number)
    made = _operation(stop.symbol)
    if (
        made is not None
        and stop.symbol.source is not None
        and made[0] in "+-"
        and isinstance(made[1], int)
        and made[2]
    ):
        source = Const(number.value - made[1] if made[0] == "+" else number.value + made[1])
        concretise(m, Unknown(stop.symbol.source), source)


def runs_to(m: Machine, symbol: Symbol, size: int, call: Call) -> None:
    """A loop runs over something for so many rounds, or to an unknown number that comes to so
    many.
    """
    if m.loops and call.name == "for":
        m.loops[-1].sizes[symbol] = size


def end(m: Machine, symbol: Symbol) -> int | None:
    """What a number comes to that a loop about it runs to: `n`, `n - 1`, `len(xs)`, `x.shape[0]`;
    none elsewhere.
    """
    made = _operation(symbol)
    if (
        made is not None
        and symbol.source is not None
        and made[0] in "+-"
        and isinstance(made[1], int)
        and made[2]
    ):
        size = _size(m, symbol.source)
        return None if size is None else size + made[1] if made[0] == "+" else size - made[1]
    return _size(m, symbol)


def is_the_last(m: Machine, number: Abstract, bound: Abstract) -> bool:
    """Whether a number is the last of those that a loop about it runs through, to `n`, where
    `bound` is `n - k`.
    """
    made = _operation(bound.symbol) if isinstance(bound, Unknown) else None
    if made is None or made[0] != "-" or not made[2] or (isinstance(made[1], int) and made[1] < 1):
        return False
    ends = [loop.last for loop in m.loops if loop.last is not None]
    return any(_is_same(item, number) and stop is m.symbol(bound).source for item, stop in ends)


def _is_same(item: Abstract, number: Abstract) -> bool:
    if isinstance(item, Unknown) and isinstance(number, Unknown):
        return item.symbol is number.symbol
    return item is number


def _size(m: Machine, symbol: Symbol) -> int | None:
    measured = _measured(symbol)
    for loop in reversed(m.loops):
        for known in (symbol, measured):
            if known in loop.sizes:
                return loop.sizes[known]
    return None


def _measured(symbol: Symbol) -> Symbol | None:
    """What `symbol` is the length of: `len(x)`, `x.shape[0]`, `x.size(0)`."""
    whole, key = symbol.source, symbol.key
    match key:
        case "len" | ("len", _):
            return whole
        case ("size", (Symbol(text="0"),)):
            return whole
        case ("item", Symbol(text="0")) if whole is not None and whole.key in (
            "shape",
            ("attribute", "shape"),
        ):
            return whole.source
    return None
