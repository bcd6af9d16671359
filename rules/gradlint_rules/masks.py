"""Masks of minus infinity in front of a softmax, and which of them can fill a whole row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value
from gradlint_rules.choices import filled, infinities
from gradlint_rules.numbers import key, origin, unchanged

_BOTH = ("mul", "einsum", "matmul", "bmm")  # hold where both factors do
_ABOVE, _BELOW = ("gt", "ge", "ne", "bool", "to"), ("eq", "lt", "le")
_MOST = 16  # parts of a mask


@dataclass(frozen=True, slots=True)
class Fill:
    """A choice that puts minus infinity among the logits of a softmax.

    `is_added`: it stands in a summand that has no gradient, so that what comes back of a row is not
    masked again.
    """

    choice: Value
    is_added: bool


def is_softmax(value: Value) -> bool:
    """Whether it is a softmax or its logarithm."""
    return canonical(value.op) in ("softmax", "log_softmax")


def fills(softmax: Value) -> Iterator[Fill]:
    """What fills logits of a softmax with minus infinity."""
    for choice in infinities(softmax.inputs[0]) if softmax.inputs else ():
        yield Fill(choice, not choice.requires_grad)


def fills_rows(fill: Fill) -> bool:
    """Whether the mask is made of a side of queries and a side of keys, so that a query can be left
    without a key.
    """
    mask, is_kept = filled(fill.choice)
    if mask is None:
        return False
    parts = list(_parts(mask, is_kept))
    return any(_is_pair(one, other) for one, other in itertools.combinations(parts, 2))


def _parts(mask: Value, is_kept: bool) -> Iterator[Value]:
    """What must all hold for a logit to be kept (`is_kept`), or what leaves it out by itself."""
    pending = [(mask, is_kept)]
    for value, kept in pending:
        found = _shown(value)
        name, inputs = canonical(found.op), found.inputs
        is_negated = has(name, Trait.NEGATES) or (name == "sub" and found.argument(0) == 1)
        if len(pending) > _MOST or not inputs:
            continue
        if is_negated:
            pending.append((inputs[0], not kept))
        elif len(inputs) == 1 and name in _ABOVE:
            pending.append((inputs[0], kept))
        elif len(inputs) == 1 and name in _BELOW:
            pending.append((inputs[0], not kept))
        elif len(inputs) == 2 and _joins(name, kept):
            yield from inputs
            pending += [(source, kept) for source in inputs]


def _joins(name: str, is_kept: bool) -> bool:
    """Whether a mask holds where both of its parts do; or, of one that is not kept, where either
    does.
    """
    if is_kept:
        return name in _BOTH or has(name, Trait.HOLDS_BOTH)
    return name == "add" or has(name, Trait.HOLDS_EITHER)


def _shown(value: Value) -> Value:
    """The mask, below casts and changes of its shape alone."""
    return origin(value, selected=False)


def _is_pair(one: Value, other: Value) -> bool:
    """Whether two masks are of the same things, one along the rows and one along the columns; or
    one is of rows.
    """
    sources = _shown(one), _shown(other)
    # all of it is the same
    if one is other or any(source.number is not None for source in sources):
        return False
    if key(sources[0]) == key(sources[1]):
        return True
    return _is_of_rows(one) != _is_of_rows(other)


def _is_of_rows(mask: Value) -> bool:
    """Whether a mask says the same of all keys: `mask[:, :, None]`, `mask.unsqueeze(-1)`."""
    for value in unchanged(mask, selected=False):
        if canonical(value.op) == "unsqueeze" and value.argument(1, "dim") == -1:
            return True
        index = value.argument(1) if canonical(value.op) == "getitem" else None
        if isinstance(index, tuple) and index and index[-1] is None:
            return True
    return False


def is_cleaned(softmax: Value, users: dict[int, list[Value]]) -> bool:
    """Whether all that is computed from a softmax replaces what is not a number, or what a mask
    leaves out, first.
    """
    found = users.get(id(softmax), [])
    return bool(found) and all(_cleans(user, users) for user in found)


def _cleans(value: Value, users: dict[int, list[Value]]) -> bool:
    """Whether it is such a choice, or shows the same numbers to one."""
    is_shown = origin(value, selected=False) is not value
    return has(value.op, Trait.CHOOSES) or (is_shown and is_cleaned(value, users))
