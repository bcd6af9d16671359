"""Losses that carry no gradient, and what took it from them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Denied, Related, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Cut,
    Decision,
    DType,
    Kind,
    May,
    Tape,
    Value,
    ancestors,
)
from gradlint_rules.arrivals import Arrival, arrivals, conditions
from gradlint_rules.cached import of_paths
from gradlint_rules.cuts import is_bypassed, is_cut, is_meant, place
from gradlint_rules.freezes import frozen_for_the_step, is_trained_by
from gradlint_rules.words import calls, maker, places, quoted, to_sink

# whose gradient goes to their first input alone, or which choose by the others
_FIRST = ("div", "floor_divide", "masked_fill", "clamp")


def _is_rate(loss: Value) -> bool:
    """Whether it is how often something is so, which is measured more often than it is
    minimised.
    """
    while loss.dtype is not DType.BOOL and len(loss.inputs) == 1:
        loss = loss.inputs[0]
    return loss.dtype is DType.BOOL


def _compares(cut: Value) -> bool:
    """Whether it asks how near a prediction is to what is given beside it, as a measure does:
    `(y - z).abs() < 0.5`.

    Of what is computed from the prediction alone, `y > 0.5`, a loss is made by mistake.
    """
    return cut.dtype is DType.BOOL and any(map(_is_of_both, cut.inputs))


def _is_of_both(operand: Value) -> bool:
    """Whether a prediction and something else that is given are in it."""
    below = list(ancestors(operand))
    is_beside = any(value.op == "input" and value.in_torch for value in below)
    return is_beside and any(value.kind is Kind.PARAMETER for value in below)


class Why(enum.Enum):
    """Why a loss carries no gradient."""

    CONSTANT = "constant"
    COPIED = "copied"
    GRAD_MODE = "grad mode"
    NON_DIFFERENTIABLE = "non-differentiable"
    FROZEN = "frozen"
    OTHER = "other"


_WHY = {
    Cut.DETACH: Why.COPIED,
    Cut.COPY: Why.COPIED,
    Cut.GRAD_MODE: Why.GRAD_MODE,
    Cut.NON_DIFFERENTIABLE: Why.NON_DIFFERENTIABLE,
    Cut.FROZEN: Why.FROZEN,
}


@dataclass(frozen=True, slots=True)
class Starved:
    """A loss without gradient: where it arrives, one value that is to blame, and the others on the
    same path.
    """

    arrival: Arrival
    culprit: Value
    others: tuple[Value, ...]
    decisions: tuple[Decision, ...]
    is_always: bool = False  # on all paths to the sink

    @property
    def denied(self) -> Mapping[str, str]:
        """The hint for a run: that the loss at this sink carries a gradient would refute what is
        reported.
        """
        return Denied.GRADIENT.hint if self.is_always else {}

    @property
    def severity(self) -> Severity | None:
        """That of a part, where the rule's own is too much: its caller knows what decides on the
        path to it.
        """
        if not self.arrival.sink.assumed:
            return None
        if _is_rate(self.arrival.loss) or any(map(_compares, (self.culprit, *self.others))):
            return Severity.NOTE
        if self.is_always or not self.decisions:
            return None
        return (
            Severity.WARNING
            if any(decision.about for decision in self.decisions)
            else Severity.NOTE
        )

    @property
    def at(self) -> Span:
        return place(self.culprit)

    @property
    def related(self) -> tuple[Related, ...]:
        """The other cuts, the calls that led to this one, and the sink."""
        stack = self.culprit.cut_stack or self.culprit.stack
        cuts = [Related(place(other), _also(other)) for other in self.others]
        return places(
            self.at, *cuts, *calls(stack, self.arrival.sink.stack), to_sink(self.arrival.sink)
        )


def _also(other: Value) -> str:
    if other.kind is Kind.CONSTANT:
        return f"{quoted(other)} is a constant, too"
    match other.cut:
        case Cut.GRAD_MODE:
            return "grad mode is off here for another part of the loss"
        case Cut.FROZEN:
            return "more of its parameters are frozen here"
    return f"{maker(other)} cuts another route"


def starved(paths: Paths, why: Why) -> Iterator[Starved]:
    """The losses of an entry that get no gradient for the reason `why`, each culprit once."""
    reported: set[Span] = set()
    for blamed in _blamed(paths):
        if why is Why.CONSTANT and (_is_always_cut(blamed) or _is_no_loss(blamed)):
            continue
        for found in _at_sink(blamed, why, paths):
            if found.at not in reported and not is_bypassed(found.culprit, found.arrival.tape):
                reported.add(found.at)
                yield found


_Blame = dict[Why, list[Value]]


@of_paths
def _blamed(paths: Paths) -> list[list[tuple[Arrival, _Blame]]]:
    """What is to blame at each arrival of a loss, those at one sink together; of the sinks where
    anything is.
    """
    found = ([(arrival, _blame(arrival)) for arrival in sink] for sink in arrivals(paths))
    return [blamed for blamed in found if any(blame for _, blame in blamed)]


def _at_sink(blamed: Sequence[tuple[Arrival, _Blame]], why: Why, paths: Paths) -> Iterator[Starved]:
    """For each culprit at one sink, the path on which the fewest decisions lead to it."""
    by_place: dict[Span, list[tuple[Arrival, list[Value]]]] = {}
    innocent = _in_all_that_are_fed(blamed) if why is Why.CONSTANT else frozenset[Span]()
    for arrival, blame in blamed:
        culprits = blame.get(why, [])
        culprits = [value for value in culprits if place(value) not in innocent] or culprits
        for culprit in culprits if why is Why.CONSTANT else culprits[:1]:
            rest = [value for values in blame.values() for value in values if value is not culprit]
            by_place.setdefault(place(culprit), []).append((arrival, [culprit, *rest]))
    for at in sorted(by_place):
        guilty = {id(arrival.sink) for arrival, _ in by_place[at]}
        rivals = [arrival for arrival, _ in blamed if id(arrival.sink) not in guilty]
        reported = [
            (conditions(arrival, rivals, at), arrival, values) for arrival, values in by_place[at]
        ]
        # of a question with one answer it is not known which
        possible = [
            entry for entry in reported if not any(_is_answered(each, why) for each in entry[0])
        ]
        if not possible:
            continue
        decisions, arrival, (culprit, *others) = min(possible, key=lambda entry: len(entry[0]))
        yield Starved(arrival, culprit, tuple(others), tuple(decisions), _is_always(blamed, paths))


def _is_answered(decision: Decision, why: Why) -> bool:
    """Whether a question has one answer in all runs. Of numbers that a test draws once that is so
    where the other answer would end the run at once: what stands there for nothing at all.
    """
    return decision.is_written or (why is Why.CONSTANT and decision.is_drawn_once)


def _in_all_that_are_fed(blamed: Sequence[tuple[Arrival, _Blame]]) -> frozenset[Span]:
    """The constants that every loss with a gradient is computed from, too: the zero that a sum
    begins with. Beside another constant they are not to blame.
    """
    if all(len(blame.get(Why.CONSTANT, ())) < 2 for _, blame in blamed):
        return frozenset()
    common: frozenset[Span] | None = None
    for arrival in (arrival for arrival, blame in blamed if not blame):
        found = frozenset(
            place(value) for value in ancestors(arrival.loss) if value.kind is Kind.CONSTANT
        )
        common = found if common is None else common & found
        if not common:
            break
    return common or frozenset()


def _is_always(blamed: Sequence[tuple[Arrival, _Blame]], paths: Paths) -> bool:
    """Whether a loss arrives without a gradient on every path, and no code that was not run may
    bring one.
    """
    fed = {id(arrival.tape) for arrival, _ in blamed if not arrival.is_starved}
    return bool(paths.never(lambda tape: id(tape) in fed, May.BIND))


def _is_always_cut(blamed: Sequence[tuple[Arrival, _Blame]]) -> bool:
    """Whether no path brings a gradient to this sink, and a cut and not a constant is what most of
    them share.
    """
    blames = [blame for _, blame in blamed]
    return all(blames) and any(why is not Why.CONSTANT for blame in blames for why in blame)


def _is_no_loss(blamed: Sequence[tuple[Arrival, _Blame]]) -> bool:
    """Whether what is only assumed to be a loss is a constant on every path."""
    return all(arrival.sink.assumed and blame for arrival, blame in blamed)


def _blame(arrival: Arrival) -> _Blame:
    """What leaves this loss without gradient, by reason, in source order; nothing where it has
    one.
    """
    if not arrival.is_starved:
        return _by_reason(_views_of_parameters(arrival.sink))
    terms = list(_dead(arrival.loss, _terms))
    fresh = [value for value in terms if _is_fresh(value)]
    cuts = _cuts(arrival.loss, terms, are_fresh=bool(fresh))
    if cuts:
        cuts = _without_scales(cuts)
        return _by_reason(frozen_for_the_step(cuts, arrival) or _likeliest(cuts, arrival.tape))
    constants = fresh or [
        value for value in terms if value.kind is Kind.CONSTANT and value.number is not None
    ]
    if not constants and _is_of_data(arrival.loss):
        return {Why.CONSTANT: [arrival.loss]}
    return _by_reason([value for value in constants if _is_zero(value)] or constants)


def _is_fresh(value: Value) -> bool:
    """Whether a tensor is made of nothing that has a gradient: `torch.zeros(3)`."""
    return (
        value.kind is Kind.CONSTANT
        and value.in_torch
        and has(value.op, Trait.MADE_OF_NOTHING, Trait.OF_NUMBERS)
    )


def _cuts(loss: Value, terms: Sequence[Value], *, are_fresh: bool) -> list[Value]:
    """The cuts among the terms of a loss; else those below divisors and indices, where no term was
    made of nothing; else those that choose among its terms.
    """
    found = [value for value in terms if is_cut(value)]
    if not found and not are_fresh:
        found = [value for value in _dead(loss, _inputs) if is_cut(value)]
    return found or [cut for value in terms for cut in _selecting(value)]


def _without_scales(cuts: Sequence[Value]) -> list[Value]:
    """The cuts, without numbers that scale what a tensor among them is cut from:
    `loss.detach() * (1 / loss.item())`.

    With the graph of the tensor alone the loss has its gradient; with that of the number, too, it
    has none, or another.
    """
    tensors = [source for cut in cuts if cut.in_torch for source in cut.inputs]
    if not tensors:
        return list(cuts)
    numbers = (cut for cut in cuts if not cut.in_torch)
    known = {id(source) for source in tensors}
    scales = {
        id(cut) for cut in numbers if any(id(value) in known for value in ancestors(*cut.inputs))
    }
    return [cut for cut in cuts if id(cut) not in scales]


def _is_of_data(loss: Value) -> bool:
    """Whether all that a loss is computed from is known to be data or constant."""
    sources = [value for value in ancestors(loss) if not value.inputs]
    return all(value.kind in (Kind.DATA, Kind.CONSTANT) and not value.assumed for value in sources)


def _views_of_parameters(sink: Backward) -> Sequence[Value]:
    """The leaves of a loss, if all are views of parameters made under `no_grad`, which require grad
    by themselves.
    """
    are_views = all(leaf.kind is Kind.LEAF and leaf.cut is Cut.GRAD_MODE for leaf in sink.leaves)
    return sink.leaves if are_views else ()


def _likeliest(cuts: Sequence[Value], tape: Tape) -> list[Value]:
    """The cuts to blame: not a frozen leaf beside another cut, not what was cut on purpose, nearest
    the optimizer.
    """
    kept = [cut for cut in cuts if cut.cut is not Cut.FROZEN] or list(cuts)
    kept = [cut for cut in kept if not is_meant(cut)] or kept
    trained = [
        cut for cut in kept if any(is_trained_by(optimizer, cut) for optimizer in tape.optimizers())
    ]
    return trained or kept


def _by_reason(values: Sequence[Value]) -> _Blame:
    found: _Blame = {}
    seen: set[Span] = set()
    for value in sorted(values, key=lambda value: (place(value), value.op)):
        if place(value) not in seen:
            seen.add(place(value))
            why = (
                Why.CONSTANT
                if value.kind is Kind.CONSTANT
                else _WHY.get(value.cut or Cut.CONSTANT, Why.OTHER)
            )
            found.setdefault(why, []).append(value)
    return found


def _selecting(value: Value) -> Iterator[Value]:
    """The cuts that choose among values that are not all zero: `argmax` of
    `prices[scores.argmax()]`.
    """
    if not _is_of_first(value) or "division" in value.flags or not value.inputs:
        return
    base, *choices = value.inputs
    sources = [source for source in _dead(base, _terms) if not source.inputs]
    if any(not _is_zero(source) for source in sources):
        for choice in choices:
            yield from (
                cut for cut in _dead(choice, _inputs) if not choice.requires_grad and is_cut(cut)
            )


def _is_of_first(value: Value) -> bool:
    return canonical(value.op) in _FIRST or has(value.op, Trait.SELECTS)


def _is_zero(constant: Value) -> bool:
    return has(constant.op, Trait.ZEROS) or constant.number == 0


def _dead(loss: Value, sources: Callable[[Value], tuple[Value, ...]]) -> Iterator[Value]:
    """`loss` and what flows into it without a gradient, as far as the cuts; each once."""
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        yield value
        for source in sources(value):
            if not source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _inputs(value: Value) -> tuple[Value, ...]:
    return () if value.kind is Kind.CONSTANT else value.inputs


def _terms(value: Value) -> tuple[Value, ...]:
    """The inputs whose gradient would be the value's: not a divisor, an index or a condition."""
    name = canonical(value.op)
    if "division" in value.flags and value.argument(0) is not None:
        return tuple(source for source in value.inputs if source is value.argument(0))
    if name == "where" and len(value.inputs) == 3:
        return (
            (value.inputs[0], value.inputs[2])
            if value.op.startswith("torch.Tensor.")
            else value.inputs[1:]
        )
    return _inputs(value)[:1] if _is_of_first(value) else _inputs(value)
