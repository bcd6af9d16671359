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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import conditions, tensors
from gradlint.interpret.machine import Loop
from gradlint.interpret.operators import binary
from gradlint.interpret.periods import BATCHES
from gradlint.interpret.registry import (
    alias,
    attribute,
    canonical,
    enters,
    function,
    is_a,
    method,
    parent,
)
from gradlint.interpret.values import (
    NONE,
    TRUE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.flags import set_requires_grad
from gradlint.library.frameworks import rounds

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
_BEFORE = ("setup", "on_fit_start", "on_train_start", "on_train_epoch_start")
_SCALED = ("16-mixed", "16", 16)  # float16 with a GradScaler
_TOGGLE = f"{MODULE}.toggle_optimizer"
_STATE = (
    "hparams",
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


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a Trainer was told: how many batches make an update, and the scaler of its precision."""

    at: Span | None = None
    window: int = 1
    scaler: tape.Scaler | None = None

    @classmethod
    def of(cls, made: Call) -> _Settings:
        """The settings of `Trainer(accumulate_grad_batches=4, precision="16-mixed")`."""
        given = made.kwargs.get("accumulate_grad_batches", Const(1))
        window = given.value if isinstance(given, Const) and type(given.value) is int else 1
        is_scaled = made.constant(None, "precision") in _SCALED
        at = made.frame.span(made.node)
        return cls(
            at, max(window, 1), tape.Scaler("the Trainer's scaler", at) if is_scaled else None
        )


def train(m: Machine, module: Instance, call: Call, settings: _Settings | None = None) -> None:
    """A few rounds of what the Trainer does with a module."""
    settings = settings or _Settings()
    step = m.attribute(module, "training_step", call)
    written = function_of(step)
    if written is None:
        return
    optimizers = configured(m, module, call)
    for hook in _BEFORE:
        _run_hook(m, module, hook, call)
    automatic = (
        conditions.truth(m, m.attribute(module, "automatic_optimization", call)) is not False
    )
    fit = _Fit(
        m, module, call, step, optimizers, automatic, settings, sink_call("training_step", written)
    )
    fit.epoch(written)
    _run_hook(m, module, "on_train_epoch_end", call)
    if (
        not automatic and m.session.batches > BATCHES
    ):  # a counter: what an epoch leaves over shows in the next one
        _run_hook(m, module, "on_train_epoch_start", call)
        fit.epoch(written)
        _run_hook(m, module, "on_train_epoch_end", call)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A module with its optimizers, in the hands of a Trainer."""

    m: Machine
    module: Instance
    call: Call
    step: Abstract
    optimizers: list[Abstract]
    automatic: bool
    settings: _Settings
    place: Call

    def epoch(self, written: Function) -> None:
        """A loop over batches."""
        symbol = self.m.symbol(self.module)
        turns: list[int | None] = _turns(written, self.optimizers) if self.automatic else [None]

        def batch(loop: Loop) -> None:
            if not loop.round:
                self.m.session.counted(self.m, Const(self.settings.window))
            is_last = loop.round == loop.rounds - 1
            _tell_trainer(self.m, self.module, loop.rounds, is_last, self.call)
            data = Unknown(symbol.derive(("batch", loop.round), "batch"), data=True)
            self._batch(data, loop.round, turns, is_last)

        rounds.run(self.m, self.place, self.m.session.batches, self.module, batch)

    def _batch(self, batch: Abstract, number: int, turns: list[int | None], is_last: bool) -> None:
        m, module, call, place, window = (
            self.m,
            self.module,
            self.call,
            self.place,
            self.settings.window,
        )
        _run_hook(m, module, "on_train_batch_start", call, batch, Const(number))
        update = _Update(
            m, module, self.settings, number % window == 0, is_last or _ends(number, self.settings)
        )
        for index in turns:
            result = _called(m, self.step, batch, number, index, place)
            if module.state.get("manual"):
                break
            held = self.optimizers if index is None else self.optimizers[index : index + 1]
            if self.automatic:
                update.run(loss_in(m, result, place), held, place)
        _run_hook(
            m,
            module,
            "on_train_batch_end",
            call,
            m.unknown("outputs", data=True),
            batch,
            Const(number),
        )


def _tell_trainer(m: Machine, module: Instance, count: int, is_last: bool, call: Call) -> None:
    """What `self.trainer` says of the loop: how many batches it has, and whether this one is the
    last.
    """
    trainer = m.attribute(module, "trainer", call)
    if isinstance(trainer, Unknown):
        said = {"is_last_batch": Const(is_last), "num_training_batches": Const(count)}
        m.overrides[trainer.symbol] |= {f"attribute:{name}": value for name, value in said.items()}


def function_of(called: Abstract) -> Function | None:
    """The function of the program behind a method, under decorators too."""
    while not isinstance(called, Function):
        if isinstance(called, Bound):
            called = called.function
        elif isinstance(called, Builtin) and called.wraps is not None:
            called = called.wraps
        else:
            return None
    return called


def sink_call(name: str, written: Function) -> Call:
    """A call at the definition of a function whose result a framework back-propagates."""
    line, column = written.node.at[0], written.node.at[1]
    return Call(name, [], {}, ir.Literal((line, column, line, column), None), written.scope)


def _run_hook(m: Machine, module: Instance, name: str, call: Call, *args: Abstract) -> None:
    if m.session.member_of(module.cls, name) is not None:
        m.invoke(m.attribute(module, name, call), list(args), call)


def _turns(written: Function, optimizers: list[Abstract]) -> list[int | None]:
    """Before Lightning 2, one call for each optimizer, told by `optimizer_idx`."""
    takes_index = any(parameter.name == "optimizer_idx" for parameter in written.node.parameters)
    return list(range(len(optimizers))) if takes_index and optimizers else [None]


def _ends(number: int, settings: _Settings) -> bool:
    return (number + 1) % settings.window == 0


def _called(
    m: Machine, step: Abstract, batch: Abstract, number: int, index: int | None, place: Call
) -> Abstract:
    args = [batch, Const(number)] + ([Const(index)] if index is not None else [])
    return m.call(step, Call("training_step", args, {}, place.node, place.frame))


def loss_in(m: Machine, result: Abstract, call: Call) -> Abstract | None:
    """The loss in what `training_step` returned: itself, or its entry "loss"; None where it skips
    the batch.
    """
    if isinstance(result, Mapping):
        found = result.items.get("loss")
        return (
            found
            if found is not None or not result.open
            else Unknown(m.symbol(result).derive(("item", "loss"), "loss"))
        )
    return None if isinstance(result, Const) and result.value is None else result


@dataclass(frozen=True, slots=True)
class _Update:
    """What the Trainer does with the loss of one batch, and the hooks that it calls in between."""

    m: Machine
    module: Instance
    settings: _Settings
    begins: bool  # the window
    ends: bool

    def run(self, loss: Abstract | None, optimizers: list[Abstract], place: Call) -> None:
        """Clears, back-propagates and steps."""
        from gradlint.library import autograd

        if loss is None:
            return
        for optimizer in optimizers if self.begins else ():
            _run_hook(self.m, self.module, "on_before_zero_grad", place, optimizer)
            self.m.call(self.m.attribute(optimizer, "zero_grad", place), place)
        window = self.settings.window
        if window > 1:  # Lightning divides the loss
            loss = binary(self.m, "/", loss, Const(window), place.node, place.frame)
        _run_hook(self.m, self.module, "on_before_backward", place, loss)
        scaler = {"scaler": self.settings.scaler} if self.settings.scaler is not None else {}
        autograd.backward(self.m, loss, place, "training_step", by_framework=True, **scaler)
        _run_hook(self.m, self.module, "on_after_backward", place)
        if window > 1 and self.settings.at is not None:
            text, detail = f"accumulate_grad_batches={window}", "true" if self.ends else "false"
            self.m.emit(tape.Fact(at=self.settings.at, what="branch", text=text, detail=detail))
        for optimizer in optimizers if self.ends else ():
            self._step(optimizer, place)

    def _step(self, optimizer: Abstract, place: Call) -> None:
        from gradlint.library import optimizers as steps

        at, scaler = place.frame.span(place.node), self.settings.scaler
        if scaler is not None:
            handle = steps.handle_of(self.m, optimizer, place)
            self.m.emit(tape.Unscale(at=at, scaler=scaler, optimizer=handle, text="Trainer.fit"))
        _run_hook(self.m, self.module, "on_before_optimizer_step", place, optimizer)
        steps.step(self.m, optimizer, place, scaler=scaler)
        if scaler is not None:
            self.m.emit(tape.ScalerUpdate(at=at, scaler=scaler))


# optimizers


def configured(m: Machine, module: Instance | Object, call: Call) -> list[Abstract]:
    """The optimizers that `configure_optimizers` makes, once."""
    if "optimizers" not in module.state:
        module.state["optimizers"], module.state["schedulers"] = [], []
        if (
            isinstance(module, Instance)
            and m.session.member_of(module.cls, "configure_optimizers") is not None
        ):
            made = m.invoke(m.attribute(module, "configure_optimizers", call), [], call)
            module.state["optimizers"], module.state["schedulers"] = _sorted(m, made)
    found: list[Abstract] = module.state["optimizers"]
    return found


def _sorted(m: Machine, made: Abstract) -> tuple[list[Abstract], list[Abstract]]:
    """The optimizers and schedulers in what `configure_optimizers` returned."""
    if isinstance(made, Const):
        return [], []
    if isinstance(made, Mapping):
        found = made.items.get("optimizer")
        return [found] if found is not None else [], _schedulers(made.items.get("lr_scheduler"))
    if not isinstance(made, Sequence):
        return [made], []
    if len(made.items) == 2 and all(isinstance(item, Sequence) for item in made.items):
        return _sorted(m, made.items[0])[0], _schedulers(made.items[1])
    parts = [_sorted(m, item) for item in made.items]
    return [optimizer for part in parts for optimizer in part[0]], [
        scheduler for part in parts for scheduler in part[1]
    ]


def _schedulers(given: Abstract | None) -> list[Abstract]:
    if isinstance(given, Mapping):
        return _schedulers(given.items.get("scheduler"))
    if isinstance(given, Sequence):
        return [scheduler for item in given.items for scheduler in _schedulers(item)]
    return [] if given is None or isinstance(given, Const) else [given]


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


# the module's own


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


# the Trainer


@function(TRAINER)
def trainer(m: Machine, call: Call) -> Abstract:
    """`Trainer(…)`."""
    return Object(TRAINER, call.frame.span(call.node), {"settings": _Settings.of(call)})


@method(TRAINER, "fit")
def fit(m: Machine, made: Object, call: Call) -> Abstract:
    """`trainer.fit(module, …)`."""
    module = call.get(0, "model")
    if isinstance(module, Instance) and is_lightning(module):
        train(m, module, call, made.state["settings"])
    return NONE


@method(TRAINER, "*")
def anything_else(m: Machine, made: Object, call: Call) -> Abstract:
    """Validation, tests, checkpoints."""
    return m.unknown(call.frame.text(call.node), data=True)
