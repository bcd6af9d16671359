"""The keys of dicts: which values are hashable, and under which key a dict keeps an item."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint.interpret import arguments
from gradlint.interpret.values import (
    Abstract,
    Const,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
MOST_PARTS = 200  # of a tuple that is a key, with all that is in it


def hashable(value: Abstract) -> object | None:
    """The key that a value is in a dict: a constant itself, a known object its identity; None where
    unknown.
    """
    part = arguments.bounds(value)
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
