"""# partial-detach (GL109)

One term of a loss is cut from the graph, so that it has a value and no gradient.

## What it does
Takes a loss that carries a gradient apart into its terms, and points at a term that is dead because something in it
was cut: `.detach()`, `.data`, `.item()`, `float(…)`, an operation without derivative. It also points at a factor or a
divisor that `.item()`, `float(…)` or `.data` turned into a constant, so that half of a formula is not differentiated.

## Why it matters
Every number is right, and the loss even falls. But the regulariser, the entropy bonus or the distillation term does
nothing. Autograd allows it, and sometimes it is meant; so it is a `note`.

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
soft = F.kl_div(F.log_softmax(logits.detach(), dim=-1), wanted, reduction="batchmean")  # expect: GL109
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
- Straight-through estimators, `x + (q - x).detach()`, and ratios, `(log_prob - log_prob.detach()).exp()`.
- Targets, teachers, bootstrap values, baselines and advantages; both halves of a commitment loss; states detached
  between the chunks of a sequence.
- Weights and masks: `loss / loss.item()`, `(p > 0.5) * loss`, a detached factor.
- What is only logged.

## Limits
A stop-gradient inside a nonlinear function, such as one side of a distance, is taken to be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradlint.finding import Severity, Span
from gradlint.rule import Report
from gradlint.tape import GIVEN_NOTHING, OF_A_FUNCTION, Backward, Cut, Kind, Optimizer, Tape, Value, leaves
from gradlint_rules.arrivals import Arrival, arrivals
from gradlint_rules.starved import cut_short, is_cut, is_meant
from gradlint_rules.words import bare, calls, loss_of, maker, places, quoted, to_sink

SEVERITY = Severity.NOTE
AT_RUN_TIME = True
_HELP = "Leave the cut out if this is to be trained; `.detach()` where it is used says that it is meant."
_CUTS = (Cut.DETACH, Cut.COPY, Cut.NON_DIFFERENTIABLE)
_SUMS = {"add", "iadd", "radd", "sub", "isub", "rsub", "sum", "mean", "stack", "cat", "nansum", "nanmean", "python"}
_FACTORS = {"mul", "imul", "rmul", "div", "idiv", "truediv", "itruediv", "true_divide", "divide"}
_SHAPES = {"neg", "squeeze", "unsqueeze", "view", "reshape", "flatten", "to", "float", "double", "clone", "contiguous"}
_WEIGHTS = {"weight", "weights", "scale", "coef", "coefficient", "lambda", "alpha", "beta", "norm", "max", "min", "std"}
_WEIGHTS |= {"count", "num", "number", "temperature", "factor", "ratio", "gamma", "w", "n", "mask"}


def check(paths: Sequence[Tape]) -> Iterator[Report]:
    """The cuts that leave a term, or half of a formula, of a loss without gradient."""
    told: set[Span] = set()
    for sink in arrivals(paths):
        for arrival in sink:
            is_cut_short = any(value.cut in _CUTS for value in cut_short(arrival.sink, arrival.tape))
            for cut, share in _dead_shares(arrival.sink) if is_cut_short else ():
                if cut.at not in told and _is_known_to_carry(cut, arrival.tape):
                    told.add(cut.at)
                    yield _report(arrival, cut, share)


def _is_known_to_carry(cut: Value, tape: Tape) -> bool:
    """Whether more than an assumption says that there is a gradient to cut: parameters are below it.

    What an unknown callable gives has some where an optimizer holds them, or may hold them; a buffer gives data.
    """
    found = [leaf for source in cut.inputs for leaf in leaves(source)]
    trained = [leaf for leaf in found if leaf.kind is not Kind.UNKNOWN]
    optimizers = tape.optimizers()
    if any(not leaf.assumed or _is_held(leaf, optimizers) for leaf in trained):
        return True
    if optimizers and all(optimizer.complete for optimizer in optimizers):
        return False
    return any(not leaf.flags & {GIVEN_NOTHING, OF_A_FUNCTION} for leaf in trained)


def _is_held(leaf: Value, optimizers: Sequence[Optimizer]) -> bool:
    return leaf.parameter is not None and any(optimizer.holds(leaf.parameter) for optimizer in optimizers)


def _report(arrival: Arrival, cut: Value, share: str) -> Report:
    loss = loss_of(arrival.sink)
    message = f"{maker(cut)} cuts the graph here: {share} of {loss} has a value and no gradient"
    related = places(cut.at, *calls(cut.stack, arrival.sink.stack), to_sink(arrival.sink))
    return Report(cut.at, message, _HELP, related)


def _dead_shares(sink: Backward) -> Iterator[tuple[Value, str]]:
    """The cut of each term without gradient, and of each factor in its graph that was copied out of it."""
    for value in _skeleton(sink.value):
        if bare(value.op) in _SUMS:
            yield from ((cut, _titled("a term", source)) for source, cut in _cut_inputs(value))
    for value in sink.graph:
        if bare(value.op) in _FACTORS:
            for source, cut in _cut_inputs(value):
                if _is_copied(cut, source) and not _is_weight(cut, source):
                    yield cut, _titled("a factor", source)


def _cut_inputs(value: Value) -> Iterator[tuple[Value, Value]]:
    """The inputs without gradient beside one that has it, each with what may be an unwanted cut behind it."""
    live = [source for source in value.inputs if source.requires_grad]
    for source in value.inputs:
        if live and not source.requires_grad:
            yield from ((source, cut) for cut in _suspects(source, live, is_term=bare(value.op) in _SUMS))


def _titled(what: str, source: Value) -> str:
    return f"{quoted(source)}, {what}" if source.name else what


def _skeleton(loss: Value) -> Iterator[Value]:
    """The sums, means and scalings that a loss is put together by, from the loss down."""
    seen, pending = {id(loss)}, [loss]
    for value in pending:
        name = bare(value.op)
        live = [source for source in value.inputs if source.requires_grad]
        if name not in _SUMS | _FACTORS | _SHAPES or (name in _FACTORS and len(live) > 1):
            continue
        yield value
        for source in live:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _suspects(dead: Value, live: Sequence[Value], *, is_term: bool) -> Iterator[Value]:
    """The cuts behind a dead input, unless its names, or what it is combined with, say that they are meant."""
    if is_meant(dead):
        return
    beside = {id(value) for source in live for value in _addends(source)}
    for cut in _cuts(dead):
        is_direct = cut is dead or (is_term and cut in dead.inputs)
        if cut.cut in _CUTS and not is_meant(cut) and not (is_direct and _is_straight_through(cut, beside)):
            yield cut


def _cuts(dead: Value) -> list[Value]:
    """The first cuts after the parameters behind `dead`, in source order."""
    return sorted((value for value in _dead(dead) if is_cut(value)), key=lambda cut: cut.at)


def _dead(value: Value) -> list[Value]:
    """`value` and what flows into it without a gradient, as far as the cuts."""
    seen, found = {id(value)}, [value]
    for current in found:
        for source in current.inputs:
            if not source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                found.append(source)
    return found


def _is_straight_through(cut: Value, beside: set[int]) -> bool:
    """Whether what was cut (or an operand of it) carries its gradient right beside the cut: `x + (q - x).detach()`."""
    live = [source for source in cut.inputs if source.requires_grad]
    return any(id(value) in beside for source in live for value in (source, *source.inputs))


def _addends(live: Value) -> tuple[Value, ...]:
    return (live, *live.inputs) if bare(live.op) in _SUMS else (live,)


def _is_copied(cut: Value, source: Value) -> bool:
    """Whether the values left torch on the way from the cut, or its graph by `.data`: not by a mere `detach()`."""
    if cut.cut is Cut.NON_DIFFERENTIABLE:
        return False
    return cut.cut is Cut.COPY or bare(cut.op) == "data" or any(not value.in_torch for value in _dead(source))


def _is_weight(cut: Value, source: Value) -> bool:
    """Whether the names between the cut and the loss say that this number is a weight or a count."""
    if bare(cut.op) not in ("item", "float", "data"):
        return False
    names = [value.name for value in _dead(source)]
    return not _WEIGHTS.isdisjoint(re.findall(r"[a-z]+", " ".join(names).lower()))
