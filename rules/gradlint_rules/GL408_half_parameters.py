"""# half-parameters (GL408)

Parameters in float16 are trained with a `GradScaler`.

## What it does
Reports where parameters that a `GradScaler` unscales or steps afterwards become float16:
`model.half()`, `model.to(torch.float16)`, a layer that is built with `dtype=torch.float16` or after
`torch.set_default_dtype(torch.float16)`, a model that `from_pretrained` or `from_config` is told to
load in float16.

## Why it matters
Unscaling raises: "Attempting to unscale FP16 gradients". Mixed precision keeps the parameters in
float32 and lets `autocast` compute in float16; parameters in float16 lose small updates, whatever
is scaled.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1).half()  # expect: GL408
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
loss = model(torch.randn(8, 4).half()).float().pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)  # ValueError: Attempting to unscale FP16 gradients
scaler.update()
```

## Use instead
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
with torch.autocast("cpu", dtype=torch.float16):
    loss = model(torch.randn(8, 4)).float().pow(2).mean()
optimizer.zero_grad()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## What it does not report
- bfloat16, which unscaling takes.
- Parameters that get no gradient: a frozen backbone in float16.
- A loaded model that other code is given before it is trained: adapters have a dtype of their own.
- Parameters that are cast back before they are trained, and a scaler that is disabled on this path.
- `scaler.step` of a fused optimizer (`fused=True`), which unscales by itself, or of one whose class
  is not in view; `scaler.unscale_` raises for these, too.

## Limits
What a library loads in float16 is seen only where the program says so (`torch_dtype=`, `dtype=`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlint.finding import Related, Severity
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Backward, Fact, Optimizer, OptimizerStep, Parameter, Scaler, Tape, Unscale
from gradlint_rules.held import identities, reached, share
from gradlint_rules.words import calls, is_out_of_view, places

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
FACT = "parameter-cast"
_HALF = "half"
_HELP = "Keep the parameters in float32 and compute under `torch.autocast`."


def check(paths: Paths) -> Iterator[Report]:
    """Every cast to float16 of parameters whose gradients a scaler unscales."""
    for cast, use in paths.some(_unscaled_in_half):
        yield _report(cast, use)


def _unscaled_in_half(tape: Tape) -> Iterator[tuple[Fact, OptimizerStep | Unscale]]:
    casts: dict[int, tuple[Parameter, Fact]] = {}
    trained: list[Parameter] = []
    for event in (
        tape.among("parameter-cast", Backward, OptimizerStep, Unscale)
        if tape.facts("parameter-cast")
        else ()
    ):
        match event:
            case Fact(what="parameter-cast", value=value) if (
                value is not None and value.parameter is not None
            ):
                casts[id(value.parameter)] = (value.parameter, event)
            case Backward(scaler=Scaler(enabled=enabled)) if enabled is not False:
                trained.extend(reached(event))
            case (
                OptimizerStep(scaler=Scaler(), optimizer=Optimizer() as optimizer)
                | Unscale(optimizer=Optimizer() as optimizer)
            ) if casts:
                held = identities(optimizer.parameters) if not _unscales_by_itself(event) else []
                yield from ((cast, event) for cast in _in_half(casts, held, trained))
                trained = []


def _unscales_by_itself(event: OptimizerStep | Unscale) -> bool:
    """Whether the optimizer takes the factor out, and not the scaler: torch 2.13 does so in a fused
    one.
    """
    if isinstance(event, Unscale):
        return False
    return event.optimizer.unscales or is_out_of_view(event.optimizer)


def _in_half(
    casts: dict[int, tuple[Parameter, Fact]],
    held: Sequence[Parameter],
    trained: Sequence[Parameter],
) -> Iterator[Fact]:
    """The casts to float16 of parameters that the optimizer holds and that have a gradient."""
    for parameter, cast in casts.values():
        if cast.detail == _HALF and share([parameter], held) and share([parameter], trained):
            yield cast


def _report(cast: Fact, use: OptimizerStep | Unscale) -> Report:
    message = (
        f"the parameters are float16 from here on, and `{use.text}` cannot unscale their "
        "gradients: it raises"
    )
    related = places(cast.at, *calls(cast.stack, use.stack), Related(use.at, "it raises here"))
    return Report(cast.at, message, _HELP, related)
