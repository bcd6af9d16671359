"""Tapes made up from numbers: each number is one thing that happens to what the numbers before it
have made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradlint import tape
from gradlint.finding import Span
from gradlint.tape import Cut, DType, Kind, Storage, Tape, Value

Action = tuple[int, int, int]  # what happens, and two numbers that choose to what and how
OPS = (
    "torch.add", "torch.sub", "torch.mul", "torch.div", "torch.pow", "torch.exp", "torch.log",
    "torch.sqrt", "torch.sum",
    "torch.mean", "torch.where", "torch.softmax", "torch.sigmoid", "torch.round", "torch.argmax",
    "torch.stack", "torch.cat",
    "torch.clamp", "torch.norm", "torch.relu", "torch.matmul", "torch.Tensor.detach",
    "torch.Tensor.item", "call",
    "torch.Tensor.__getitem__", "torch.nn.functional.cross_entropy",
    "torch.nn.functional.mse_loss", "output",
    "torch.nn.functional.binary_cross_entropy_with_logits", "torch.distributed.all_reduce",
    "torch.Tensor.masked_fill",
)  # fmt: skip
# The facts that rules ask for, each with what its `detail` can be.
FACTS = {
    **dict.fromkeys(("attached", "plain-container", "exhausted", "non-leaf-parameter",
        "non-leaf-grad", "scale-read"), ("x",)),
    **dict.fromkeys(("loss", "gradients-reduced", "asserted", "endless", "gradient-set",
        "not-finite"), ("", "loss")),
    "discarded-result": ("torch.Tensor.detach", "torch.Tensor.requires_grad"),
    "context-not-entered": ("not called", "torch.no_grad", "and"),
    "not-called": ("backward", "step", "zero_grad"),
    "inference-tensor-used": ("torch.Tensor.requires_grad_", "torch.Tensor.add_"),
    "sample": ("0 data", "1 zeros", "label zeros", "label data"),
    "optimizer": ("torch.optim.SGD", "torch.optim.Adam"),
    "frozen-in-vain": ("module", "require_grad"),
    "amp": ("torch.cuda.amp.autocast device=cuda enabled=default",
        "torch.amp.GradScaler device=cuda enabled=unknown by=x"),
    "device": ("cuda", "cpu", "cuda cpu", "unknown"),
    "placed": ("cuda", "cpu cuda", "unknown"),
    "parameter-cast": ("float16", "bfloat16"),
    "ctx-tensor": ("input", "output"),
    "function-not-applied": ("instance", "forward"),
    "input-written": ("torch.Tensor.add_",),
    "gradients": ("1 2 few", "3 2 many", "1 1 list", "0 1 nothing"),
    "named": ("",),
    "data-set": ("",),
    "ddp-forward": ("",),
    "ddp-module": ("",),
    "no-sync": ("entered", "left"),
    "collective": ("torch.distributed.all_gather", "torch.distributed.all_reduce"),
    "branch": ("true", "false"),
}  # fmt: skip


class Builder:
    """The tape so far, and what the next action can choose from. What is built of a beginning is a
    beginning.
    """

    def __init__(self) -> None:
        self.tape = Tape("train.py")
        self.line = 0
        self.modules = [tape.Module("model"), tape.Module("other")]
        self.modules.append(tape.Module("inner", self.modules[0]))
        self.values = [self.parameter(module) for module in self.modules]
        self.optimizers = [
            tape.Optimizer("optimizer", "torch.optim.SGD", self.at, list(self.values[:2]))
        ]
        self.scalers = [tape.Scaler("scaler", self.at)]
        self.schedulers = [tape.Scheduler("scheduler", self.at, self.optimizers[0])]
        self.loops: list[tuple[int, int]] = []
        self.loop = 0

    @property
    def at(self) -> Span:
        return Span("train.py", self.line, 1, self.line, 10)

    def parameter(self, module: tape.Module) -> Value:
        known = tape.Parameter("weight", module, self.at)
        return Value(
            "parameters", Kind.PARAMETER, (), self.at, requires_grad=True, storage=Storage(),
            parameter=known
        )  # fmt: skip

    def pick(self, among: Sequence[Any], number: int) -> Any:
        return among[number % len(among)]

    def write(self, kind: type[tape.Event], **fields: Any) -> None:
        self.tape.write(
            kind(at=self.at, iteration=tuple(self.loops), text=f"text{self.line}", **fields)
        )

    def act(self, action: Action) -> None:
        self.line += 1
        what, one, two = action
        self.pick(ACTIONS, what)(self, one, two)


def build(actions: Sequence[Action], *, complete: bool = True) -> Tape:
    """The tape of these actions; of an incomplete one the analysis gave up at its end."""
    builder = Builder()
    for action in actions:
        builder.act(action)
    builder.line += 1
    builder.write(tape.End, raised="" if complete else "gap")
    builder.tape.complete = complete
    return builder.tape


def _operation(b: Builder, one: int, two: int) -> None:
    inputs = tuple(
        {id(value): value for value in (b.pick(b.values, one), b.pick(b.values, two))}.values()
    )
    cut = (
        b.pick((None, None, None, *Cut), one + two)
        if any(value.requires_grad for value in inputs)
        else None
    )
    made = Value(
        b.pick(OPS, two), Kind.OPERATION, inputs, b.at, storage=Storage(), cut=cut,
        cut_at=b.at if cut else None,
        requires_grad=cut is None and any(value.requires_grad for value in inputs),
        dtype=b.pick(tuple(DType), one // 3),
        name=b.pick(("", "", "loss", "target"), two), order=len(b.tape.events),
        iteration=tuple(b.loops),
        arguments=((0, inputs[0]), (1, b.pick((*inputs, 0, 1, 0.5, 2, -1), one))),
        zero_gradient=two % 11 == 0,
        factor=b.pick((None, None, 2, 4), one), autocast=b.pick((None, None, "cuda"), two),
        inference=one % 13 == 0,
        flags=frozenset(b.pick((("division",), ("product",), ("selection",), ("sum-reduction",),
            ()), one)),
    )  # fmt: skip
    kept = b.pick((*inputs, made), one)
    if kept.storage is not None and made.requires_grad:
        role = "result" if kept is made else "input"
        made.saves = (
            tape.Saved(kept, kept.storage, kept.storage.version, len(kept.storage.writes), role),
        )
    b.values.append(made)


def _leaf(b: Builder, one: int, two: int) -> None:
    kind = b.pick((Kind.LEAF, Kind.CONSTANT, Kind.DATA, Kind.UNKNOWN), one)
    carries = kind in (Kind.LEAF, Kind.UNKNOWN)
    cut = Cut.CONSTANT if kind is Kind.CONSTANT else None
    b.values.append(
        Value("input", kind, (), b.at, storage=Storage(), requires_grad=carries,
            assumed=kind is Kind.UNKNOWN, cut=cut,
              number=b.pick((None, 0, 1, 0.0), two), order=len(b.tape.events),
              iteration=tuple(b.loops))
    )  # fmt: skip


def _backward(b: Builder, one: int, two: int) -> None:
    b.write(
        tape.Backward, value=b.pick(b.values, -1 - one % 4),
        sink=b.pick(("backward", "backward", "autograd.grad"), two),
        scaler=b.pick((None, *b.scalers), one), autocast=b.pick((None, None, "cuda"), two),
        retain_graph=two % 3 == 0,
        guarded=two % 7 == 0, caught=two % 9 == 0, by_framework=two % 11 == 0,
    )  # fmt: skip


def _step(b: Builder, one: int, two: int) -> None:
    optimizer = b.pick(b.optimizers, one)
    b.write(
        tape.OptimizerStep,
        optimizer=optimizer,
        scaler=b.pick((None, *b.scalers), two),
        closure=two % 5 == 0,
    )
    for value in optimizer.parameters:
        _written(b, value, "torch.optim.SGD.step", counted=True)


def _written(b: Builder, value: Value, op: str, *, counted: bool) -> tape.Write | None:
    if value.storage is None:
        return None
    value.storage.version += counted
    made = tape.Write(op, b.at, (), value.storage.version, counted, len(b.tape.events))
    value.storage.writes.append(made)
    return made


def _in_place(b: Builder, one: int, two: int) -> None:
    before = b.pick(b.values, one)
    write = _written(
        b,
        before,
        b.pick(("torch.Tensor.add_", "torch.Tensor.mul_", "torch.Tensor.zero_"), two),
        counted=two % 3 > 0,
    )
    if write is not None:
        b.write(
            tape.InPlace,
            before=before,
            after=before,
            write=write,
            raises=b.pick(("", "", "leaf", "out"), two),
        )


def _loop(b: Builder, one: int, two: int) -> None:
    b.loop += 1
    b.loops.append((b.loop, 0))
    over = b.pick(("data", "epochs", "range", "while", ""), one)
    b.write(tape.Iteration, loop=b.loop, round=0, begins=True, over=over)


def _next_round(b: Builder, one: int, two: int) -> None:
    if b.loops:
        number, round_ = b.loops[-1]
        b.write(tape.Iteration, loop=number, round=round_, begins=False, last=one % 4 == 0)
        b.loops.pop()
        if one % 4:
            b.loops.append((number, round_ + 1))
            b.write(tape.Iteration, loop=number, round=round_ + 1, begins=True, over="data")


def _fact(b: Builder, one: int, two: int) -> None:
    what = b.pick(tuple(FACTS), one)
    b.write(
        tape.Fact, what=what, detail=b.pick(FACTS[what], two), value=b.pick(b.values, two),
        module=b.pick(b.modules, two),
        related=((b.at, "Name"),),
    )  # fmt: skip
    if what == "placed" and two % 2:
        b.write(tape.Fact, what="named", value=b.pick(b.values, two))


def _decide(b: Builder, one: int, two: int) -> None:
    loop, round_ = b.loops[-1] if b.loops else (None, 0)
    b.tape.decisions += (tape.Decision(f"flag{one % 3}", two % 2 == 0, b.at, loop, round_),)


def _event(
    kind: type[tape.Event], **choices: Callable[[Builder, int], object]
) -> Callable[[Builder, int, int], None]:
    def act(b: Builder, one: int, two: int) -> None:
        b.write(
            kind,
            **{
                name: choose(b, one if number % 2 else two)
                for number, (name, choose) in enumerate(choices.items())
            },
        )

    return act


def _of(name: str, *others: object) -> Callable[[Builder, int], object]:
    return lambda b, number: b.pick((*getattr(b, name), *others), number)


def _one_of(*values: object) -> Callable[[Builder, int], object]:
    return lambda b, number: b.pick(values, number)


ACTIONS: tuple[Callable[[Builder, int, int], None], ...] = (
    _operation, _operation, _operation, _operation, _leaf, _backward, _backward, _step, _step,
    _in_place, _loop,
    _next_round, _next_round, _fact, _fact, _decide,
    _event(tape.ZeroGrad, optimizer=_of("optimizers", None), complete=_one_of(True, False),
        to_none=_one_of(True, False)),
    _event(tape.Clip, parameters=lambda b, n: tuple(b.values[: n % 3]),
        reads_only=_one_of(True, False), exhausted=_one_of(False, True)),
    _event(tape.Unscale, scaler=_of("scalers"), optimizer=_of("optimizers", None)),
    _event(tape.Handed, optimizer=_of("optimizers")),
    _event(tape.ScalerUpdate, scaler=_of("scalers")),
    _event(tape.SchedulerStep, scheduler=_of("schedulers")),
    _event(tape.GradMode, enabled=_one_of(True, False), by_call=_one_of(True, False),
        inference=_one_of(False, True)),
    _event(tape.Autocast, device=_one_of("cuda", "cpu", None), enabled=_one_of(True, False, None),
        entered=_one_of(True, False)),
    _event(tape.TrainMode, module=_of("modules", None), training=_one_of(True, False, None)),
    _event(tape.ModuleCall, module=_of("modules"), result=_of("values", None),
        trainable=_one_of(True, False)),
    _event(tape.Kept, value=_of("values"), how=_one_of("append", "sum", "state")),
)  # fmt: skip
