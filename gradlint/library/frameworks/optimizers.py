"""Optimizers and schedulers of other packages: they hold, step and clear as torch's do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.lineage import parent
from gradlint.interpret.registry import fallback
from gradlint.interpret.values import Abstract, Call, Object
from gradlint.library.optimizers import OPTIMIZER, SCHEDULER, handle_of, optimizer_over

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PACKAGES = (
    "apex.optimizers.",
    "bitsandbytes.optim.",
    "deepspeed.ops.adam.",
    "deepspeed.ops.lamb.",
    "deepspeed.ops.lion.",
    "pytorch_optimizer.",
    "torch_optimizer.",
    "timm.optim.",
    "fairscale.optim.",
    "torch.distributed.optim.",
    "lion_pytorch.",
    "prodigyopt.",
    "dadaptation.",
    "schedulefree.",
    "adabelief_pytorch.",
    "muon.",
    "sophia.",
    "heavyball.",
    "galore_torch.",
    "ranger.",
)
_SINGLE = (
    "transformers.AdamW",
    "transformers.Adafactor",
    "transformers.optimization.AdamW",
    "transformers.optimization.Adafactor",
)
_SCHEDULES = (
    "transformers.get_",
    "transformers.optimization.get_",
    "diffusers.optimization.get_",
    "diffusers.get_",
    "timm.scheduler.",
)
for _name in _SINGLE:
    parent(_name, OPTIMIZER)


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """An optimizer class of one of these packages, or a schedule over one."""
    short = call.name.rpartition(".")[2]
    at = call.frame.span(call.node)
    if call.name.startswith(_PACKAGES) and (short[:1].isupper() or short == "create_optimizer_v2"):
        return Object(
            OPTIMIZER, at, {"handle": optimizer_over(m, call.get(0, "params"), call, short)}
        )
    if call.name.startswith(_SCHEDULES) and (
        "schedule" in short.lower() or short.endswith("LRScheduler")
    ):
        return Object(
            SCHEDULER,
            at,
            {"handle": tape.Scheduler("", at, handle_of(m, call.get(0, "optimizer"), call))},
        )
    return None
