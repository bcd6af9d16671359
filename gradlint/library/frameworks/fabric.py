"""Lightning Fabric: what it sets up is what it was given; `fabric.backward(loss)` is a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, function, guesses, method, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Builtin,
    Call,
    Function,
    Object,
    Sequence,
    Unknown,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

FABRIC = "lightning.fabric.Fabric"
alias("lightning.Fabric", FABRIC)
alias("lightning_fabric", "lightning.fabric")
alias("lightning.fabric.fabric", "lightning.fabric")
_OWN = frozenset(
    (
        "backward",
        "setup",
        "setup_module",
        "setup_optimizers",
        "setup_dataloaders",
        "clip_gradients",
        "autocast",
        "no_backward_sync",
        "to_device",
        "launch",
    )
)


@function(FABRIC)
def make(m: Machine, call: Call) -> Abstract:
    """`Fabric(…)`."""
    return Object(FABRIC, call.frame.span(call.node))


@guesses(*_OWN)
def by_name(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """A parameter called `fabric` is one."""
    if unknown.symbol.text.rpartition(".")[2] != "fabric":
        return None
    return m.attribute(Object(FABRIC, at.frame.span(at.node)), name, at)


@typed(FABRIC)
def typed_fabric(m: Machine, symbol: Symbol, function_: Function, parameter: object) -> Abstract:
    """A parameter annotated as a Fabric."""
    return Object(FABRIC, function_.node.code.span(function_.node.at))


@method(FABRIC, "setup", "setup_module", "setup_optimizers", "setup_dataloaders", "to_device")
def set_up(m: Machine, fabric: Object, call: Call) -> Abstract:
    """What it was given, as a tuple where that is more than one thing."""
    given = [
        value
        for name, value in call.kwargs.items()
        if name in ("module", "dataloader", "obj", "optimizer")
    ]
    return unchanged([*call.args, *given])


def unchanged(given: list[Abstract]) -> Abstract:
    """One thing as it is, several as a tuple."""
    if not given:
        return NONE
    return given[0] if len(given) == 1 else Sequence("tuple", list(given))


@method(FABRIC, "backward")
def backward(m: Machine, fabric: Object, call: Call) -> Abstract:
    """`fabric.backward(loss)`."""
    from gradlint.library import autograd

    kept = (
        call.constant(None, "retain_graph") is True or call.constant(None, "create_graph") is True
    )
    return autograd.backward(
        m, call.get(0, "tensor") or NONE, call, "fabric.backward", retain_graph=kept
    )


@method(FABRIC, "clip_gradients")
def clip_gradients(m: Machine, fabric: Object, call: Call) -> Abstract:
    """`fabric.clip_gradients(module, optimizer, …)`: it unscales first."""
    from gradlint.library.clipping import clip

    return clip(m, call.get(0, "module"), call)


@method(FABRIC, "autocast")
def autocast(m: Machine, fabric: Object, call: Call) -> Abstract:
    """`with fabric.autocast():`, which is that of its own device and precision."""
    from gradlint.library import amp

    return amp.of_framework(call)


@method(
    FABRIC, "no_backward_sync", "init_module", "init_tensor", "rank_zero_first", "sharded_model"
)
def region(m: Machine, fabric: Object, call: Call) -> Abstract:
    """A context that changes nothing about which gradients there are."""
    return Object("builtins.harmless-context", call.frame.span(call.node))


@method(FABRIC, "launch")
def launch(m: Machine, fabric: Object, call: Call) -> Abstract:
    """`fabric.launch(function)` calls it with the fabric."""
    if call.args and isinstance(call.args[0], Function | Builtin):
        return m.invoke(call.args[0], [fabric, *call.args[1:]], call)
    return NONE


@method(FABRIC, "all_gather", "all_reduce", "broadcast")
def exchange(m: Machine, fabric: Object, call: Call) -> Abstract:
    """In one process, the tensor itself."""
    return call.args[0] if call.args else NONE


@attribute(FABRIC, "device")
def device(m: Machine, fabric: Object, at: Call) -> Abstract:
    """The device that the fabric chose."""
    return Unknown(m.session.library_symbol(f"{FABRIC}.device"), data=True, type="object")


@attribute(FABRIC, "is_global_zero")
def is_global_zero(m: Machine, fabric: Object, at: Call) -> Abstract:
    """Whether this is the first process."""
    return Unknown(m.session.library_symbol(f"{FABRIC}.is_global_zero"), data=True, type="bool")


@method(FABRIC, "*")
def anything_else(m: Machine, fabric: Object, call: Call) -> Abstract:
    """Logs, checkpoints, barriers."""
    return m.unknown(call.frame.text(call.node), data=True)
