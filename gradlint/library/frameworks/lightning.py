"""Lightning: a LightningModule is entered at `training_step`, whose result the Trainer
back-propagates.

With automatic optimization the Trainer clears, back-propagates and steps; with
`automatic_optimization = False` the module does so itself. `configure_optimizers` runs first, so
that it is known what is trained.

The order is that of Lightning 2.6: gradients are cleared before the first backward of a window of
`accumulate_grad_batches` and stepped on behind its last, or the epoch's last; with
`precision="16-mixed"` the loss is scaled, `on_after_backward` meets scaled gradients and
`on_before_optimizer_step` unscaled ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias, canonical, is_a, parent
from gradlint.interpret.registry import attribute, enters, function, method
from gradlint.interpret.values import (
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Instance,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.flags import set_requires_grad
from gradlint.library.frameworks.fitting import Settings, configured, train

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

MODULE = "lightning.pytorch.LightningModule"
TRAINER = "lightning.pytorch.Trainer"
alias("pytorch_lightning", "lightning.pytorch")
for _name in ("LightningModule", "Trainer", "LightningDataModule", "Callback"):
    alias(f"lightning.{_name}", f"lightning.pytorch.{_name}")
for _module in (
    "core",
    "core.module",
    "core.lightning",
    "core.datamodule",
    "trainer",
    "trainer.trainer",
    "callbacks.callback",
):
    alias(f"lightning.pytorch.{_module}", "lightning.pytorch")
parent(MODULE, "torch.nn.Module")
_TOGGLE = f"{MODULE}.toggle_optimizer"
_STATE = (
    "trainer",
    "logger",
    "loggers",
    "fabric",
    "example_input_array",
    "strict_loading",
)
_NUMBERS = ("current_epoch", "global_rank", "local_rank", "local_batch_idx")


@enters
def enter(m: Machine, made: Abstract, name: str, called: Abstract, call: Call) -> bool:
    """`training_step` of a LightningModule that nothing in sight trains."""
    if name != "training_step" or not is_lightning(made):
        return False
    assert isinstance(made, Instance)
    train(m, made, call)
    return True


def is_lightning(value: Abstract) -> bool:
    """Whether a value is an object of a LightningModule class of the program."""
    return isinstance(value, Instance) and any(is_a(base, MODULE) for base in _libraries(value))


def _libraries(instance: Instance) -> Iterator[str]:
    return (canonical(name) for name in instance.cls.libraries())


@method(MODULE, "optimizers")
def optimizers_of(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`self.optimizers()`: the optimizer, or a list of several."""
    found = configured(m, module, call)
    if not found:
        return Unknown(m.symbol(module).derive("optimizers", "optimizers"))
    return found[0] if len(found) == 1 else Sequence("list", list(found))


