"""Hydra: `instantiate` calls what a configuration names with what the configuration and the call
give.

    hydra.utils.instantiate({"_target_": "torch.optim.SGD", "lr": 0.1}, params=model.parameters())

A name of the program's own files is not looked up. What is given `params=` is an optimizer,
whatever the configuration says: https://hydra.cc/docs/advanced/instantiate_objects/overview/ is the
source of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Call, Const, Lib, Mapping, Object
from gradlint.library.ops import loaded
from gradlint.library.optimizers import OPTIMIZER, optimizer_over

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@function("hydra.utils.instantiate", "hydra.utils.call")
def instantiate(m: Machine, call: Call) -> Abstract:
    """Calls the target that the configuration names, where that is known and of a library."""
    config, args = call.get(0, "config"), call.args[1:]
    given = {name: value for name, value in call.kwargs.items() if name != "config"}
    if isinstance(config, Mapping) and not _is_partial(config):
        target = config.items.get("_target_")
        if isinstance(target, Const) and str(target.value).startswith("torch."):
            written = {
                str(name): value
                for name, value in config.items.items()
                if not str(name).startswith("_")
            }
            is_open = call.open or config.open
            made = Call(
                str(target.value), args, {**written, **given}, call.node, call.frame, is_open
            )
            return m.call(Lib(made.name), made)
    if "params" in given and not isinstance(config, Mapping):
        held = optimizer_over(m, given["params"], call, OPTIMIZER)
        return Object(OPTIMIZER, call.frame.span(call.node), {"handle": held, "again": False})
    return loaded(m, call)


def _is_partial(config: Mapping) -> bool:
    return "_partial_" in config.items or "_args_" in config.items
