"""# cuda-only-amp (GL401)

Mixed precision is CUDA's alone, although the code chooses among devices.

## What it does
Reports `autocast` and `GradScaler` for CUDA (`torch.autocast("cuda")`, `torch.amp.GradScaler()`,
whatever comes from `torch.cuda.amp`) on a path on which the program runs on the CPU or on MPS:
because CUDA is not available, or because the user can ask for it. A flag of the command line or of
settings (`enabled=config.mixed_precision`) says nothing of the device. Where callers out of view
hand it in, and can have asked for the device, it is a `note`. An autocast that is switched off for
CUDA (`torch.autocast("cuda", enabled=False)`) is reported within one for the device that the code
runs on, which it leaves on.

## Why it matters
Without CUDA both warn once and switch themselves off, and with CUDA present an autocast for it does
nothing for tensors that live elsewhere: training runs in full precision, slower and in twice the
memory, and nobody asked for it.

The device need not be CUDA. `torch.autocast("cpu")` is there since torch 1.10 (bfloat16; float16
since 2.4), `torch.autocast("mps")` since 2.5 (float16; bfloat16 since 2.6).
`torch.amp.GradScaler(device)` is there since 2.3 for CUDA and the CPU, and its `unscale_` runs on
MPS since 2.8. bfloat16 needs no scaler anywhere.

## Example
```python
import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")  # expect: GL401
with torch.autocast("cuda", dtype=torch.float16):  # expect: GL401
    loss = model(torch.randn(8, 4).to(device)).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
assert scaler.is_enabled() == torch.cuda.is_available()
```

## Use instead
```python
import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
with torch.autocast(device.type, dtype=torch.float16 if device.type == "cuda" else torch.bfloat16):
    loss = model(torch.randn(8, 4).to(device)).pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## What it does not report
- What is enabled only on CUDA: `enabled=device.type == "cuda"`, a branch on the device, a
  `nullcontext()` elsewhere.
- What is enabled by something that is worked out by code out of view.
- Code that runs on CUDA alone, and code that is never seen to choose.

## Limits
The device has to be seen: a place that moves the model or the batch, and a choice that this program
makes (or an argument of its command line whose default or choices name another device).
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint import evidence
from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import Autocast, Fact, Tape
from gradlint_rules.devices import (
    AMP,
    CUDA,
    Amp,
    Choices,
    choices,
    chosen_here,
    is_checked,
)
from gradlint_rules.portable import switched_off_there, told_the_device
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import calls, places

SEVERITY = Severity.WARNING
AT_RUN_TIME = True
_HELP = "Give it the device that the code runs on (`device.type`), or enable it on CUDA only."
_HELP_ISLAND = (
    "Give it the device of what is computed there: `torch.autocast(x.device.type, enabled=False)`."
)
_MADE = ("autocast", "GradScaler")


def check(paths: Paths) -> Iterator[Report]:
    """Every autocast and scaler for CUDA that is enabled on a path without it."""
    found = choices(paths)
    reported: set[Span] = set()
    for fact, report in paths.some(lambda tape: _found(tape, found)):
        if fact.at not in reported and not is_checked(fact, paths):
            reported.add(fact.at)
            yield report


def _found(tape: Tape, found: Choices) -> Iterator[tuple[Fact, Report]]:
    """What is for CUDA alone on a path that puts something elsewhere."""
    elsewhere = found.without_cuda(tape) if found.places else None
    if elsewhere is not None:
        yield from ((fact, _report(fact, elsewhere)) for fact in _for_cuda(tape))
        yield from ((fact, _report_island(fact, elsewhere)) for fact in _islands(tape))


def _islands(tape: Tape) -> Iterator[Fact]:
    """The autocasts that are switched off for CUDA within one for another device, which stays
    on.
    """
    off = {fact.at: fact for fact in tape.facts(AMP) if _is_off_for_cuda(Amp.read(fact))}
    entered: list[Autocast] = []
    for event in tape.of(Autocast) if off else ():
        if not event.entered:
            entered[-1:] = []
            continue
        around = any(outer.device != CUDA and outer.enabled is not False for outer in entered)
        if around and event.at in off and event.device == CUDA:
            yield off[event.at]
        entered.append(event)


def _is_off_for_cuda(amp: Amp) -> bool:
    return (
        amp.enabled == "false"
        and not amp.by
        and amp.device == CUDA
        and amp.name.endswith("autocast")
    )


def _report_island(fact: Fact, elsewhere: Fact) -> Report:
    others = _others(elsewhere)
    message = (
        f"autocast is switched off for CUDA alone, and the code can run on {others}: the one "
        "around it stays on"
    )
    related = places(fact.at, *calls(fact.stack, ()), chosen_here(elsewhere))
    return Report(fact.at, message, _HELP_ISLAND, related, hints={"island": "yes"})


def _for_cuda(tape: Tape) -> Iterator[Fact]:
    return (fact for fact in tape.facts(AMP) if _is_on_for_cuda(Amp.read(fact)))


def _is_on_for_cuda(amp: Amp) -> bool:
    is_on = (
        amp.enabled != "false"
        and not evidence.mentions_devices(amp.by)
        and (not amp.by or amp.is_setting)
    )
    return is_on and amp.device == CUDA and amp.name.endswith(_MADE)


def _report(fact: Fact, elsewhere: Fact) -> Report:
    amp = Amp.read(fact)
    name = amp.name.rpartition(".")[2]
    effect = "there this switches itself off" if name == "GradScaler" else "there this does nothing"
    message = f"`{name}` is for CUDA alone, and the code can run on {_others(elsewhere)}: {effect}"
    related = places(fact.at, *calls(fact.stack, ()), chosen_here(elsewhere))
    if not amp.is_given:
        return Report(fact.at, message, _HELP, related)
    message += (
        f". `{amp.by}` says nothing of the device, unless callers out of view have asked for it"
    )
    return Report(fact.at, message, _HELP, related, Severity.NOTE)


def _others(elsewhere: Fact) -> str:
    return " or ".join(
        word.upper() for word in elsewhere.detail.split(" ") if word not in (CUDA, "unknown")
    )


def fix(finding: Finding, source: FixSource) -> Fix:
    """Tells it the device, and enables it on CUDA alone; an island, that of what is computed
    there.
    """
    if "island" in finding.hints:
        return unsafe("Switch off that of the tensor's device", switched_off_there(finding, source))
    return unsafe("Tell it the device", told_the_device(finding, source))
