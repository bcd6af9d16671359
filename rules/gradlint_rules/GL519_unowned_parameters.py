"""# unowned-parameters (GL519)

Parameters that the program makes get a gradient, and no optimizer ever holds them.

## What it does
Reports where parameters are made that the backward behind each step reaches, while no optimizer of
the program holds them and nothing reads their gradient. It is a note where their values were
loaded, and where no run has shown it.

## Why it matters
They look trained, since their `.grad` is filled in every step, and stay as they were initialised: a
loss with centres of its own, a projection beside the model, a learned temperature that is part of
no module.

## Example
```python
import torch

torch.manual_seed(0)
body = torch.nn.Linear(4, 8)
head = torch.nn.Linear(8, 1)  # expect: GL519
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(body(x).tanh()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
body = torch.nn.Linear(4, 8)
head = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(body(x).tanh()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Or freeze what is to stay as it is: `head.requires_grad_(False)`.

## What it does not report
- Parameters that some optimizer holds at some time: networks that take turns, phases.
- Parameters whose gradient is read or set, that a hook sees, or that the program updates itself.
- What is put into a model after the optimizer was made (GL513), or lies in a plain list (GL514).
- An optimizer that no backward reaches at all (GL511, GL513).
- Parameters beside others of the same model that an optimizer holds: which of them are trained may
  have been chosen. A note tells of those that the model keeps beside its modules, where an
  optimizer holds each of these; and of any that a traced run shows to be as they were made, with
  nothing loaded into them.
- Models through which an image is optimised.

## Limits
Optimizers out of view hold what nobody sees: nothing is said where one may.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Fix, Related, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import (
    Backward,
    Clip,
    InPlace,
    Kind,
    May,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Tape,
    Value,
)
from gradlint_rules import GL511_missing_step, GL513_stale_optimizer
from gradlint_rules.cached import of_tape
from gradlint_rules.handing import handed_over
from gradlint_rules.held import common_place, identities
from gradlint_rules.numbers import of_memory
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, owner_paths, places, shortly, to_sink

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Hand them to the optimizer, or freeze them (`requires_grad_(False)`)."
_OTHERWISE = (
    "attached",
    "copied",
    "plain-container",
    "gradient-set",
    "gradient-beside",
    "parameter-hooked",
)
_Place = tuple[Span, tuple[Span, ...], int, str]  # what tells a parameter from others on every path


@dataclass(frozen=True, slots=True)
class _Unowned:
    """The parameters of one model that a backward reaches and no optimizer holds."""

    leaves: tuple[Value, ...]
    sink: Backward
    optimizer: Optimizer
    is_seen: bool
    is_all: bool  # the optimizer holds nothing that the backward reaches
    is_part: bool  # of a model whose other parameters the optimizer holds
    is_sole: bool  # the optimizer is the only one


def check(paths: Paths) -> Iterator[Report]:
    """What gets a gradient and is in no optimizer, by the model that it is part of."""
    for found in paths.some(lambda tape: () if tape.facts("hidden-shards") else _unowned_on(tape)):
        if found.is_all and (
            any(GL511_missing_step.check(paths)) or any(GL513_stale_optimizer.check(paths))
        ):
            continue
        leaves = [
            leaf
            for leaf in found.leaves
            if leaf.parameter and _is_nobodys(leaf.parameter.identity, paths)
        ]
        if not leaves:
            continue
        yield _report(found, sorted(leaves, key=lambda leaf: (leaf.order, leaf.at)))


def _is_nobodys(parameter: _Place, paths: Paths) -> bool:
    """Whether no optimizer holds a parameter and nothing uses its gradient on any path, whatever
    was not run.
    """
    return bool(paths.never(lambda tape: parameter in _owned_on(tape), May.HOLD | May.READ))


def _unowned_on(tape: Tape) -> Iterator[_Unowned]:
    steps = tape.of(OptimizerStep)
    optimizers = _optimizers(tape) if steps and tape.complete else []
    if not optimizers or not all(map(_is_known, optimizers)):
        return
    owned = _owned_on(tape)
    by_root = dict[tuple[int, bool], tuple[Backward, bool, dict[int, Value]]]()
    for sink in _sinks(tape, steps[-1].order):
        of_owned = [leaf for leaf in sink.leaves if _is_among(leaf, owned)]
        is_all = not of_owned
        if is_all and not _is_shown_alone(sink, steps, tape):
            continue
        chosen = {_root_of(leaf) for leaf in of_owned}
        if chosen == {None}:
            continue  # an image is optimised through the model
        for leaf in sink.leaves:
            root = _root_of(leaf) or _own_root(leaf)
            if root is None or leaf.parameter is None or _is_among(leaf, owned):
                continue
            is_part = root in chosen
            is_told = not is_part or tape.traced or _is_left_alone(leaf, sink, owned)
            if is_told and not (is_part and "loaded" in leaf.flags):
                found = by_root.setdefault((root, is_part), (sink, is_all, {}))
                found[2].setdefault(id(leaf.parameter), leaf)
    for (_, is_part), (sink, is_all, leaves) in by_root.items():
        stepping = next(step.optimizer for step in steps if step.order > sink.order)
        is_sole = len(optimizers) == 1
        yield _Unowned(
            tuple(leaves.values()), sink, stepping, tape.traced, is_all, is_part, is_sole
        )


def _is_among(leaf: Value, owned: Container[_Place]) -> bool:
    return leaf.parameter is not None and leaf.parameter.identity in owned


def _is_shown_alone(sink: Backward, steps: Sequence[OptimizerStep], tape: Tape) -> bool:
    """Whether a backward of whose leaves no optimizer holds any is one to report: the step behind
    it finds no gradient, or all of them are learned numbers of their own.
    """
    if tape.traced and next(step for step in steps if step.order > sink.order).starved:
        return True
    leaves = sink.leaves  # a loss that was made a leaf is no weight: leaf-loss
    return sink.value not in leaves and bool(leaves) and all(_own_root(leaf) for leaf in leaves)


def _root_of(leaf: Value) -> int | None:
    """The model that a parameter is part of; None of what is not known to be a parameter that the
    program makes.
    """
    module = leaf.parameter.module if leaf.parameter is not None else None
    if module is None or leaf.assumed or leaf.kind is not Kind.PARAMETER:
        return None
    while module.parent is not None:
        module = module.parent
    return None if module.unseen else id(module)


def _is_left_alone(leaf: Value, sink: Backward, owned: Container[_Place]) -> bool:
    """Whether a model keeps a parameter beside its modules, and an optimizer holds each of these:
    they were listed one by one, and it is in none.
    """
    own = leaf.parameter.module if leaf.parameter is not None else None
    modules = [(each, each.parameter.module) for each in sink.leaves if each.parameter is not None]
    in_modules = [
        each
        for each, module in modules
        if own is not None and module is not None and module is not own and module.is_within(own)
    ]
    return bool(in_modules) and all(_is_among(each, owned) for each in in_modules)


def _own_root(leaf: Value) -> int | None:
    """What stands for a model of a parameter that is part of none: a learned temperature."""
    own = leaf.parameter
    if leaf.kind is not Kind.PARAMETER or leaf.assumed or "unnamed" in leaf.flags:
        return None
    if own is None or own.module is not None:
        return None
    return id(own) if own.name else None  # one without a name is not kept: non-leaf-parameter


def _sinks(tape: Tape, last: int) -> list[Backward]:
    """The backwards that fill all that they reach, with a step behind them."""
    return [
        sink
        for sink in tape.backwards()
        if sink.sink == "backward" and sink.inputs is None and sink.order < last
    ]


def _optimizers(tape: Tape) -> list[Optimizer]:
    made = [event.optimizer for event in tape.of(OptimizerMade)]
    return list({id(each): each for each in (*tape.optimizers(), *made)}.values())


def _is_known(optimizer: Optimizer) -> bool:
    return (
        optimizer.complete
        and bool(optimizer.parameters)
        and not optimizer.escapes
        and not optimizer.stepped_elsewhere
    )


@of_tape
def _owned_on(tape: Tape) -> set[_Place]:
    """The parameters of a path that an optimizer holds, or whose gradient is of use otherwise."""
    values = [value for one in _optimizers(tape) for value in one.parameters]
    values += [
        value for one in _optimizers(tape) for _, earlier in one.earlier for value in earlier
    ]
    values += [value for clip in tape.of(Clip) if _is_use(clip) for value in clip.parameters]
    values += [fact.value for fact in tape.facts(*_OTHERWISE) if fact.value is not None]
    values += _written(tape)
    return {parameter.identity for parameter in identities(values)}


def _is_use(clip: Clip) -> bool:
    """Whether the program reads gradients, to do something with them: what a library does with some
    is seen.
    """
    return clip.reads_only and not clip.by_library


def _written(tape: Tape) -> list[Value]:
    """What the program updates itself, in place, behind the first backward."""
    first = next((sink.order for sink in tape.backwards()), None)
    writes = [event for event in tape.of(InPlace) if first is not None and event.order > first]
    return [value for event in writes for value in of_memory(event.before)]


def _report(found: _Unowned, leaves: Sequence[Value]) -> Report:
    known = (*found.sink.leaves, *found.optimizer.parameters)
    names = owner_paths(identities(leaves), known)
    made = _makings(names, leaves, known) if found.is_part else [(*common_place(leaves), names[0])]
    get, hold = ("gets", "it") if len(names) == 1 else ("get", "them")
    message = (
        f"{shortly([f'`{name}`' for name in names])} {get} a gradient, and no optimizer holds "
        f"{hold}: nothing trains {hold}"
    )
    name = found.optimizer.name or found.optimizer.cls
    taken = Related(found.optimizer.at, f"`{name}` takes other parameters here")
    others = [Related(each, f"`{owner}` is made here") for each, _, owner in made[1:]]
    is_loaded = any("loaded" in leaf.flags for leaf in leaves)
    is_sure = found.is_seen and not is_loaded and not found.is_part
    at, stack, _ = made[0]
    related = places(at, *others, *calls(stack, ()), taken, to_sink(found.sink))
    severity = None if is_sure else Severity.NOTE
    return Report(at, message, _HELP, related, severity, hints=_hints(found, leaves))


def _hints(found: _Unowned, leaves: Sequence[Value]) -> dict[str, str]:
    """Where the optimizer is made, and whether a module or a parameter alone is left out."""
    left = {leaf.parameter.path for leaf in leaves if leaf.parameter}
    roots = {name.partition(".")[0] for name in left}
    if len(roots) > 1 or found.is_part or found.is_all or not found.is_sole:
        return {}
    owner = "parameter" if left == roots else "module"
    return {"maker": str(found.optimizer.at.line), "owner": owner}


def fix(finding: Finding, source: FixSource) -> Fix:
    """Hands it to the optimizer."""
    return unsafe("Hand it to the optimizer", handed_over(finding, source))


def _makings(
    names: Sequence[str], leaves: Sequence[Value], known: Sequence[Value]
) -> list[tuple[Span, tuple[Span, ...], str]]:
    """Where each part of a model is made that is named, and the calls that led there."""
    found = []
    for name in names:
        own = [
            leaf
            for leaf in leaves
            if leaf.parameter is not None and f"{leaf.parameter.path}.".startswith(f"{name}.")
        ]
        *stack, at = _way_to(own, known)
        found.append((at, tuple(stack), name))
    return found


def _way_to(own: Sequence[Value], known: Sequence[Value]) -> tuple[Span, ...]:
    """The calls down to the one that makes a part of a model; where the call that all of it shares
    makes more than that, those down to the first line of the part.
    """
    at, stack = common_place(own)
    way, names = (*stack, at), {id(leaf.parameter) for leaf in own}
    makes_more = any(
        (*leaf.stack, leaf.at)[: len(way)] == way and id(leaf.parameter) not in names
        for leaf in known
    )
    first = (*own[0].stack, own[0].at)
    return first[: len(way) + 1] if makes_more else way
