"""How a loss is put together: its terms, factors, quotients and scalings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.operations import Trait, canonical, has
from gradlint.tape import (
    Cut,
    Value,
    graph,
)
from gradlint_rules.cuts import is_cut, is_meant

CUTS = (Cut.DETACH, Cut.COPY, Cut.NON_DIFFERENTIABLE)
_SUMS = (Trait.ADDS, Trait.SUMS, Trait.MEANS, Trait.JOINS)
_SHAPES = (Trait.REARRANGES, Trait.CASTS)
# what `gather` takes of a distribution twice, once detached, is a ratio of policies
_PARTS = ("part", "getitem", "select", "narrow", "index_select")
_SHOWS = ("neg", "clone", "scale")  # the last by a scaler


def is_sum(value: Value) -> bool:
    """Whether it adds up or averages what it is computed from: `a - b`, `torch.stack(losses)`."""
    return value.op == "python" or has(value.op, *_SUMS)


def is_factor(value: Value) -> bool:
    """Whether it is a product or a quotient."""
    return has(value.op, Trait.SCALES)


def is_quotient(value: Value) -> bool:
    """Whether it is a quotient."""
    return canonical(value.op) == "div"


def _is_shown(value: Value) -> bool:
    """Whether it is a multiple or another shape of what it is computed from."""
    return canonical(value.op) in _SHOWS or has(value.op, *_SHAPES)


def scalings(term: Value) -> Iterator[Value]:
    """A term, and what it is a multiple, another shape or the sum of."""
    pending = [term]
    for value in pending:
        yield value
        if is_factor(value) or _is_shown(value) or is_sum(value):
            pending += value.inputs


def is_multiplied_by_zero(term: Value) -> bool:
    """Whether a term is multiplied by a number that is 0: it is computed to be shown."""
    return any(
        is_factor(value) and not is_quotient(value) and _is_zero(value.factor)
        for value in scalings(term)
    )


def _is_zero(number: object) -> bool:
    return isinstance(number, int | float) and number == 0


def detached_divisors(quotient: Value) -> Iterator[tuple[Value, Value]]:
    """The detached divisor of a quotient whose two sides are different parts of one prediction, and
    its cut.
    """
    dividend, *divisors = quotient.inputs
    for source in divisors if dividend.requires_grad else ():
        if (
            not source.requires_grad
            and not is_meant(source)
            and is_cut(source)
            and source.cut in CUTS
        ):
            own = [part for part in source.inputs if _whole(part) is not None]
            others = [part for part in graph(dividend) if _whole(part) is not None]
            if any(
                _whole(part) is _whole(other) and part is not other
                for part in own
                for other in others
            ):
                yield source, source


def _whole(part: Value) -> Value | None:
    """What carries a gradient and a value is a part of: `predictions` of `predictions[:, 0]`."""
    is_part = canonical(part.op) in _PARTS or "multi-output" in part.flags
    return part.inputs[0] if is_part and part.inputs and part.inputs[0].requires_grad else None


def cut_inputs(value: Value) -> Iterator[tuple[Value, Value]]:
    """The inputs without gradient beside one that has it, each with what may be an unwanted cut
    behind it.
    """
    live = [source for source in value.inputs if source.requires_grad]
    for source in value.inputs:
        if live and not source.requires_grad:
            yield from ((source, cut) for cut in _suspects(source, live, is_term=is_sum(value)))


def skeleton(loss: Value) -> Iterator[Value]:
    """The sums, means and scalings that a loss is put together by, from the loss down."""
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        live = [source for source in value.inputs if source.requires_grad]
        if is_factor(value) and len(live) > 1:
            continue
        if not (is_factor(value) or is_sum(value) or _is_shown(value)):
            continue
        yield value
        for source in live:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _suspects(dead: Value, live: Sequence[Value], *, is_term: bool) -> Iterator[Value]:
    """The cuts behind a dead input, unless its names, or what it is combined with, say that they
    are meant.
    """
    if is_meant(dead):
        return
    beside = {id(value) for source in live for value in _addends(source)}
    for cut in _cuts(dead):
        is_direct = cut is dead or (is_term and cut in dead.inputs)
        if (
            cut.cut in CUTS
            and not is_meant(cut)
            and not (is_direct and _is_straight_through(cut, beside))
        ):
            yield cut


def _cuts(dead: Value) -> list[Value]:
    """The first cuts after the parameters behind `dead`, in source order."""
    return sorted(
        (value for value in without_gradient(dead) if is_cut(value)), key=lambda cut: cut.at
    )


def without_gradient(value: Value) -> list[Value]:
    """`value` and what flows into it without a gradient, as far as the cuts."""
    seen, found = {id(value)}, [value]
    for current in found:
        for source in current.inputs:
            if not source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                found.append(source)
    return found


def _is_straight_through(cut: Value, beside: set[int]) -> bool:
    """Whether what was cut (or an operand of it) carries its gradient right beside the cut:
    `x + (q - x).detach()`.
    """
    live = [source for source in cut.inputs if source.requires_grad]
    return any(id(value) in beside for source in live for value in (source, *source.inputs))


def _addends(live: Value) -> tuple[Value, ...]:
    return (live, *live.inputs) if is_sum(live) else (live,)
