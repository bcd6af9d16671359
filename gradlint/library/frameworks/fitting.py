"""What Lightning's Trainer does with a module: the loop of batches, losses and updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import conditions
from gradlint.interpret.looping import Loop
from gradlint.interpret.operators import binary
from gradlint.interpret.periods import BATCHES
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Unknown,
    function_of,
)
from gradlint.ir import nodes as ir
from gradlint.library.data import number_of_batches
from gradlint.library.frameworks import rounds

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_BEFORE = ("setup", "on_fit_start", "on_train_start", "on_train_epoch_start")
_SCALED = ("16-mixed", "16", 16)  # float16 with a GradScaler


@dataclass(frozen=True, slots=True)
class Settings:
    """What a Trainer was told: how many batches make an update, and the scaler of its precision."""

    at: Span | None = None
    window: int = 1
    scaler: tape.Scaler | None = None

    @classmethod
    def of(cls, made: Call) -> Settings:
        """The settings of `Trainer(accumulate_grad_batches=4, precision="16-mixed")`."""
        given = made.kwargs.get("accumulate_grad_batches", Const(1))
        window = given.value if isinstance(given, Const) and type(given.value) is int else 1
        is_scaled = made.constant(None, "precision") in _SCALED
        at = made.frame.span(made.node)
        return cls(
            at, max(window, 1), tape.Scaler("the Trainer's scaler", at) if is_scaled else None
        )


def train(
    m: Machine,
    module: Instance,
    call: Call,
    settings: Settings | None = None,
    loader: Abstract | None = None,
) -> None:
    """A few rounds of what the Trainer does with a module, on what a loader gives."""
    settings = settings or Settings()
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
        m,
        module,
        call,
        step,
        optimizers,
        automatic,
        settings,
        sink_call("training_step", written),
        _length(m, loader, call),
    )
    fit.epoch(written)
    _run_hook(m, module, "on_train_epoch_end", call)
    # a counter: what an epoch leaves over shows in the next one
    if not automatic and m.session.loops.batches > BATCHES:
        _run_hook(m, module, "on_train_epoch_start", call)
        fit.epoch(written)
        _run_hook(m, module, "on_train_epoch_end", call)


def _length(m: Machine, loader: Abstract | None, call: Call) -> int | None:
    """How many batches a loader gives in an epoch, where that is written down."""
    return number_of_batches(m, loader, call) if isinstance(loader, Object | Instance) else None


@dataclass(frozen=True, slots=True)
class _Fit:
    """A module with its optimizers, in the hands of a Trainer."""

    m: Machine
    module: Instance
    call: Call
    step: Abstract
    optimizers: list[Abstract]
    automatic: bool
    settings: Settings
    place: Call
    length: int | None  # in batches, of an epoch, where that is known

    def epoch(self, written: Function) -> None:
        """A loop over batches."""
        symbol = self.m.symbol(self.module)
        turns: list[int | None] = _turns(written, self.optimizers) if self.automatic else [None]

        def batch(loop: Loop) -> None:
            if not loop.round:
                self.m.session.loops.counted(self.m, Const(self.settings.window))
            is_last = loop.round == loop.rounds - 1
            _note_trainer(self.m, self.module, loop.rounds, is_last, self.call)
            data = Unknown(symbol.derive(("batch", loop.round), "batch"), data=True)
            self._batch(data, loop.round, turns, is_last)

        loops = self.m.session.loops
        count = loops.batches if self.length is None else loops.shown(self.length)
        rounds.run(self.m, self.place, count, self.module, batch)

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


def _note_trainer(m: Machine, module: Instance, count: int, is_last: bool, call: Call) -> None:
    """What `self.trainer` says of the loop: how many batches it has, and whether this one is the
    last.
    """
    trainer = m.attribute(module, "trainer", call)
    if isinstance(trainer, Unknown):
        said = {"is_last_batch": Const(is_last), "num_training_batches": Const(count)}
        m.overrides[trainer.symbol] |= {f"attribute:{name}": value for name, value in said.items()}


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


def _ends(number: int, settings: Settings) -> bool:
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
    if isinstance(result, Unknown):  # the batch itself, with the loss put in
        return m.override(result.symbol, "item", "loss") or result
    return None if isinstance(result, Const) and result.value is None else result


@dataclass(frozen=True, slots=True)
class _Update:
    """What the Trainer does with the loss of one batch, and the hooks that it calls in between."""

    m: Machine
    module: Instance
    settings: Settings
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
