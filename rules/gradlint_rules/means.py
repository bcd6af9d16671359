"""Means of losses: whether a window's losses are means over their batches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gradlint import evidence
from gradlint.operations import Trait, canonical, has
from gradlint.tape import (
    Backward,
    Kind,
    Value,
)

# which keep what a loss is a mean of, up to a factor
_KEEPS = (Trait.ADDS, Trait.SCALES, Trait.SUMS, Trait.JOINS, Trait.CASTS, Trait.REARRANGES)
_SHOWN = ("scale", "neg", "positive", "part", "clone")


def is_whole_mean(sinks: Sequence[Backward]) -> bool:
    """Whether losses of a window are means over their batches, or sums with such terms, and divided
    by nothing since.

    A sum that is divided by a count that all of them share, of the whole batch, is a part of one
    mean.
    """
    loss, shared = sinks[0].value, _shared(sinks)
    seen, pending = {id(loss)}, [loss]
    weighted = _weighted(loss, shared)
    for value in pending:
        if (_is_scaled(value, shared) and id(value) not in weighted) or is_unreduced(value):
            continue
        if is_mean(value):
            if any(_is_scaled(source, shared) and _is_of(source, value) for source in value.inputs):
                continue  # `(losses / 4).mean()`, `amp.scale_loss(loss / 4, optimizer)`
            return True
        for source in value.inputs if _keeps_scale(value) else ():
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def _shared(sinks: Sequence[Backward]) -> frozenset[int]:
    """What all of these losses are computed from, by id; nothing where no data or part of a batch
    is of one alone.
    """
    first, *others = ({id(value) for value in sink.ancestors} for sink in sinks)
    shared = first.intersection(*others)
    own = [value for value in sinks[0].ancestors if id(value) not in shared]
    # what is made before the rounds, and is of one alone, is a part as well
    depth = len(sinks[0].iteration)
    differs = any(value.kind is Kind.DATA or len(value.iteration) < depth for value in own)
    return frozenset(shared) if differs or any(map(_is_part, sinks[0].ancestors)) else frozenset()


def _is_part(value: Value) -> bool:
    """Whether it holds some of the elements of another tensor: an output of `split`,
    `x[start : start + 8]`.
    """
    return "multi-output" in value.flags or canonical(value.op) == "getitem"


def _weighted(loss: Value, shared: Collection[int]) -> set[int]:
    """The terms of a sum that each have a weight of their own, which is none of the window: that is
    one for all.
    """
    seen, terms = {id(loss)}, [loss]
    for value in terms:
        for source in value.inputs if _keeps_scale(value) and not _is_scaled(value, shared) else ():
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                terms.append(source)
    products = [term for term in terms if canonical(term.op) == "mul" and _is_scaled(term, shared)]
    weights = {id(term): _weight(term) for term in products}
    return set(weights) if len(set(weights.values())) > 1 else set()


def _weight(product: Value) -> object:
    """What identifies the number in a product."""
    numbers = tuple(id(source) for source in product.inputs if _can_be_number(source))
    return product.factor if product.factor is not None else numbers


def _is_of(divided: Value, made: Value) -> bool:
    """Whether what is made of a divided value is divided, too: a mean of losses, and what is made
    of a loss.
    """
    return has(made.op, Trait.MEANS) or (
        made.op == "call" and "loss" in f"{divided.name} {divided.text}".lower()
    )


def is_unreduced(value: Value) -> bool:
    """Whether a loss was asked for as a sum, or element by element."""
    return bool(value.flags & {"sum-reduction", "none-reduction"}) or value.argument(
        "reduction"
    ) in ("sum", "none")


def _is_scaled(value: Value, shared: Collection[int]) -> bool:
    """Whether this divides by a number but one, or by what all losses share, or multiplies by one
    below 1.
    """
    is_by_tensor = (
        len([source for source in value.inputs if source.in_torch and not _can_be_number(source)])
        > 1
    )
    if "division" in value.flags or canonical(value.op) == "div":
        divisor = value.argument(1, "other")
        if 1 in (value.factor, divisor):
            return False
        is_of_all = isinstance(divisor, Value) and _is_of_all(divisor, shared)
        return value.factor is not None or not is_by_tensor or is_of_all
    if canonical(value.op) == "mul" and not is_by_tensor:
        return not (isinstance(value.factor, int | float) and abs(value.factor) >= 1)
    return False


def _is_of_all(divisor: Value, shared: Collection[int]) -> bool:
    """Whether a divisor without gradient is computed from what all losses share, and from
    constants.
    """
    if divisor.requires_grad:
        return False
    seen, pending = {id(divisor)}, [divisor]
    for value in pending:
        if _is_part(value):
            return False
        if id(value) in shared or value.kind is Kind.CONSTANT:
            continue
        if not value.inputs:
            return False
        new = [source for source in value.inputs if id(source) not in seen]
        seen.update(map(id, new))
        pending += new
    return True


def _can_be_number(value: Value) -> bool:
    """Whether nothing is known of a value: the window can come from any object's configuration, or
    be looked up.
    """
    if value.op == "part" or has(value.op, Trait.ARITHMETIC):
        return all(map(_can_be_number, value.inputs))
    if value.op == "call" and value.assumed:
        return all(
            source.kind is Kind.PARAMETER or _can_be_number(source) for source in value.inputs
        )
    return value.kind is Kind.UNKNOWN or (value.kind is Kind.DATA and value.op == "input")


def is_mean(value: Value) -> bool:
    """Whether a value is a mean, or a loss that is one by its operation or by what it is called."""
    name = canonical(value.op)
    if has(name, Trait.MEANS, Trait.LOSSES):
        return True
    is_ratio = name == "div" and len(value.inputs) > 1
    said = (value.text.partition("(")[0], value.name)
    return is_ratio or (
        value.op == "call"
        and "loss" in value.text.lower() + value.name.lower()
        and not any(map(evidence.is_summed, said))
    )


def _keeps_scale(value: Value) -> bool:
    name = canonical(value.op)
    return name in _SHOWN or has(name, *_KEEPS)
