"""# unregistered-module (GL514)

Modules or parameters that `forward` uses live in a plain list, tuple, dict or dataclass, or are
plain tensors.

## What it does
Reports the container, where a loss trains what lies in it, and no optimizer holds it because the
module does not know of it; likewise an attribute like
`self.scale = torch.ones(3, requires_grad=True)`, which is no parameter.

## Why it matters
`parameters()`, `to(device)`, `state_dict()`, `train()` and `eval()` pass over it: the layers are
never trained, moved or saved.

## Example
```python
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [torch.nn.Linear(4, 4) for _ in range(2)]  # expect: GL514
        self.out = torch.nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.out(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])
        self.out = torch.nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.out(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

`ModuleDict`, `ParameterList` and `ParameterDict` do the same for the other containers.

## What it does not report
- A list that only aliases modules which are registered as well.
- Layers whose parameters are handed to an optimizer in another way, or that get no gradient; those
  of a module of which no optimizer holds anything: a prior, a critic.
- Layers that the program updates by hand (`weight -= rate * weight.grad`); a traced run does not
  tell these.
- Tensors whose gradient the program reads or asks for: adversarial ones.

## Limits
What a class out of view makes can have no parameters: where nothing trains the module in view, that
is a note. So is what a constructor is handed, `layers: list[nn.Module]`: whoever made the layers
can train them. An optimizer that is not in view can hold them, but for a module with no trainer in
view: that is taken to be trained by its `parameters()`. A traced run does not see plain tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import NOT_SHOWN, Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import Clip, Fact, May, Optimizer, Tape, Value
from gradlint_rules.cached import of_tape
from gradlint_rules.overwritten import set_after
from gradlint_rules.structure import as_parameter, registered
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
_TENSOR = "tensor"
_HELP_TENSOR = "Make it a parameter: `nn.Parameter(…)`."
_HELP = "Put them into `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.ParameterDict`."


def check(paths: Paths) -> Iterator[Report]:
    """Every plain container of what a loss trains and no optimizer on any path holds."""
    found = dict(paths.some(_left_on))
    lost: dict[Span, Fact] = {}
    for place in sorted(found, key=lambda place: (place[0], _is_assumed(found[place]), place[1])):
        if place[0] not in lost and _is_never_held(place, paths):
            lost[place[0]] = found[place]
    for at, fact in lost.items():
        is_tensor = fact.text == _TENSOR
        what = (
            f"`{fact.detail}` is a plain tensor and"
            if is_tensor
            else f"what lies in `{fact.detail}` is"
        )
        message = f"{what} no part of the module: no optimizer holds it, and it is never trained"
        hints = {"kind": fact.text} | ({NOT_SHOWN: "yes"} if is_tensor else {})
        severity = Severity.NOTE if _is_only_believed(fact, paths) else None
        yield Report(
            at,
            message,
            _HELP_TENSOR if is_tensor else _HELP,
            places(at),
            severity=severity,
            hints=hints,
        )


def _is_only_believed(fact: Fact, paths: Paths) -> bool:
    """Whether a class out of view makes what lies in a container of a part: it can be one without
    parameters.
    """
    return _is_part(paths) and _is_assumed(fact)


def _is_assumed(fact: Fact) -> bool:
    return fact.value is not None and fact.value.assumed


_Place = tuple[Span, Span]  # of the container, and of what lies in it


def _is_never_held(place: _Place, paths: Paths) -> bool:
    """Whether no optimizer holds what lies there, nor anything else uses its gradient, whatever was
    not run.

    What trains a part is assumed, so that no code that was not run makes another optimizer.
    """
    may = May(0) if _is_part(paths) else May.HOLD | May.READ
    return bool(paths.never(lambda tape: place in _held_on(tape), may))


def _is_part(paths: Paths) -> bool:
    return any(sink.assumed for sink in paths.some(Tape.backwards))


@of_tape
def _held_on(tape: Tape) -> set[_Place]:
    return {place for place, fact, value in _trained(tape) if _is_kept(fact, value, tape)}


def _left_on(tape: Tape) -> Iterator[tuple[_Place, Fact]]:
    """What lies in plain containers and no optimizer of the path holds."""
    optimizers = tape.optimizers()
    for place, fact, value in _trained(tape) if optimizers else ():
        is_left = fact.source is not None and not _is_held(fact.source, optimizers)
        if not is_left and not _is_kept(fact, value, tape):
            yield place, fact


def _trained(tape: Tape) -> Iterator[tuple[_Place, Fact, Value]]:
    """What lies in plain containers and a loss of the path trains."""
    facts = tape.facts("plain-container")
    leaves = (leaf for sink in tape.backwards() for leaf in sink.leaves) if facts else ()
    trained = {id(leaf.parameter) for leaf in leaves}
    for fact in facts:
        parameter = fact.value.parameter if fact.value is not None else None
        if fact.value is not None and parameter is not None and id(parameter) in trained:
            yield (fact.at, parameter.at), fact, fact.value


def _is_kept(fact: Fact, value: Value, tape: Tape) -> bool:
    is_held = _is_held(value, tape.optimizers())
    return is_held or _is_updated_by_hand(value, tape) or _is_looked_at(fact, tape)


def _is_held(value: Value, optimizers: Sequence[Optimizer]) -> bool:
    """Whether an optimizer holds a parameter, or can hold it."""
    parameter = value.parameter
    return any(
        not each.complete or (parameter is not None and each.holds(parameter))
        for each in optimizers
    )


def _is_updated_by_hand(parameter: Value, tape: Tape) -> bool:
    """Whether it is written to behind a backward: `weight -= rate * weight.grad`."""
    first = min((sink.order for sink in tape.backwards()), default=0)
    is_written = parameter.storage is not None and any(
        write.order > first for write in parameter.storage.writes
    )
    return is_written or id(parameter.parameter) in set_after(first, tape)


def _is_looked_at(fact: Fact, tape: Tape) -> bool:
    """Whether the gradient of a plain tensor is read or asked for, as that of an adversarial input
    is.
    """
    if fact.value is None or fact.text != _TENSOR:
        return False
    asked = [value for sink in tape.backwards() for value in sink.inputs or ()]
    read = [value for event in tape.of(Clip) if event.reads_only for value in event.parameters]
    return any(value.parameter is fact.value.parameter for value in (*asked, *read))


def fix(finding: Finding, source: FixSource) -> Fix:
    """Makes it a container that the module knows of."""
    if finding.hints.get("kind") == _TENSOR and (edits := as_parameter(finding, source)):
        return unsafe("Make it a parameter", edits)
    if finding.hints.get("kind") == _TENSOR:
        raise NoFixError("whether it is to be trained, or only to have a gradient, is not known")
    return unsafe("Register what it holds", registered(finding, source))
