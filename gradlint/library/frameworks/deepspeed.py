"""DeepSpeed: `initialize` gives an engine, which scales, clears and steps by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias, parent
from gradlint.interpret.registry import function, guesses, method
from gradlint.interpret.values import (
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Sequence,
    Unknown,
)
from gradlint.library.wrappers import WRAPPER, wrapped

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

ENGINE = "deepspeed.DeepSpeedEngine"
alias("deepspeed.runtime.engine.DeepSpeedEngine", ENGINE)
alias("deepspeed.checkpointing.checkpoint", "torch.utils.checkpoint.checkpoint")
parent(ENGINE, WRAPPER)
_NAMES = frozenset(["engine", "model_engine", "ds_engine", "deepspeed_engine", "engine_"])


@function("deepspeed.initialize")
def initialize(m: Machine, call: Call) -> Abstract:
    """`initialize(args, model, optimizer, …)`: an engine, an optimizer, a loader and a
    scheduler.
    """
    engine = wrapped(m, ENGINE, call.get(1, "model"), call)
    optimizer = _optimizer(m, call)
    if isinstance(engine, Object):
        engine.state["optimizer"] = optimizer
    loader = call.get(4, "training_data") or m.unknown("training_data", data=True)
    return Sequence("tuple", [engine, optimizer, loader, call.get(5, "lr_scheduler") or NONE])


def _optimizer(m: Machine, call: Call) -> Abstract:
    """The optimizer given, or the one that the configuration names, over the parameters given."""
    from gradlint.library.optimizers import optimizer_over

    given = call.get(2, "optimizer")
    if given is not None and not (isinstance(given, Const) and given.value is None):
        return given
    model, parameters = call.get(1, "model"), call.get(3, "model_parameters")
    if parameters is None and model is not None:
        parameters = m.invoke(m.attribute(model, "parameters", call), [], call)
    return Object(
        "torch.optim.Optimizer",
        call.frame.span(call.node),
        {"handle": optimizer_over(m, parameters, call, "DeepSpeedOptimizer")},
    )


@guesses("backward", "step")
def by_name(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """A parameter called `model_engine` is one; what it wraps is unknown."""
    if unknown.symbol.text.rpartition(".")[2] not in _NAMES:
        return None
    known = m.state.setdefault("unknown-engines", {})
    if unknown.symbol not in known:
        engine = Object(ENGINE, at.frame.span(at.node), {"items": Mapping({"module": unknown})})
        engine.state["optimizer"] = Unknown(unknown.symbol.derive("optimizer", "optimizer"))
        known[unknown.symbol] = engine
    return m.attribute(known[unknown.symbol], name, at)


@method(ENGINE, "backward")
def backward(m: Machine, engine: Object, call: Call) -> Abstract:
    """`engine.backward(loss)`."""
    from gradlint.library import autograd

    kept = call.constant(None, "retain_graph") is True
    return autograd.backward(
        m, call.get(0, "loss") or NONE, call, "engine.backward", retain_graph=kept
    )


@method(ENGINE, "step")
def step(m: Machine, engine: Object, call: Call) -> Abstract:
    """`engine.step()`: at the end of a window it steps and clears; here each micro-batch ends
    one.
    """
    from gradlint.library import optimizers

    held = engine.state.get("optimizer")
    if isinstance(held, Abstract):
        at = Call("step", [], {}, call.node, call.frame)
        optimizers.step(m, held, at)
        optimizers.zero_grad(m, held, at)
    return NONE


@method(
    ENGINE,
    "zero_grad",
    "save_checkpoint",
    "load_checkpoint",
    "allreduce_gradients",
    "set_train_batch_size",
)
def harmless(m: Machine, engine: Object, call: Call) -> Abstract:
    """What the engine does by itself, and what has nothing to do with gradients."""
    return m.unknown(call.frame.text(call.node), data=True)


@method(ENGINE, "is_gradient_accumulation_boundary")
def boundary(m: Machine, engine: Object, call: Call) -> Abstract:
    """Whether this micro-batch ends a window: here each one does."""
    return TRUE


@function(
    "deepspeed.init_distributed",
    "deepspeed.add_config_arguments",
    "deepspeed.zero.Init",
    "deepspeed.zero.GatheredParameters",
    "deepspeed.runtime.utils.see_memory_usage",
)
def settings(m: Machine, call: Call) -> Abstract:
    """What changes nothing about which gradients there are."""
    if ".zero." in call.name:
        return Object("builtins.harmless-context", call.frame.span(call.node))
    return m.unknown(call.frame.text(call.node), data=True, type="object")
