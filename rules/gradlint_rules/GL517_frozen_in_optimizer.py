"""# frozen-in-optimizer (GL517)

A module is frozen as a whole, together with those of its parameters that the optimizer was chosen
to train.

## What it does
Reports a statement that freezes the parameters of a module, where an optimizer holds some of them
and others in no optimizer at all, and nothing unfreezes these before the optimizer steps. And one
that freezes all that an optimizer holds, where what is trained instead is in no optimizer: another
adapter is made the active one. And one that freezes a parameter which was made as zeros and which
others are multiplied by, as the second matrix of an adapter: it would have to be trained to do
anything.

## Why it matters
Whoever hands an optimizer a selection of a module's parameters wants these trained: adapters, a new
head. Frozen with the rest, they get no gradient, and the optimizer passes over them. As long as
anything else is trained, nothing is raised.

## Example
```python
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
encoder.add_module("adapter", nn.Linear(8, 8))
head = nn.Linear(8, 1)
learned = [*encoder.adapter.parameters(), *head.parameters()]
encoder.requires_grad_(False)  # expect: GL517
optimizer = torch.optim.SGD(learned, lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
Freeze first, and add what is to be trained afterwards; or freeze the base alone:

```python
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
encoder.requires_grad_(False)
encoder.add_module("adapter", nn.Linear(8, 8))
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.adapter.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Optimizers that hold all that the statement freezes, `SGD(model.parameters())` of a model with a
  frozen backbone: they pass over it, as is meant.
- Parameters that are unfrozen on some path: networks that take turns, layers that are thawed one
  after another.

## Limits
A statement that freezes each parameter by a condition of its own, by its name, chooses what it
freezes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Role, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Fact, Kind, May, Optimizer, OptimizerStep, Parameter, Tape
from gradlint_rules.cached import of_tape
from gradlint_rules.held import frozen_before
from gradlint_rules.order import names_of, nested
from gradlint_rules.stuck import stuck_at_zero
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, listed, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Freeze the module before these are added to it, or freeze the rest alone."
_LATER = "Make the optimizer behind this, of what is trained then."
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr)
_Place = tuple[Span, str]  # where a parameter is made, and its path


@dataclass(frozen=True, slots=True)
class _Frozen:
    """A statement that froze parameters, and those of them that an optimizer holds when it
    steps.
    """

    fact: Fact
    optimizer: Optimizer
    held: tuple[Parameter, ...]
    is_all: bool = False  # the optimizer holds nothing else, and what is trained is in none
    is_zero: bool = False  # what it holds of them was made as zeros, to be multiplied by


def check(paths: Paths) -> Iterator[Report]:
    """Every freezing of what an optimizer was given by choice."""
    reported: set[Span] = set()
    for found in paths.some(_frozen_on):
        stays = [each for each in found.held if _is_never_thawed(_place(each), paths)]
        if stays and found.fact.at not in reported:
            reported.add(found.fact.at)
            yield _report(found, stays)


def _report(found: _Frozen, stays: Sequence[Parameter]) -> Report:
    name = found.optimizer.name or found.optimizer.cls or "optimizer"
    named = dict.fromkeys(f"`{each.path}`" for each in stays)
    frozen = f"`{found.fact.text}` freezes {listed(list(named)[:2])}"
    if found.is_zero:
        were = "it was" if len(named) == 1 else "they were"
        message = f"{frozen}: {were} made as zeros, and all that is multiplied by them stays so"
        held, help_ = "trains others", _HELP
    elif found.is_all:
        message = f"{frozen}, all that `{name}` holds: no optimizer holds what is trained instead"
        held, help_ = "is given these alone", _LATER
    else:
        message = f"{frozen}, too, which `{name}` is to train: they stay as they are"
        held, help_ = "is given a part of what is frozen", _HELP
    made = Related(found.optimizer.at, f"`{name}` {held}")
    related = places(found.fact.at, *calls(found.fact.stack, ()), made)
    hints = {} if found.is_all else {"made": _made(stays, found.fact)}
    return Report(found.fact.at, message, help_, related, hints=hints)


def _made(parameters: Sequence[Parameter], frozen: Fact) -> str:
    """The lines of the file on which these are made, with the calls that led there."""
    places = (at for each in parameters for at in (each.at, *each.stack))
    lines = dict.fromkeys(at.line for at in places if at.path == frozen.at.path)
    return " ".join(map(str, lines))


def _place(parameter: Parameter) -> _Place:
    return parameter.at, parameter.path


def _is_never_thawed(parameter: _Place, paths: Paths) -> bool:
    """Whether no path unfreezes a parameter behind its freezing, whatever was not run."""
    return bool(paths.never(lambda tape: parameter in _thawed_on(tape), May.BIND))


@of_tape
def _thawed_on(tape: Tape) -> set[_Place]:
    """The parameters of a path that are unfrozen after they were frozen."""
    frozen: set[int] = set()
    found: set[_Place] = set()
    for fact in tape.facts("frozen", "thawed"):
        own = fact.value.parameter if fact.value is not None else None
        if own is not None and fact.what == "frozen":
            frozen.add(id(own))
        elif own is not None and id(own) in frozen:
            found.add(_place(own))
    return found


def _frozen_on(tape: Tape) -> Iterator[_Frozen]:
    """The statements of a path that freeze some of what an optimizer steps with, and others that
    none holds.
    """
    frozen = tape.facts("frozen")
    steps = tape.of(OptimizerStep) if frozen else ()
    optimizers = list({id(step.optimizer): step.optimizer for step in steps}.values())
    if not optimizers or not all(each.complete and each.parameters for each in tape.optimizers()):
        return
    last = max(step.order for step in steps)
    yield from _zeros_on(tape, frozen, optimizers, last)
    for call in dict.fromkeys((fact.at, fact.stack) for fact in frozen):
        facts = [fact for fact in frozen if (fact.at, fact.stack) == call and fact.order < last]
        own = list({id(each): each for fact in facts if (each := _own(fact)) is not None}.values())
        if _is_picked(tape, facts):
            continue
        is_all_held = all(_is_held_or_gone(one, facts[-1], tape) for one in own)
        if not own or (is_all_held and not _is_training_astray(tape, facts[-1])):
            continue
        for optimizer in optimizers:
            held = tuple(one for one in own if optimizer.holds(one))
            if held and (not is_all_held or len(held) == len(optimizer.parameters)):
                yield _Frozen(facts[0], optimizer, held, is_all=is_all_held)


def _zeros_on(
    tape: Tape, frozen: Sequence[Fact], optimizers: Sequence[Optimizer], last: int
) -> Iterator[_Frozen]:
    """The statements that freeze what was made as zeros, to be multiplied by."""
    for place in dict.fromkeys(fact.at for fact in frozen):
        facts = [fact for fact in frozen if fact.at == place]
        stuck = [own for fact in facts if (own := stuck_at_zero(tape, fact, last)) is not None]
        if stuck:
            yield _Frozen(facts[0], optimizers[0], tuple(dict.fromkeys(stuck)), is_zero=True)


def _is_held_or_gone(own: Parameter, frozen: Fact, tape: Tape) -> bool:
    """Whether an optimizer holds a parameter, or no loss behind its freezing is computed from it:
    the head that a new one takes the place of.
    """
    if any(each.holds(own) for each in tape.optimizers()):
        return True
    sinks = [sink for sink in tape.backwards() if sink.order > frozen.order]
    return not any(value.parameter is own for sink in sinks for value in sink.ancestors)


def _is_training_astray(tape: Tape, frozen: Fact) -> bool:
    """Whether the backwards behind a freezing reach parameters that were frozen when the optimizers
    were made, and none that one holds.
    """
    sinks = (sink for sink in tape.backwards() if sink.order > frozen.order)
    trained = [leaf for sink in sinks for leaf in sink.leaves]
    are_known = all(leaf.kind is Kind.PARAMETER and not leaf.assumed for leaf in trained)
    owned = [leaf.parameter for leaf in trained if leaf.parameter is not None]
    held = any(each.holds(one) for each in tape.optimizers() for one in owned)
    before = frozen_before(max(each.order or 0 for each in tape.optimizers()), tape)
    return are_known and not held and any(id(one) in before for one in owned)


def _is_picked(tape: Tape, facts: Sequence[Fact]) -> bool:
    """Whether each parameter is asked, in a loop over them, whether it is frozen, and answers as
    nothing in the source says.
    """
    rounds = {fact.iteration[-1] for fact in facts if fact.iteration}
    loops = {loop for loop, _ in rounds} if len(rounds) > 1 else set()
    return any(decision.loop in loops and not decision.by_default for decision in tape.decisions)


def _own(fact: Fact) -> Parameter | None:
    return fact.value.parameter if fact.value is not None else None


def fix(finding: Finding, source: FixSource) -> Fix:
    """Freezes before what is to be trained is added."""
    called = (related.at for related in finding.related if related.role is Role.CALL)
    for at in (finding.at, *called):
        if at.path == finding.at.path:
            for freezing in nested(source.statement(at), source):
                if (made := _making(freezing, finding, source)) is not None:
                    moved = source.move_before([freezing], made)
                    return unsafe("Freeze before these are added", moved)
    raise NoFixError("what is added is not made beside the freezing")


def _making(freezing: ast.stmt, finding: Finding, source: FixSource) -> ast.stmt | None:
    """The statement before a freezing, in its block, that makes what is frozen, too, and nothing
    that the freezing needs.
    """
    lines = set(map(int, finding.hints.get("made", "").split()))
    block = source.block(freezing)
    before = block[: block.index(freezing)]
    for place, made in enumerate(before):
        if lines & set(range(made.lineno, (made.end_lineno or made.lineno) + 1)):
            bound = {name for each in before[place:] for name in names_of(each, ast.Store)}
            is_apart = bound.isdisjoint(names_of(freezing, ast.Load))
            return made if is_apart and isinstance(made, _SIMPLE) else None
    return None
