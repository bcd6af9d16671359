"""How the elements of a tensor are spread: drawn uniformly, normally, or counted."""

from __future__ import annotations

import math
from collections.abc import Callable

from gradlint.dataclass import dataclass
from gradlint.tape import DType, Kind, Value


@dataclass(frozen=True, slots=True)
class Spread:
    """How the elements of a tensor are spread: the part of them below a number, and the part up to
    it.
    """

    below: Callable[[float], float]
    up_to: Callable[[float], float]
    drawn: bool = True
    written: tuple[float, ...] = ()  # what rows of it were set to

    def moved(self, by: float) -> Spread:
        written = tuple(each + by for each in self.written)
        return Spread(
            lambda c: self.below(c - by), lambda c: self.up_to(c - by), self.drawn, written
        )

    def scaled(self, by: float) -> Spread:
        written = tuple(each * by for each in self.written)
        if by > 0:
            return Spread(
                lambda c: self.below(c / by), lambda c: self.up_to(c / by), self.drawn, written
            )
        return Spread(
            lambda c: 1 - self.up_to(c / by), lambda c: 1 - self.below(c / by), self.drawn, written
        )

    def at_least(self, low: float) -> Spread:
        written = tuple(max(each, low) for each in self.written)
        below, up_to = self.below, self.up_to
        return Spread(
            lambda c: 0.0 if c <= low else below(c),
            lambda c: 0.0 if c < low else up_to(c),
            self.drawn,
            written,
        )

    def with_row_of(self, number: float) -> Spread:
        return Spread(self.below, self.up_to, self.drawn, (*self.written, number))


ELEMENTWISE = frozenset(
    ["float", "double", "half", "bfloat16", "int", "long", "bool", "to", "type", "type_as", "cuda"]
)
ELEMENTWISE |= {
    "cpu",
    "view",
    "reshape",
    "flatten",
    "squeeze",
    "unsqueeze",
    "contiguous",
    "clone",
    "detach",
    "data",
}
ELEMENTWISE |= {"unbind", "transpose", "permute", "t", "T", "mT", "split", "chunk", "output"}
_UNIFORM, _NORMAL = frozenset(["rand", "rand_like"]), frozenset(["randn", "randn_like"])


def plain_name(value: Value) -> str:
    return value.op.rpartition(".")[2].strip("_")


def shows_input(value: Value) -> bool:
    """Whether it has the elements of its first input, or some of them that are not chosen by what
    they are.
    """
    # written to by way of another tensor of the same memory
    if not value.inputs or value.op == "view":
        return False
    is_by_mask = any(each.dtype is DType.BOOL for each in value.inputs[1:])
    return plain_name(value) in ELEMENTWISE or (plain_name(value) == "getitem" and not is_by_mask)


def is_row(index: object) -> bool:
    """Whether an index chooses whole rows: `x[9]`, `x[20:24]`."""
    return type(index) is int or (isinstance(index, slice) and index != slice(None))


def spread_of(value: Value, depth: int) -> Spread | None:
    """How the elements of a tensor are spread, where they are drawn or counted up."""
    name = plain_name(value)
    if depth == 0:
        return None
    if not value.inputs:
        return _made(value, name)
    first = spread_of(value.inputs[0], depth - 1)
    if first is None:
        return None
    if shows_input(value):
        return first
    if name == "setitem":
        number = value.argument(2)
        return (
            first.with_row_of(number)
            if isinstance(number, int | float) and is_row(value.argument(1))
            else None
        )
    return _computed(value, name, first) if len(value.inputs) == 1 else None


def _computed(value: Value, name: str, of: Spread) -> Spread | None:
    """What arithmetic with a number makes of a spread."""
    left, right = value.argument(0), value.argument(1, "other")
    number = right if isinstance(left, Value) else left
    match name:
        case "clamp" | "clamp_min" | "clip" if isinstance(
            low := value.argument(1, "min"), int | float
        ):
            return of.at_least(low) if value.argument(2, "max") is None else None
        case "relu":
            return of.at_least(0.0)
        case "neg":
            return of.scaled(-1.0)
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    match name:
        case "add":
            return of.moved(number)
        case "sub":
            return of.moved(-number) if isinstance(left, Value) else of.scaled(-1.0).moved(number)
        case "mul" if number:
            return of.scaled(number)
        case "div" | "truediv" if number and isinstance(left, Value):
            return of.scaled(1 / number)
    return None


def _made(value: Value, name: str) -> Spread | None:
    if value.kind is Kind.CONSTANT and isinstance(value.number, int | float):
        number = value.number
        return Spread(lambda c: float(number < c), lambda c: float(number <= c), False)
    if name in _UNIFORM:
        return Spread(_uniform, _uniform)
    if name in _NORMAL:
        return Spread(_normal, _normal)
    if name in ("randint", "arange"):
        return _whole(value, name)
    return None


def _uniform(c: float) -> float:
    return min(max(c, 0.0), 1.0)


def _normal(c: float) -> float:
    return (1 + math.erf(c / math.sqrt(2))) / 2


def _whole(value: Value, name: str) -> Spread | None:
    """Whole numbers: `randint(low, high, size)`, `arange(low, high)`."""
    first, second = value.argument(0, "low", "start"), value.argument(1, "high", "end")
    low, high = (
        (first, second) if isinstance(second, int) else (0, first if first is not None else second)
    )
    if (
        type(low) is not int
        or type(high) is not int
        or high <= low
        or value.argument("step") is not None
    ):
        return None
    numbers = range(low, high)

    def below(c: float) -> float:
        return min(max(math.ceil(c) - low, 0), len(numbers)) / len(numbers)

    return Spread(below, lambda c: below(math.floor(c) + 1), name == "randint")
