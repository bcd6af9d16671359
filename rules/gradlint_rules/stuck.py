"""Parameters that were made as zeros to be trained, and frozen before anything changed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Fact, Kind, Parameter, Tape, Value

_SHAPES = (Trait.REARRANGES, Trait.CASTS)


def stuck_at_zero(tape: Tape, fact: Fact, last: int) -> Parameter | None:
    """The parameter that a statement freezes, where all that it is for is multiplied by its zeros:
    the second matrix of an adapter.

    One that is added, or was loaded or written, is another matter.
    """
    own = fact.value.parameter if fact.value is not None else None
    if own is None or fact.order > last or not _is_of_zeros(fact.value):
        return None
    sinks = [sink for sink in tape.backwards() if fact.order < sink.order < last]
    uses = [use for sink in sinks for use in _uses(sink.ancestors, own)]
    return own if uses and all(map(_is_product, uses)) else None


def _is_of_zeros(leaf: Value | None) -> bool:
    """Whether a parameter begins with zeros, and nothing is seen to write or load others."""
    if leaf is None or leaf.kind is not Kind.PARAMETER or leaf.assumed:
        return False
    writes = leaf.storage.writes if leaf.storage is not None else ()
    is_zero = isinstance(leaf.number, int | float) and leaf.number == 0
    return is_zero and not writes and "loaded" not in leaf.flags


def _uses(values: Sequence[Value], own: Parameter) -> Iterator[Value]:
    """What a parameter is an operand of, be it in another shape."""
    forms = {id(value) for value in values if value.parameter is own}
    for value in reversed(values):  # the loss stands first
        if not any(id(source) in forms for source in value.inputs):
            continue
        if has(value.op, *_SHAPES):
            forms.add(id(value))
        else:
            yield value


def _is_product(value: Value) -> bool:
    is_scaled = has(value.op, Trait.SCALES) and canonical(value.op) != "div"
    return is_scaled or has(value.op, Trait.CONTRACTS)
