"""Symbols, which stand for what is unknown, and the questions that are asked of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping as Many

from gradlint.dataclass import dataclass

serials = itertools.count()  # of symbols, in the order in which they are made


class Symbol:
    """The identity of something unknown. What is derived from one symbol in one way is one symbol:
    `args.lr`.
    """

    __slots__ = ("_derived", "key", "number", "source", "text", "twin")

    def __init__(self, text: str, source: Symbol | None = None, key: object = None) -> None:
        self.text = text
        self.number = next(serials)
        self.source = source  # what this was derived from
        self.key = key  # the way in which it was; None of what was not
        self._derived: dict[object, Symbol] | None = None  # from most nothing is
        # of a result: what the same call with the same arguments is taken to say
        self.twin: Symbol | None = None

    def derive(self, key: object, text: str) -> Symbol:
        derived = self._derived
        if derived is None:
            derived = self._derived = {}
            _parents.append(self)
        symbol = derived.get(key)
        if symbol is None:
            symbol = derived[key] = Symbol(text, self, key)
            if self.twin is not None:
                symbol.twin = self.twin.derive(key, text)
        return symbol

    def is_before(self, number: int) -> bool:
        """Whether it was there before the symbols from this number on: itself, or what it is an
        attribute of.
        """
        symbol = self
        while symbol.number >= number and symbol.source is not None and symbol.is_attribute:
            symbol = symbol.source
        return symbol.number < number

    @property
    def is_attribute(self) -> bool:
        """Whether it is an attribute of something unknown."""
        return isinstance(self.key, tuple) and self.key[:1] == ("attribute",)

    @property
    def derived(self) -> Many[object, Symbol]:
        """What was derived from it, by the ways in which it was."""
        return self._derived or {}

    @property
    def root(self) -> Symbol:
        """What all of it was derived from."""
        symbol = self
        while symbol.source is not None:
            symbol = symbol.source
        return symbol

    @property
    def asked(self) -> Symbol:
        """The symbol that questions about this one are asked of."""
        return self.twin or self

    @staticmethod
    def part() -> None:
        """Takes apart the circles in which symbols and what is derived from them hold each
        other.
        """
        for symbol in _parents:
            symbol._derived = None
        _parents.clear()

    def __repr__(self) -> str:
        return f"Symbol({self.text})"


_parents: list[Symbol] = []  # from which something was derived since they were last parted from it


@dataclass(frozen=True, slots=True)
class Test:
    """An unknown truth: `subject relation operand`, turned round where `negated`.

    Relations: "true" (truthiness), "==", "<", "<=", ">", ">=" against a constant, "is" (None),
    "in", "isa"; for any other relation the operand is what makes it the same question when it is
    asked again.
    """

    subject: Symbol
    relation: str
    operand: object = None
    negated: bool = False

    def __invert__(self) -> Test:
        return Test(self.subject, self.relation, self.operand, not self.negated)


def is_collated(symbol: Symbol) -> bool:
    """Whether it is a batch of a loader, or an item of one, of any depth."""
    part: Symbol | None = symbol
    while part is not None and isinstance(part.key, tuple) and part.key[0] == "item":
        part = part.source
    return part is not None and isinstance(part.key, tuple) and part.key[0] == "batch"


def test_key(operand: object) -> object:
    """What tells the operand of a test from others: `1` from `True`, lists by what they show."""
    try:
        hash(operand)
    except TypeError:
        return repr(operand)
    return (type(operand), operand)
