"""# ineffective-freeze (GL516)

A statement that is meant to freeze parameters does nothing.

## What it does
Reports `module.requires_grad = False`, and `module.requires_grad = trainable`, the same of a
parameter's `data`, a misspelt attribute (`p.require_grad = False`), a comparison in the place of an
assignment, and a frozen weight that is wrapped in a new `nn.Parameter` or gives way to one, where a
loss goes on to train these parameters; `weight[:5].requires_grad_(False)`, which raises; and
`module.requires_grad = True` of a frozen module none of whose parameters a later loss trains.

## Why it matters
The layers that were to stay as they are go on training. Python lets any attribute be set, and
nothing is raised.

## Example
```python
import torch

torch.manual_seed(0)
backbone, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
backbone.requires_grad = False  # expect: GL516
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(backbone(x).relu()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
backbone, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
backbone.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(backbone(x).relu()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it does not report
- Parameters that were frozen in another way, or that no loss reaches.
- `p.requires_grad = False` on parameters, and `requires_grad_(False)` on modules.
- `self.requires_grad = trainable`, which the object's own methods can read.
- An attribute of the program's own, by which it chooses what the optimizer gets: `p.trainable`.

## Limits
A module that is unknown can be a parameter, and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Fact, OptimizerMade, Tape, Value
from gradlint_rules.rows import kept_by_a_hook
from gradlint_rules.structure import frozen, without_frozen
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
_WHY = {
    "module": (
        "sets an attribute of the module that nothing reads",
        "Call `requires_grad_(False)` on the module.",
    ),
    "flag": (
        "sets an attribute of the module that nothing reads",
        "Call `requires_grad_(…)` on the module, with the same flag.",
    ),
    "data": (
        "sets it on a tensor that is thrown away",
        "Set it on the parameter, not on its `data`.",
    ),
    "rows": (
        "sets it on a view that nothing else has",
        "Zero the gradient of these rows in a hook of the parameter.",
    ),
    "compared": ("compares, and assigns nothing", "Write `=` in the place of `==`."),
    "wrapped": (
        "wraps the frozen weight in a new parameter, which requires grad",
        "Pass `requires_grad=False`.",
    ),
    "replaced": (
        "puts a new parameter, which requires grad, in place of the frozen one",
        "Freeze the new one.",
    ),
}

_ROWS = {"of": "rows"}  # what tells the fix that no whole parameter is meant


def check(paths: Paths) -> Iterator[Report]:
    """Every freezing in vain of what a later backward trains."""
    for fact, holders in paths.some(_frozen_in_vain):
        unknown = f"sets `{fact.detail}`, which torch does not know", "Write `requires_grad`."
        why, advice = _WHY.get(fact.detail, unknown)
        message = f"`{fact.text}` {why}: these parameters go on training"
        lines = " ".join(str(each.line) for each in holders if each.path == fact.at.path)
        hints = {"optimizers": lines, **(_ROWS if fact.detail == "rows" else {})}
        yield Report(fact.at, message, advice, places(fact.at), hints=hints)
    for fact in paths.some(_stays_frozen):
        message = (
            f"`{fact.text}` sets an attribute of the module that nothing reads: its parameters "
            "stay frozen"
        )
        advice = "Call `requires_grad_(True)` on the module."
        yield Report(fact.at, message, advice, places(fact.at))
    for fact in paths.some(_thawed_in_vain):
        message = (
            f"`{fact.text}` makes a leaf of its own that nothing uses: the frozen parameter "
            "stays frozen"
        )
        advice = "Unfreeze the parameter, and zero the gradient of the other rows in a hook."
        yield Report(fact.at, message, advice, places(fact.at), hints=_ROWS)
    for fact in paths.some(_refused_of_rows):
        message = f"`{fact.text}` freezes rows of a parameter, which torch refuses: it raises"
        related = places(fact.at, *calls(fact.stack, ()))
        yield Report(fact.at, message, _WHY["rows"][1], related, hints=_ROWS)


def _refused_of_rows(tape: Tape) -> Iterator[Fact]:
    return (fact for fact in tape.facts("flag-refused") if fact.detail == "rows")


def _stays_frozen(tape: Tape) -> Iterator[Fact]:
    """The unfreezings in vain of modules none of whose parameters a later backward of the path
    trains.
    """
    facts = tape.facts("module-thawed-in-vain")
    sinks = list(tape.backwards()) if facts else []
    for at in {fact.at for fact in facts}:
        own = [fact for fact in facts if fact.at == at]
        later = [sink for sink in sinks if sink.order > own[0].order]
        trained = {id(leaf.parameter) for sink in later for leaf in sink.leaves if leaf.parameter}
        held = {id(fact.value.parameter) for fact in own if fact.value is not None}
        if later and trained.isdisjoint(held):
            yield own[0]


def _frozen_in_vain(tape: Tape) -> Iterator[tuple[Fact, list[Span]]]:
    """The freezings of what a later backward of the path trains, and where an optimizer is given it
    afterwards.
    """
    trained = {
        id(leaf.parameter): sink.order
        for sink in tape.backwards()
        for leaf in sink.leaves
        if leaf.parameter
    }
    for fact in tape.facts("frozen-in-vain"):
        own = fact.value.parameter if fact.value is not None else None
        if (
            own is not None
            and trained.get(id(own), -1) > fact.order
            and not _is_of_its_own(tape, fact)
        ):
            made = (event.optimizer for event in tape.of(OptimizerMade) if event.order > fact.order)
            yield fact, [each.at for each in made if each.holds(own)]


def _thawed_in_vain(tape: Tape) -> Iterator[Fact]:
    """The rows that are unfrozen, and that no later backward of the path comes to."""
    sinks = list(tape.backwards())
    met = (
        {id(value) for sink in sinks for value in sink.ancestors}
        if tape.facts("thawed-in-vain")
        else set()
    )
    for fact in tape.facts("thawed-in-vain"):
        if id(fact.source) not in met and any(sink.order > fact.order for sink in sinks):
            yield fact


def _is_of_its_own(tape: Tape, fact: Fact) -> bool:
    """Whether an attribute can be one of the program's own:
    `SGD([p for p in model.parameters() if p.trainable])`.
    """
    return fact.detail not in _WHY and "grad" not in fact.detail and _is_left_out(tape, fact.value)


def _is_left_out(tape: Tape, value: Value | None) -> bool:
    """Whether there are optimizers, and none of them has it."""
    optimizers, parameter = tape.optimizers(), value.parameter if value is not None else None
    if (
        parameter is None
        or not optimizers
        or not all(each.complete and each.parameters for each in optimizers)
    ):
        return False
    return not any(each.holds(parameter) for each in optimizers)


def fix(finding: Finding, source: FixSource) -> Fix:
    """Freezes the parameters, and gives no optimizer what is frozen by then; rows of one stay by a
    hook.
    """
    if _ROWS.items() <= finding.hints.items():
        return unsafe("Zero the gradient of what stays", kept_by_a_hook(finding, source))
    edits = (*frozen(finding, source), *without_frozen(finding, source))
    return unsafe("Freeze the parameters", edits)
