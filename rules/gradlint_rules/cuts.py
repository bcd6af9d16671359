"""Cuts: values at which a route of the gradient ends, and which of them are there on purpose."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint import evidence
from gradlint.finding import Span
from gradlint.operations import Trait, canonical, has
from gradlint.tape import (
    PREDICTED,
    Backward,
    Cut,
    Kind,
    Tape,
    Value,
    ancestors,
)
from gradlint_rules.cached import of_tape

_OF_NUMBERS = {"int", "float", "torch.tensor"}


def place(cut: Value) -> Span:
    """Where a cut is reported: at what switched grad mode off or froze the leaf, or else at the
    operation.
    """
    if cut.cut in (Cut.GRAD_MODE, Cut.FROZEN) and cut.cut_at is not None:
        return cut.cut_at
    return cut.at


def is_cut(value: Value) -> bool:
    """Whether a route ends here: no gradient, although an input has one, or a frozen leaf."""
    if value.requires_grad or value.cut in (None, Cut.CONSTANT) or _is_setting(value):
        return False
    return value.cut is Cut.FROZEN or any(source.requires_grad for source in value.inputs)


def first_cuts(term: Value) -> list[Value]:
    """The first cuts after the parameters behind a term, in source order."""
    seen, found = {id(term)}, [term]
    for value in found:
        for source in value.inputs:
            if id(source) not in seen and not (source.requires_grad and is_cut(value)):
                seen.add(id(source))
                found.append(source)
    return sorted((value for value in found if is_cut(value)), key=place)


def cut_short(sink: Backward, tape: Tape) -> Sequence[Value]:
    """What a loss is computed from that ends a route or lets nothing but zeros through, nearest
    first.
    """
    return _cut_short(tape)[id(sink)]


@of_tape
def _cut_short(tape: Tape) -> dict[int, list[Value]]:
    ends = (None, Cut.CONSTANT)
    return {
        id(sink): [
            value for value in sink.ancestors if value.cut not in ends or value.zero_gradient
        ]
        for sink in tape.backwards()
    }


def _is_setting(cut: Value) -> bool:
    """Whether it is `int(size * (5 - epoch))` or `math.cos(epoch)`: of numbers, for all that is
    known.
    """
    if not cut.assumed or not _is_of_numbers(cut):
        return False
    below = (value for value in ancestors(cut) if value is not cut)
    return all(
        value.kind is Kind.UNKNOWN or _is_arithmetic(value) or _is_of_numbers(value)
        for value in below
    )


def _is_arithmetic(value: Value) -> bool:
    """Whether an operator of Python made it, of numbers or tensors: `a * b`, and not `a.mul(b)`."""
    return has(value.op, Trait.ARITHMETIC) and value.op == f"torch.{canonical(value.op)}"


def _is_of_numbers(value: Value) -> bool:
    """Whether it is made by what takes numbers as well as tensors, and gives back no tensor of a
    graph.
    """
    return value.op in _OF_NUMBERS or value.op.startswith(("math.", "numpy."))


def is_bypassed(cut: Value, tape: Tape) -> bool:
    """Whether it lies in the `forward` of a Function that was called without `apply`, which is
    GL804.
    """
    called = {fact.at for fact in tape.facts("function-not-applied")}
    return bool(called) and any(at in called for at in cut.stack)


def is_meant(cut: Value) -> bool:
    """Whether the names around a cut say that it is there on purpose: a target, a teacher, a moving
    average.

    What it takes that carries no gradient, such as the target of a loss, is not cut here; and what
    a part is handed as a prediction is none of these, whatever it is called.
    """
    if any(PREDICTED in source.flags for source in cut.inputs):
        return evidence.is_left_untrained(cut.name)
    return are_meant((cut, *(source for source in cut.inputs if source.requires_grad)))


def are_meant(values: Sequence[Value]) -> bool:
    """Whether one of some values is called a target, a teacher, a moving average."""
    return any(
        evidence.is_left_untrained(name)
        for value in values
        for name in (value.name, value.text.partition("(")[0])
    )
