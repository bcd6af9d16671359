"""# stale-optimizer (GL513)

Parameters are replaced or added after the optimizer was built from the old ones.

## What it does
Reports the statement that puts a new parameter into a model whose parameters an optimizer took
before, where a loss then trains the new one and no optimizer holds it; and where a model is made
(or copied by `deepcopy`) after the optimizer, and is trained in the place of the one that the
optimizer holds.

## Why it matters
The optimizer goes on updating tensors that the model no longer uses. The new layer, adapter or head
gets gradients, and stays as it was initialised.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[2] = torch.nn.Linear(8, 2)  # expect: GL513
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
model[2] = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Or hand the new parameters over: `optimizer.add_param_group({"params": new.parameters()})`.

## What it does not report
- Parameters that any optimizer holds in the end, or that get no gradient.
- `model.cuda()` and `model.to(device)`, which keep the parameters.
- Parts of another model, and what was there before and is merely wrapped together with the model.
- A copy whose gradients are handed back by hand, or whose parameters the program updates itself.

## Limits
Layers that an unknown function adds are not seen. Of a network that is out of view, only what takes
the place of a part that it was asked for is: `net.fc = nn.Linear(net.fc.in_features, 10)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import (
    Backward,
    End,
    Fact,
    InPlace,
    Kind,
    May,
    Module,
    Optimizer,
    OptimizerStep,
    Parameter,
    Tape,
    Value,
)  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.held import common_place, frozen_before
from gradlint_rules.numbers import of_memory
from gradlint_rules.order import related_statement, together
from gradlint_rules.postponing import handed_over, handed_over_by, made_of
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, owners, places, shortly

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_Late = dict[int, tuple[Fact, Parameter]]
_HELP = (
    "Change the model first, then build the optimizer; or hand the new parameters over with "
    "`add_param_group`."
)


@dataclass(frozen=True, slots=True)
class _Lost:
    """Parameters that no optimizer trains: where they came in, and the optimizer that was made
    before.
    """

    at: Span
    stack: tuple[Span, ...]
    optimizer: Optimizer
    parameters: list[Parameter]
    whole: bool = False  # nothing of the model that this optimizer holds is trained any more


def check(paths: Paths) -> Iterator[Report]:
    """Every late part of a model that is trained by a loss and held by no optimizer, on any
    path.
    """
    found: dict[Span, _Lost] = {}
    known_on = (_lost_on, _sharded_on, _exchanged_on)
    lost_on = [lost for find in known_on for lost in paths.some(find)]
    for lost in lost_on or itertools.islice(paths.some(_replaced_on), 1):
        known = found.setdefault(lost.at, lost)
        known.parameters.extend(lost.parameters if known is not lost else ())
    for at in sorted(found):
        parameters = [one for one in found[at].parameters if _is_never_held((at, one.path), paths)]
        if parameters:
            yield _report(found[at], parameters)


_LateAt = tuple[Span, str]  # where a parameter came in, and its path


def _is_never_held(late: _LateAt, paths: Paths) -> bool:
    """Whether no optimizer holds a late parameter on any path, whatever was not run."""
    return bool(paths.never(lambda tape: late in _held_on(tape), May.HOLD))


@of_tape
def _held_on(tape: Tape) -> set[_LateAt]:
    """The late parameters of a path that an optimizer holds."""
    optimizers = _stepping(tape)
    late = _late(tape).values() if optimizers else ()
    held = [
        (fact, one) for fact, one in late if any(optimizer.holds(one) for optimizer in optimizers)
    ]
    return {(fact.at, parameter.path) for fact, parameter in held}


def _lost_on(tape: Tape) -> Iterator[_Lost]:
    """The late parameters of a path that a loss trains and no optimizer holds, each."""
    optimizers, late = _stepping(tape), _late(tape)
    leaves = (
        (leaf for sink in tape.backwards() for leaf in sink.leaves) if optimizers and late else ()
    )
    trained = {id(leaf.parameter) for leaf in leaves}
    for fact, parameter in late.values():
        holder = _holder_of_rest(parameter, optimizers, late)
        is_held = any(optimizer.holds(parameter) for optimizer in optimizers)
        if id(parameter) in trained and not is_held and holder is not None:
            yield _Lost(fact.at, fact.stack, holder, [parameter])


def _sharded_on(tape: Tape) -> Iterator[_Lost]:
    """The parameters of a path in whose place others came where a model was sharded, behind the
    optimizer's making.
    """
    facts = tape.facts("sharded")
    optimizers = _stepping(tape) if facts else []
    trained = (
        {id(leaf.parameter) for sink in tape.backwards() for leaf in sink.leaves}
        if optimizers
        else set()
    )
    for optimizer in optimizers:
        lost = [
            fact.value for fact in facts if fact.value is not None and _is_stale(fact, optimizer)
        ]
        lost = [
            value
            for value in lost
            if id(value.parameter) in trained and not _holds(optimizers, value)
        ]
        if lost:
            at, stack = common_place(lost)
            yield _Lost(
                at, stack, optimizer, [value.parameter for value in lost if value.parameter]
            )


def _exchanged_on(tape: Tape) -> Iterator[_Lost]:
    """The parameters of a path that came into a model out of view in the place of others, behind
    the making of every optimizer that holds the model.
    """
    facts = tape.facts("exchanged")
    optimizers = _stepping(tape) if facts else []
    for fact in facts:
        if fact.source is None or fact.value is None or _holds(tape.optimizers(), fact.value):
            continue
        before, late = fact.source.parameter, fact.value.parameter
        if before is None or late is None:
            continue
        holders = [optimizer for optimizer in optimizers if optimizer.holds(before)]
        if (
            holders
            and _is_trained_behind(fact, before, tape)
            and all(_is_made_before(each, fact) for each in holders)
        ):
            yield _Lost(fact.at, fact.stack, holders[0], [late])


def _is_trained_behind(fact: Fact, own: Parameter, tape: Tape) -> bool:
    """Whether a backward behind it comes to the model out of view, whose parameters are one
    value.
    """
    sinks = (sink for sink in tape.backwards() if sink.order > fact.order)
    reached = (leaf.parameter for sink in sinks for leaf in sink.leaves)
    return any(each is not None and each.module is own.module for each in reached)


def _is_made_before(optimizer: Optimizer, fact: Fact) -> bool:
    return optimizer.order is not None and optimizer.order < fact.order


def _is_stale(fact: Fact, optimizer: Optimizer) -> bool:
    """Whether an optimizer holds what a parameter was before."""
    before = None if fact.source is None else fact.source.parameter
    return before is not None and optimizer.holds(before)


def _stepping(tape: Tape) -> list[Optimizer]:
    """The optimizers that step, which alone can lose what they hold; all of them, where the run
    ended before that.

    None where one of them may hold more than is known.
    """
    found = {id(step.optimizer): step.optimizer for step in tape.of(OptimizerStep)}
    cut_off = any(isinstance(event, End) and event.raised for event in tape.events[-1:])
    stepping = tape.optimizers() if found and cut_off else list(found.values())
    return stepping if all(optimizer.complete for optimizer in stepping) else []


def _late(tape: Tape, how: str = "attached") -> _Late:
    """The last place at which each parameter was put into a model, or came with a copy, after an
    optimizer was made.
    """
    last: _Late = {}
    for fact in tape.facts(how):
        if fact.value is not None and fact.value.parameter:
            last[id(fact.value.parameter)] = (fact, fact.value.parameter)
    return last


def _holder_of_rest(
    parameter: Parameter, optimizers: Sequence[Optimizer], late: _Late
) -> Optimizer | None:
    """The optimizer that holds other parameters of the same model, which were part of it before."""
    root = _root(parameter.module)
    for optimizer in optimizers:
        for held in optimizer.parameters:
            if held.parameter is None or root is None or id(held.parameter) in late:
                continue
            if _root(held.parameter.module) is root:
                return optimizer
    return None


def _root(module: Module | None) -> Module | None:
    while module is not None and module.parent is not None:
        module = module.parent
    return module


def _replaced_on(tape: Tape) -> Iterator[_Lost]:
    optimizers = _stepping(tape)
    replaced = (
        _replaced(tape, optimizers, _late(tape) | _late(tape, "copied")) if optimizers else None
    )
    if replaced is not None:
        yield replaced


def _replaced(tape: Tape, optimizers: Sequence[Optimizer], late: _Late) -> _Lost | None:
    """A model made after the only optimizers that step, which a loss trains in the place of the one
    that they hold.
    """
    sinks = _astray(tape, optimizers)
    trained = [leaf for sink in sinks for leaf in sink.leaves]
    if not tape.complete or not all(_is_part_of_model(leaf) for leaf in trained):
        return None
    if tape.facts("gradient-set") or tape.facts("hidden-shards"):
        # gradients are given to the other model by hand; a shard stands for the parameter
        return None
    parameters = {id(leaf.parameter): leaf for leaf in trained if leaf.kind is Kind.PARAMETER}
    made = max((each.order for each in optimizers if each.order is not None), default=-1)
    if not frozen_before(made, tape).isdisjoint(parameters):
        return None  # they were there, and are thawed later: frozen-in-optimizer
    first = min((each.order for each in optimizers if each.order is not None), default=None)
    later = [
        leaf
        for key, leaf in parameters.items()
        if key in late or (first is not None and leaf.order > first)
    ]
    if not later or len(later) < len(parameters) or _written_by_hand(tape, later, sinks[0]):
        return None
    at, stack = common_place(later)
    return _Lost(
        at, stack, optimizers[0], [leaf.parameter for leaf in later if leaf.parameter], whole=True
    )


def _astray(tape: Tape, optimizers: Sequence[Optimizer]) -> list[Backward]:
    """The backwards from the first one on behind which none reaches anything that an optimizer
    holds.

    Where earlier ones reached it, these stand at the same place, and a step follows: there the
    model was exchanged.
    """
    sinks = list(tape.backwards())
    fed = [sink for sink in sinks if any(_holds(optimizers, leaf) for leaf in sink.leaves)]
    if not fed:
        return sinks
    places = {sink.at for sink in fed}
    last = max(step.order for step in tape.of(OptimizerStep))
    return [sink for sink in sinks if fed[-1].order < sink.order < last and sink.at in places]


def _holds(optimizers: Sequence[Optimizer], leaf: Value) -> bool:
    return leaf.parameter is not None and any(
        optimizer.holds(leaf.parameter) for optimizer in optimizers
    )


def _is_part_of_model(leaf: Value) -> bool:
    """Whether it is known for what it is: no leaf that a loss was made into, nothing that other
    code gave.
    """
    known = leaf.kind is Kind.PARAMETER and not leaf.assumed
    return known and leaf.parameter is not None and leaf.parameter.module is not None


def _written_by_hand(tape: Tape, parameters: Sequence[Value], first: Backward) -> bool:
    """Whether the program updates them itself, in place, behind the first backward."""
    own = {id(leaf.parameter) for leaf in parameters}
    updates = (event for event in tape.of(InPlace) if event.order > first.order)
    written = (value for event in updates for value in of_memory(event.before))
    return any(id(value.parameter) in own for value in written if value.parameter is not None)


def _report(lost: _Lost, parameters: Sequence[Parameter]) -> Report:
    names = owners(parameters, lost.optimizer.parameters)
    name = f"`{lost.optimizer.name or lost.optimizer.cls}`"
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    happened = "made" if lost.whole else "put in"
    changed = f"{shortly(names)} {are} {happened}"
    message = f"{changed} after {name} took the parameters: no optimizer trains {them}"
    made = Related(lost.optimizer.at, f"{name} takes the parameters here", Role.HOLDER)
    return Report(lost.at, message, _HELP, places(lost.at, *calls(lost.stack, ()), made))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes the optimizer, and what is made of it, behind the change of the model; or hands it what
    is new.
    """
    made = related_statement(finding, Role.HOLDER, source)
    changes = [source.statement(finding.at)]
    changes += [
        source.statement(each.at) for each in finding.related if each.at.path == finding.at.path
    ]
    for change in changes:
        try:
            here, there = together(made, change, source)
            moved = made_of(here, there, source)
        except NoFixError:
            continue
        return unsafe("Make the optimizer later", source.move_after(moved, there))
    for caller in changes[1:]:
        if (edits := handed_over_by(caller, made, changes[0], source)) is not None:
            return unsafe("Hand the new parameters over", edits)
    return unsafe("Hand the new parameters over", handed_over(made, changes[0], source))