@method(MODULE, "lr_schedulers")
def schedulers_of(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`self.lr_schedulers()`."""
    configured(m, module, call)
    found = module.state["schedulers"]
    if not found:
        return Unknown(m.symbol(module).derive("lr_schedulers", "lr_schedulers"))
    return found[0] if len(found) == 1 else Sequence("list", list(found))


@method(MODULE, "manual_backward")
def manual_backward(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.manual_backward(loss)`, which automatic optimization refuses: it was switched off, here
    or not.
    """
    from gradlint.library import autograd

    module.state["manual"] = True
    kept = (
        call.constant(None, "retain_graph") is True or call.constant(None, "create_graph") is True
    )
    return autograd.backward(
        m, call.get(0, "loss") or NONE, call, "manual_backward", retain_graph=kept
    )


@method(MODULE, "toggle_optimizer")
def toggle(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.toggle_optimizer(opt)`: what the other optimizers hold is frozen, but for what this one
    holds, too.
    """
    before = {
        id(each): each.node.requires_grad for each in _held(m, configured(m, module, call), call)
    }
    module.state["toggled"] = before
    own = {id(each) for each in _held(m, [call.get(0, "optimizer") or NONE], call)}
    for each in _held(m, configured(m, module, call), call):
        set_requires_grad(m, each, id(each) in own and before[id(each)], call, _TOGGLE)
    return NONE


@method(MODULE, "untoggle_optimizer")
def untoggle(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.untoggle_optimizer(opt)`: what the others hold is as it was before."""
    before: dict[int, bool] = module.state.pop("toggled", {})
    own = {id(each) for each in _held(m, [call.get(0, "optimizer") or NONE], call)}
    for each in _held(m, configured(m, module, call), call):
        if id(each) not in own and id(each) in before:
            set_requires_grad(m, each, before[id(each)], call, _TOGGLE)
    return NONE


def _held(m: Machine, optimizers: list[Abstract], call: Call) -> list[Tensor]:
    """The parameters that optimizers hold, each once."""
    from gradlint.library.optimizers import handle_of, tensor_of

    handles = [handle for each in optimizers if (handle := handle_of(m, each, call)) is not None]
    found = [tensor_of(m, value) for handle in handles for value in handle.parameters]
    return list({id(each): each for each in found}.values())


@method(MODULE, "clip_gradients")
def clip_gradients(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.clip_gradients(optimizer, …)`."""
    from gradlint.library.optimizers import handle_of

    handle = handle_of(m, call.get(0, "optimizer"), call)
    held = tuple(handle.parameters) if handle is not None else ()
    m.emit(
        tape.Clip(at=call.frame.span(call.node), parameters=held, text=call.frame.text(call.node))
    )
    return NONE


@attribute(MODULE, "automatic_optimization")
def automatic_optimization(m: Machine, module: Instance, at: Call) -> Abstract:
    """Whether the Trainer back-propagates: unless the module says otherwise."""
    return TRUE


@attribute(MODULE, "device")
def device(m: Machine, module: Instance, at: Call) -> Abstract:
    """The device of a module."""
    return Unknown(m.symbol(module).derive("device", "self.device"), data=True, type="object")


@attribute(MODULE, "global_step")
def global_step(m: Machine, module: Instance, at: Call) -> Abstract:
    """The number of steps so far: another one in each round."""
    return Unknown(
        m.symbol(module).derive(("global_step", m.rounds), "self.global_step"),
        data=True,
        type="number",
    )


def _outside(name: str, kind: str) -> None:
    @attribute(MODULE, name)
    def handler(m: Machine, module: Instance, at: Call) -> Abstract:
        return Unknown(
            m.symbol(module).derive(("attribute", name), f"self.{name}"), data=True, type=kind
        )


for _name in _STATE:
    _outside(_name, "")


@attribute(MODULE, "hparams")
def hyperparameters(m: Machine, module: Instance, at: Call) -> Abstract:
    """What the constructor was given: numbers and words, and a network or function that it is to
    call, `self.hparams.decoder(x)`.
    """
    found = Unknown(m.symbol(module).derive(("attribute", "hparams"), "self.hparams"), data=True)
    m.state.setdefault("hyperparameters", set()).add(found.symbol)
    return found


for _name in _NUMBERS:
    _outside(_name, "number")


@method(
    MODULE,
    "log",
    "log_dict",
    "print",
    "save_hyperparameters",
    "lr_scheduler_step",
    "backward",
    "optimizer_zero_grad",
    "load_from_checkpoint",
)
def harmless(m: Machine, module: Abstract, call: Call) -> Abstract:
    """What changes nothing about gradients."""
    return NONE


@method(MODULE, "optimizer_step")
def optimizer_step(m: Machine, module: Instance, call: Call) -> Abstract:
    """`super().optimizer_step(…)`: the Trainer's own step follows anyway."""
    closure = call.get(3, "optimizer_closure")
    return m.invoke(closure, [], call) if closure is not None else NONE


@method(MODULE, "freeze", "unfreeze")
def freeze(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.freeze()`: all parameters, and eval mode."""
    thaws = call.frame.text(call.node).partition("(")[0].endswith("unfreeze")
    m.invoke(m.attribute(module, "requires_grad_", call), [Const(thaws)], call)
    m.invoke(m.attribute(module, "train", call), [Const(thaws)], call)
    return NONE


@method(MODULE, "all_gather")
def all_gather(m: Machine, module: Instance, call: Call) -> Abstract:
    """`self.all_gather(x)`: without a gradient unless `sync_grads=True`."""
    keeps = call.constant(2, "sync_grads") is True
    effect = tape.Cut.COLLECTIVE if not keeps else None
    sources = tensors.sources(m, call.args[:1], call.node, call.frame)
    made = tensors.operation(m, f"{MODULE}.all_gather", sources, call.node, call.frame, cut=effect)
    made.storage = tape.Storage()
    return Tensor(made)


@function(TRAINER)
def trainer(m: Machine, call: Call) -> Abstract:
    """`Trainer(…)`."""
    return Object(TRAINER, call.frame.span(call.node), {"settings": Settings.of(call)})


@method(TRAINER, "fit")
def fit(m: Machine, made: Object, call: Call) -> Abstract:
    """`trainer.fit(module, …)`."""
    module = call.get(0, "model")
    if isinstance(module, Instance) and is_lightning(module):
        loader = call.get(1, "train_dataloaders")
        train(m, module, call, made.state["settings"], loader)
    return NONE


@method(TRAINER, "*")
def anything_else(m: Machine, made: Object, call: Call) -> Abstract:
    """Validation, tests, checkpoints."""
    return m.unknown(call.frame.text(call.node), data=True)
