"""What a decision says of tensors: that they are bounded, of an even length, or not zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import counts
from gradlint.interpret.registry import find_attribute, find_method
from gradlint.interpret.symbols import Symbol, Test
from gradlint.library.effects import lookup
from gradlint.operations import Trait, has

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_TENSOR = "torch.Tensor"
_TESTS = "test_"  # what the names of tests begin with
_SIZES = frozenset(["shape", "ndim", "len"])  # as `library/sizes.py` derives them of a tensor


def about(m: Machine, test: Test) -> tuple[tape.Value, ...]:
    """The tensors that a question is asked of, by way of what was derived from them: `len(x)`,
    `x.sum().item()`; where a length is asked, what has as many rows, too.
    """
    if test.relation == "is":  # it is no None, whatever is in it
        return ()
    found = _tensors_behind(m, test.subject, test.operand)
    if test.subject.key != "len":
        return found
    return tuple(dict.fromkeys((*found, *map(counts.of_as_many_rows, found))))


def is_written(m: Machine, test: Test) -> bool:
    """Whether a question is asked in no loop, and of tensors that are computed from nothing but
    what the program writes down: `torch.tensor([0, 0, 1]).unique().numel() == 1`.

    Of ones or zeros it is known what they say; what is written into a tensor can be anything.
    """
    sources = _sources_once(m, test)
    return bool(sources) and all(map(_is_written_down, sources))


def is_drawn_once(m: Machine, test: Test) -> bool:
    """Whether a test asks a question in no loop, and of nothing but numbers that it draws:
    `(torch.randn(64, 3) > 0).any()`. The run that its author saw came out as the next one will;
    what a program draws elsewhere stands for a batch, of which there are many.
    """
    if not any(map(_is_of_a_test, m.frames)):
        return False
    sources = _sources_once(m, test)
    return any(map(_is_drawn, sources)) and all(_is_made_here(m, each) for each in sources)


def _is_of_a_test(frame: Frame) -> bool:
    """Whether a function is one that pytest runs, by the name that it prescribes."""
    return frame.function is not None and frame.function.name.startswith(_TESTS)


def _sources_once(m: Machine, test: Test) -> list[tape.Value]:
    """What the tensors that are asked about are computed from, where it is asked in no loop and
    nothing of it is written in place.
    """
    asked = about(m, test)
    operand = test.operand
    is_plain = not isinstance(operand, Symbol) or bool(_tensors_behind(m, operand))
    if m.loops or not asked or not is_plain:
        return []
    below = list(tape.ancestors(*asked))
    return [] if any(map(_is_written_to, below)) else [each for each in below if not each.inputs]


def _is_drawn(value: tape.Value) -> bool:
    """Whether random numbers are in a tensor that is made of nothing else."""
    effect = lookup(value.op)
    return value.kind is not tape.Kind.PARAMETER and effect is not None and effect.random


def _is_made_here(m: Machine, value: tape.Value) -> bool:
    """Whether a tensor is written down, filled or drawn, in sizes that are known."""
    sizes = [size for _, given in value.arguments for size in _sizes(given)]
    is_known = all(m.oracle.facts.number(size) is not None for size in sizes)
    is_filled = value.kind is tape.Kind.CONSTANT or has(value.op, Trait.COUNTS_UP)
    return is_known and (is_filled or _is_drawn(value))


def _sizes(given: object) -> tuple[Symbol, ...]:
    """The numbers that are not written down in an argument: `n` of `(n, 3)`."""
    parts = given if isinstance(given, tuple) else (given,)
    return tuple(part for part in parts if isinstance(part, Symbol))


def _is_written_down(value: tape.Value) -> bool:
    """Whether what is made of no other tensor has the numbers that stand in the program:
    `torch.tensor([0, 1])`, `torch.linspace(-1, 1, 31)`.
    """
    if value.kind is tape.Kind.CONSTANT:
        return value.number is None
    asked = (given for _, given in value.arguments)
    return has(value.op, Trait.COUNTS_UP) and not any(
        isinstance(given, Symbol | tape.Value) for given in asked
    )


def _is_written_to(value: tape.Value) -> bool:
    return value.storage is not None and bool(value.storage.writes)


def _tensors_behind(m: Machine, *asked: object) -> tuple[tape.Value, ...]:
    """The tensors that symbols stand for, or are derived from."""
    known: dict[Symbol, None] = {}
    pending = list(asked)
    for symbol in pending:
        if isinstance(symbol, Symbol) and symbol not in known:
            known[symbol] = None
            # what a function was called with is the key: `int(x)`
            pending += symbol.key, None if _is_of_object(symbol) else symbol.source
    return m.values_of(known)


def _is_of_object(symbol: Symbol) -> bool:
    """Whether it is an attribute that no tensor has, `context.network`: of something else."""
    match symbol.key:
        case ("attribute", str(name)):
            known = find_attribute(_TENSOR, name), find_method(_TENSOR, name), lookup(name)
            return all(found is None for found in known)
    return False


def is_bounded(m: Machine, test: Test) -> bool:
    """Whether a tensor, or a number that one gave, is held against a bound that no tensor gave:
    `norm > limit`.

    Zero and infinity are none: that something is positive, or finite, does not hang on its scale.
    Nor does how many axes or rows it has.
    """
    if _is_a_size(test.subject):
        return False
    match test.relation.removesuffix(" symbol"), test.subject.key:
        case "<" | "<=" | ">" | ">=", _:
            bound: object = test.operand
        case "true", ("<" | "<=" | ">" | ">=", bound):
            pass
        case _:
            return False
    return bound not in (0, math.inf, -math.inf) and not _tensors_behind(m, bound)


def _is_a_size(symbol: Symbol | None) -> bool:
    """Whether what a symbol stands for is computed of the shape of a tensor: `x.ndim`,
    `len(x) - 1`, `x.shape[0]`.
    """
    while symbol is not None:
        if symbol.key in _SIZES or (isinstance(symbol.key, tuple) and symbol.key[:1] == ("size",)):
            return True
        symbol = symbol.source
    return False


def says_even(test: Test, answer: bool) -> bool:
    """Whether a remainder was asked for, and is zero by the answer; or whole windows are counted up
    to some number.

    `if i // window >= updates: continue`
    """
    holds = answer is not test.negated
    match test.subject.key:
        case ("%", *_):
            pass
        case ("//", *_):
            order = test.relation.removesuffix(" symbol")  # against a number that is not known
            return order in (("<", "<=") if holds else (">", ">="))
        case _:
            return False
    match test.relation, test.operand:
        case ("==", 0) | ("<", 1) | ("<=", 0):
            return holds
        case ("true", _) | (">", 0) | (">=", 1):
            return not holds
    return False


def excludes_zero(test: Test, answer: bool) -> bool:
    """Whether the subject of a question is not zero where this is the answer."""
    holds, bound = answer is not test.negated, test.operand
    if test.relation == "true":
        return holds
    if not isinstance(bound, int | float):
        return False
    at_zero = {
        "==": bound == 0,
        "<": bound > 0,
        "<=": bound >= 0,
        ">": bound < 0,
        ">=": bound <= 0,
    }.get(test.relation)
    return at_zero is not None and at_zero is not holds
