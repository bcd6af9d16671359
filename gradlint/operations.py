"""What torch's operations compute, whatever they are called: one name for each, and its traits.

    canonical("torch.Tensor.true_divide_")      # "div"
    canonical("torch.nn.Softmax")               # "softmax"
    has("torch.concat", Trait.JOINS)            # True

Read from `operations.toml`, which `tests/test_operations.py` holds against a running torch. What an
operation does to the gradient, and what it saves, is said by `library/effects.py`.
"""

from __future__ import annotations

import enum
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path


class Trait(enum.Enum):
    """What can be true of an operation; `operations.toml` says what each one means."""

    POINTWISE = "pointwise"
    ARITHMETIC = "arithmetic"
    ADDS = "adds"
    SCALES = "scales"
    CLAMPS = "clamps"
    KEEPS_ZERO = "keeps_zero"
    KEEPS_SHAPE = "keeps_shape"
    NEVER_NEGATIVE = "never_negative"
    POSITIVE = "positive"
    BOUNDED = "bounded"
    BOUNDED_ABOVE = "bounded_above"
    REARRANGES = "rearranges"
    EXPANDS = "expands"
    CASTS = "casts"
    TO_INTEGERS = "to_integers"
    COPIES = "copies"
    LEAVES_TORCH = "leaves_torch"
    SELECTS = "selects"
    SPLITS = "splits"
    UNBINDS = "unbinds"
    EXTREMES = "extremes"
    JOINS = "joins"
    SUMS = "sums"
    MEANS = "means"
    LOSSES = "losses"
    REDUCES = "reduces"
    PAIRS = "pairs"
    CONTRACTS = "contracts"
    CONVOLVES = "convolves"
    RECURS = "recurs"
    POOLS_MEANS = "pools_means"
    DROPS = "drops"
    COMPARES = "compares"
    FINDS_SMALLER = "finds_smaller"
    FINDS_LARGER = "finds_larger"
    NEGATES = "negates"
    HOLDS_BOTH = "holds_both"
    HOLDS_EITHER = "holds_either"
    ASKS_FINITE = "asks_finite"
    ROUNDS = "rounds"
    CHOOSES = "chooses"
    WRITES_PART = "writes_part"
    ZEROS = "zeros"
    ONES = "ones"
    MADE_OF_NOTHING = "made_of_nothing"
    OF_NUMBERS = "of_numbers"
    COUNTS_UP = "counts_up"
    DRAWS = "draws"
    INVERSE_OF_BOUNDED = "inverse_of_bounded"
    ROOTS = "roots"
    POWERS = "powers"
    LOGARITHMS = "logarithms"
    RECTIFIES = "rectifies"


@functools.cache
def _read() -> Mapping[str, Mapping[str, str]]:
    with Path(__file__).with_suffix(".toml").open("rb") as stream:
        return tomllib.load(stream)


@functools.cache
def names() -> Mapping[str, str]:
    """The other names of operations, each with the one that stands here for all."""
    return {other: name for name, others in _read()["names"].items() for other in others.split()}


@functools.cache
def having(trait: Trait) -> frozenset[str]:
    """The operations that have a trait, by their canonical names."""
    return frozenset(_read()["traits"][trait.value].split())


@functools.lru_cache(maxsize=4096)
def canonical(op: str) -> str:
    """The one name of an operation: without its namespace, the underscores of an in-place twin or
    of an operator, and the same for all of its aliases.

    `torch.Tensor.mul_`, `torch.multiply` and `__imul__` are `mul`.
    """
    word = op.rpartition(".")[2].strip("_")
    return names().get(word, word)


@functools.lru_cache(maxsize=8192)
def has(op: str, *traits: Trait) -> bool:
    """Whether an operation has one of some traits."""
    name = canonical(op)
    return any(name in having(trait) for trait in traits)
