"""# partial-detach (GL109)

One term of a loss is cut from the graph, so that it has a value and no gradient.

## What it does
Takes a loss that carries a gradient apart into its terms, and points at a term that is dead because
something in it was cut: `.detach()`, `.data`, `.item()`, `float(…)`, an operation without
derivative. It also points at a factor or a divisor that `.item()`, `float(…)` or `.data` turned
into a constant, so that half of a formula is not differentiated, and at the detached divisor of a
quotient of two parts of one prediction, `y[:, 0] / y[:, 1].detach()`. So is a term that was cut
from what the step trains and carries a gradient to another optimizer's network alone, where no step
uses it: the critic's opinion of `fake.detach()` in the loss of the generator.

Where a whole loss of several was computed with grad mode off, of what was sampled under `no_grad`,
or by an operation without derivative, it is a `warning`, at what turned grad mode off.

## Why it matters
Every number is right, and the loss even falls. But the regulariser, the entropy bonus or the
distillation term does nothing. Autograd allows it, and sometimes it is meant; so it is a `note`.

## Example
```python
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model, teacher = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
logits = model(x)
with torch.no_grad():
    wanted = F.softmax(teacher(x), dim=-1)
hard = F.cross_entropy(logits, labels)
log_probability = F.log_softmax(logits.detach(), dim=-1)  # expect: GL109
soft = F.kl_div(log_probability, wanted, reduction="batchmean")
loss = hard + 0.7 * soft
optimizer.zero_grad()
loss.backward()
with_both = model.weight.grad.clone()
optimizer.zero_grad()
F.cross_entropy(model(x), labels).backward()
assert torch.equal(with_both, model.weight.grad)
optimizer.step()
```

An entropy bonus that is a number:

```python
import torch

torch.manual_seed(0)
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
distribution = torch.distributions.Categorical(logits=policy(torch.randn(8, 4)))
action = distribution.sample()
gain = (distribution.log_prob(action) * torch.randn(8)).mean()
entropy = distribution.entropy().mean().item()  # expect: GL109
loss = -gain - 0.01 * entropy
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
distribution = torch.distributions.Categorical(logits=policy(torch.randn(8, 4)))
action = distribution.sample()
gain = (distribution.log_prob(action) * torch.randn(8)).mean()
entropy = distribution.entropy().mean()
loss = -gain - 0.01 * entropy
optimizer.zero_grad()
loss.backward()
optimizer.step()
print(entropy.item())
```

## What it does not report
- Straight-through estimators, `x + (q - x).detach()`, and ratios,
  `(log_prob - log_prob.detach()).exp()`.
- Targets, teachers, bootstrap values, baselines and advantages; both halves of a commitment loss;
  states detached between the chunks of a sequence.
- Weights and masks: `loss / loss.item()`, `(p > 0.5) * loss`, a detached factor.
- What is only logged, and what other losses teach alone: `alpha = log_alpha.exp().item()`.
- Terms that are multiplied by 0: they are computed to be shown.
- A bound that is taken from the rest of the loss and added again.
- A mean that moves what is reduced later: `(net(x) * std + samples.mean(dim=0)).mean()`.

## Limits
A stop-gradient inside a nonlinear function, such as one side of a distance, is taken to be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint import evidence
from gradlint.finding import Related, Role, Severity, Span
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import (
    GIVEN_NOTHING,
    OF_A_FUNCTION,
    Backward,
    Cut,
    Kind,
    Optimizer,
    Tape,
    Value,
    ancestors,
    leaves,
)
from gradlint_rules.arrivals import Arrival, arrivals
from gradlint_rules.cuts import are_meant, cut_short, first_cuts, is_meant, place
from gradlint_rules.formulas import (
    CUTS,
    cut_inputs,
    detached_divisors,
    is_factor,
    is_multiplied_by_zero,
    is_quotient,
    is_sum,
    scalings,
    skeleton,
    without_gradient,
)
from gradlint_rules.idle import idle_terms
from gradlint_rules.limits import is_shift
from gradlint_rules.means import is_mean
from gradlint_rules.words import calls, listed, loss_of, maker, places, quoted, to_sink

SEVERITY = Severity.NOTE
AT_RUN_TIME = True
_HELP = (
    "Leave the cut out if this is to be trained; `.detach()` where it is used says that it is "
    "meant."
)
_HELP_IDLE = "Compute the term from what was not cut, if it is to train that; or leave it out."
_HELP_TERM = "Compute it with a gradient if it is to be trained, or leave the term out."
_UNMEANT = (Cut.GRAD_MODE, Cut.NON_DIFFERENTIABLE)


def check(paths: Paths) -> Iterator[Report]:
    """The cuts that leave a term, or half of a formula, of a loss without gradient."""
    reported: set[Span] = set()
    for sink in arrivals(paths):
        for arrival in sink:
            for term, cut in _dead_terms(arrival.sink):
                if place(cut) not in reported and _is_known_to_carry(cut, arrival.tape):
                    reported |= {place(cut), cut.at}
                    yield _report_term(arrival, cut, term)
            sums = (value for value in skeleton(arrival.sink.value) if is_sum(value))
            for term, cut in idle_terms(arrival.tape, arrival.sink, sums):
                if cut.at not in reported:
                    reported.add(cut.at)
                    yield _report_idle(arrival, cut, term)
            is_cut_short = any(value.cut in CUTS for value in cut_short(arrival.sink, arrival.tape))
            for cut, share in _dead_shares(arrival.sink) if is_cut_short else ():
                is_known = cut.at not in reported and _is_known_to_carry(cut, arrival.tape)
                if is_known and not _is_taught_by_another(cut, arrival):
                    reported.add(cut.at)
                    yield _report(arrival, cut, share)


def _is_known_to_carry(cut: Value, tape: Tape) -> bool:
    """Whether more than an assumption says that there is a gradient to cut: parameters are below
    it.

    What an unknown callable gives has some where an optimizer holds them, or may hold them; a
    buffer gives data.
    """
    if _is_setting(cut):
        return False
    found = [leaf for source in cut.inputs for leaf in leaves(source)]
    trained = [leaf for leaf in found if leaf.kind is not Kind.UNKNOWN]
    optimizers = tape.optimizers()
    if any(not leaf.assumed or _is_held(leaf, optimizers) for leaf in trained):
        return True
    if optimizers and all(optimizer.complete for optimizer in optimizers):
        return False
    return any(not leaf.flags & {GIVEN_NOTHING, OF_A_FUNCTION} for leaf in trained)


def _is_setting(cut: Value) -> bool:
    """Whether Python makes a number of what it reads off something out of view that was given no
    tensor: a setting, as likely as a tensor. `float(context.network.weight)`
    """
    if cut.in_torch or not cut.inputs or cut.inputs[0].op != "part":
        return False
    return all(
        value.op in ("part", "call") or value.kind is Kind.PARAMETER
        for value in ancestors(cut.inputs[0])
    )


def _is_taught_by_another(cut: Value, arrival: Arrival) -> bool:
    """Whether this backward teaches nothing below a cut, and others all of it:
    `alpha = log_alpha.exp().item()`.
    """
    own = {id(leaf) for leaf in leaves(arrival.sink.value)}
    below = {id(leaf) for source in cut.inputs for leaf in leaves(source)}
    others = (sink for sink in arrival.tape.backwards() if sink.at != arrival.sink.at)
    taught = {id(leaf) for sink in others for leaf in leaves(sink.value)}
    return below.isdisjoint(own) and below <= taught


def _is_held(leaf: Value, optimizers: Sequence[Optimizer]) -> bool:
    return leaf.parameter is not None and any(
        optimizer.holds(leaf.parameter) for optimizer in optimizers
    )


def _report(arrival: Arrival, cut: Value, share: str) -> Report:
    loss = loss_of(arrival.sink)
    message = f"{maker(cut)} cuts the graph here: {share} of {loss} has a value and no gradient"
    related = places(cut.at, *calls(cut.stack, arrival.sink.stack), to_sink(arrival.sink))
    return Report(cut.at, message, _HELP, related)


def _report_term(arrival: Arrival, cut: Value, term: Value) -> Report:
    """A whole term that nothing is learned from: nobody means that."""
    why = (
        "grad mode is off here" if cut.cut is Cut.GRAD_MODE else f"{maker(cut)} cuts the graph here"
    )
    message = (
        f"{why}: {quoted(term)}, a term of {loss_of(arrival.sink)}, has a value and trains nothing"
    )
    related = places(
        place(cut), *calls(cut.cut_stack or cut.stack, arrival.sink.stack), to_sink(arrival.sink)
    )
    return Report(place(cut), message, _HELP_TERM, related, Severity.WARNING)


def _report_idle(arrival: Arrival, cut: Value, term: Value) -> Report:
    """A term that runs through a network which another optimizer trains, and no longer comes to the
    one meant.
    """
    reached = sorted(
        {f"`{leaf.parameter.path}`" for leaf in leaves(term) if leaf.parameter is not None}
    )
    trained = listed(reached[:2]) + (" and others" if len(reached) > 2 else "")
    message = (
        f"{maker(cut)} cuts the graph here: {quoted(term)}, a term of "
        f"{loss_of(arrival.sink)}, gives gradients "
        f"to {trained}, which no step uses"
    )
    related = places(
        cut.at,
        *calls(cut.stack, arrival.sink.stack),
        Related(term.at, "the term is computed here", Role.COMPUTED),
        to_sink(arrival.sink),
    )
    return Report(cut.at, message, _HELP_IDLE, related)


def _dead_terms(sink: Backward) -> Iterator[tuple[Value, Value]]:
    """The losses in a sum that nothing reaches a parameter by, but others do, each with the cuts
    behind it.
    """
    values = skeleton(sink.value) if _is_cut(sink, _UNMEANT) else ()
    for value in (each for each in values if is_sum(each)):
        is_inner = _is_reduced_later(value, sink)
        alive = [each for each in value.inputs if each.requires_grad]
        losses = [each for each in alive if not is_inner or _is_loss(each)]
        for term in value.inputs:
            is_beside = any(other is not term for other in losses)
            if is_beside and _is_dead(term, sink):
                yield from ((term, cut) for cut in _unmeant_cuts(term))


def _unmeant_cuts(term: Value) -> list[Value]:
    """The cuts that are no `detach` and that nobody means, where no `detach` leaves a term dead:
    one before them, of what they are given, does not.
    """
    cuts = [cut for cut in first_cuts(term) if not is_meant(cut)]
    unmeant = [cut for cut in cuts if cut.cut in _UNMEANT]
    before = {id(value) for cut in unmeant for value in ancestors(*cut.inputs)}
    others = [cut for cut in cuts if cut.cut in (Cut.DETACH, Cut.COPY)]
    return [] if any(id(cut) not in before for cut in others) else unmeant


def _is_reduced_later(sum_: Value, sink: Backward) -> bool:
    """Whether a sum has an element for each of a batch: a mean or a sum of it is taken later.

    What was reduced before moves all of these, and is no loss beside what was not:
    `(net(x) * std + samples.mean(dim=0)).mean()`.
    """
    reductions = (
        value
        for value in skeleton(sink.value)
        if len(value.inputs) == 1 and (is_mean(value) or has(value.op, Trait.SUMS))
    )
    return any(
        value is not sum_ and any(below is sum_ for below in skeleton(value))
        for value in reductions
    )


def _is_dead(term: Value, sink: Backward) -> bool:
    """Whether a term is a loss without gradient that stands for nothing else: no target, and no
    bound of the rest.
    """
    if not (_is_loss(term) and _reaches_nothing(term)) or is_multiplied_by_zero(term):
        return False
    is_used = sum(any(source is term for source in value.inputs) for value in sink.ancestors) > 1
    return not is_used and not are_meant(
        [term, *(source for source in term.inputs if not source.requires_grad)]
    )


def _is_cut(sink: Backward, ways: Sequence[Cut]) -> bool:
    return any(value.cut in ways for value in sink.ancestors)


def _is_loss(term: Value) -> bool:
    """Whether a term is a loss by itself, weighted or not: no maximum that is taken away, no
    offset.
    """
    return any(is_mean(value) or has(value.op, Trait.SUMS) for value in scalings(term))


def _reaches_nothing(term: Value) -> bool:
    """Whether no parameter is known behind a term: what it is compared with is a target, which only
    may carry one.
    """
    return all(
        leaf.kind is Kind.UNKNOWN
        and leaf.op == "input"
        and (is_meant(leaf) or _is_only_compared_with(leaf, term))
        for leaf in leaves(term)
    )


def _is_only_compared_with(leaf: Value, term: Value) -> bool:
    """Whether something handed in is what losses of torch take second, the target, and nothing that
    they take first.
    """
    losses = [
        value for value in scalings(term) if value.op.startswith("torch.nn.") and is_mean(value)
    ]
    first = [source for loss in losses for source in leaves(loss.inputs[0])]
    return bool(losses) and all(leaf is not other for other in first)


def _dead_shares(sink: Backward) -> Iterator[tuple[Value, str]]:
    """The cut of each term without gradient, and of each factor in its graph that was copied out of
    it.
    """
    for value in skeleton(sink.value):
        if is_sum(value):
            terms = (each for each in cut_inputs(value) if not is_shift(value, each[0]))
            yield from ((cut, _titled("a term", source)) for source, cut in terms)
    for value in sink.graph:
        if is_factor(value):
            for source, cut in cut_inputs(value):
                if _is_copied(cut, source) and not _is_weight(cut, source):
                    yield cut, _titled("a factor", source)
        if is_quotient(value):
            yield from (
                (cut, _titled("the divisor", source)) for source, cut in detached_divisors(value)
            )


def _titled(what: str, source: Value) -> str:
    return f"{quoted(source)}, {what}" if source.name else what


def _is_copied(cut: Value, source: Value) -> bool:
    """Whether the values left torch on the way from the cut, or its graph by `.data`: not by a mere
    `detach()`.
    """
    if cut.cut is Cut.NON_DIFFERENTIABLE:
        return False
    return (
        cut.cut is Cut.COPY
        or canonical(cut.op) == "data"
        or any(not value.in_torch for value in without_gradient(source))
    )


def _is_weight(cut: Value, source: Value) -> bool:
    """Whether the names between the cut and the loss say that this number is a weight or a
    count.
    """
    if canonical(cut.op) not in ("item", "float", "data"):
        return False
    return any(evidence.is_factor(value.name) for value in without_gradient(source))
