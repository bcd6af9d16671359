"""transformers: a Trainer subclass is entered at `compute_loss`, whose result the Trainer
back-propagates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.lineage import alias, canonical, is_a, parent
from gradlint.interpret.registry import attribute, enters, fallback, method, on
from gradlint.interpret.statements import ROUNDS
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Unknown,
    function_of,
)
from gradlint.library.frameworks import rounds
from gradlint.library.frameworks.accelerate import ACCELERATOR
from gradlint.library.frameworks.fitting import sink_call

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine

TRAINER = "transformers.Trainer"
alias("transformers.trainer.Trainer", TRAINER)
alias("transformers.trainer_seq2seq.Seq2SeqTrainer", "transformers.Seq2SeqTrainer")
_TRAINERS = [
    "transformers.Seq2SeqTrainer",
    "sentence_transformers.SentenceTransformerTrainer",
    "setfit.Trainer",
]
_TRAINERS += [
    f"trl.{name}Trainer"
    for name in (
        "SFT",
        "DPO",
        "KTO",
        "ORPO",
        "CPO",
        "Reward",
        "PRM",
        "GRPO",
        "RLOO",
        "OnlineDPO",
        "GKD",
        "BCO",
    )
]
for _name in _TRAINERS:
    parent(_name, TRAINER)
_LOADING = ("from_pretrained", "from_config", "_from_config")
_HALF = ("float16", "fp16")
# methods of a model that change its parameters
_CHANGES = re.compile("adapter|lora|peft|cast|float|upcast")
_SETTINGS = (
    "args",
    "state",
    "control",
    "tokenizer",
    "processing_class",
    "data_collator",
    "train_dataset",
    "eval_dataset",
    "callback_handler",
)


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """`Trainer(model=…)` as it comes."""
    return (
        Object(call.name, call.frame.span(call.node), {"model": call.get(0, "model")})
        if is_a(call.name, TRAINER)
        else None
    )


@method(TRAINER, "__init__")
def initialise(m: Machine, trainer: Instance, call: Call) -> Abstract:
    """A Trainer class of the program."""
    model = call.get(0, "model")
    if model is not None and not (isinstance(model, Const) and model.value is None):
        trainer.attrs["model"] = model
    return NONE


@enters
def enter(m: Machine, trainer: Abstract, name: str, called: Abstract, call: Call) -> bool:
    """`compute_loss` or `training_step` of a Trainer that nothing in sight runs."""
    if name not in ("compute_loss", "training_step") or not _is_trainer(trainer):
        return False
    _run(m, trainer, name, called, call)
    return True


def _is_trainer(value: Abstract) -> bool:
    return isinstance(value, Instance) and any(
        is_a(canonical(base), TRAINER) for base in value.cls.libraries()
    )


def compute(m: Machine, called: Abstract, model: Abstract, inputs: Abstract, call: Call) -> None:
    """Back-propagates what `compute_loss` gives: a loss, or a loss and the model's outputs."""
    from gradlint.library import autograd

    written = function_of(called)
    if written is None:
        return
    result = m.call(called, Call("compute_loss", [model, inputs], {}, call.node, call.frame))
    loss = result.items[0] if isinstance(result, Sequence) and result.items else result
    autograd.backward(
        m, loss, sink_call("compute_loss", written), "compute_loss", by_framework=True
    )


def _run(m: Machine, trainer: Abstract, name: str, called: Abstract, call: Call) -> None:
    """Some batches of `compute_loss` or `training_step`."""
    written = function_of(called)
    if written is None:
        return

    def batch(loop: Loop) -> None:
        model = m.attribute(trainer, "model", call)
        symbol = m.symbol(trainer).derive(("batch", loop.round), "inputs")
        inputs = Unknown(symbol, data=True)
        if name == "training_step":
            m.invoke(called, [model, inputs], call)
        else:
            compute(m, called, model, inputs, call)

    # steps are long
    rounds.run(m, sink_call(name, written), ROUNDS, trainer, batch, only_if_kept=True)


@method(TRAINER, "train")
def train(m: Machine, trainer: Instance | Object, call: Call) -> Abstract:
    """`trainer.train()`: some batches."""
    if isinstance(trainer, Instance):
        own = [
            name
            for name in ("training_step", "compute_loss")
            if m.session.member_of(trainer.cls, name) is not None
        ]
        for name in own[:1]:
            _run(m, trainer, name, m.attribute(trainer, name, call), call)
    return m.unknown("metrics", data=True)


@method(TRAINER, "compute_loss")
def compute_loss(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """`super().compute_loss(model, inputs, return_outputs)`: the model's own loss."""
    model, inputs = call.get(0, "model"), call.get(1, "inputs")
    outputs = _outputs(m, model, inputs, call)
    loss = m.attribute(outputs, "loss", call)
    return (
        Sequence("tuple", [loss, outputs]) if call.constant(2, "return_outputs") is True else loss
    )


def _outputs(m: Machine, model: Abstract | None, inputs: Abstract | None, call: Call) -> Abstract:
    given = (
        {str(key): value for key, value in inputs.items.items()}
        if isinstance(inputs, Mapping)
        else {}
    )
    at = Call(
        "model",
        [inputs] if inputs is not None and not given else [],
        given,
        call.node,
        call.frame,
        open=True,
    )
    if isinstance(model, Unknown) or model is None:
        symbol = model.symbol if model is not None else m.session.library_symbol(f"{TRAINER}.model")
        return call_unknown(m, symbol, at)
    return m.call(model, Call("model", [], given, call.node, call.frame, open=True))


@method(TRAINER, "training_step")
def training_step(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """`super().training_step(model, inputs)`: computes the loss and back-propagates it; a detached
    loss comes back.
    """
    model, inputs = call.get(0, "model") or NONE, call.get(1, "inputs") or NONE
    own = (
        m.session.member_of(trainer.cls, "compute_loss") if isinstance(trainer, Instance) else None
    )
    if own is not None:
        compute(m, m.attribute(trainer, "compute_loss", call), model, inputs, call)
    return m.unknown(call.frame.text(call.node), data=True)


@attribute(TRAINER, "model")
def model_of(m: Machine, trainer: Instance | Object, at: Call) -> Abstract:
    """The model that is trained."""
    given = trainer.state.get("model")
    return (
        given
        if isinstance(given, Abstract)
        else Unknown(m.symbol(trainer).derive("model", "model"))
    )


@attribute(TRAINER, "accelerator")
def accelerator_of(m: Machine, trainer: Abstract, at: Call) -> Abstract:
    """The Accelerator behind a Trainer."""
    return Object(ACCELERATOR, at.frame.span(at.node))


def _setting(name: str) -> None:
    @attribute(TRAINER, name)
    def handler(m: Machine, trainer: Abstract, at: Call) -> Abstract:
        return Unknown(m.symbol(trainer).derive(("attribute", name), f"self.{name}"), data=True)


for _name in _SETTINGS:
    _setting(_name)


@method(TRAINER, "_prepare_inputs")
def prepare_inputs(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """The batch, on its device."""
    return call.values[0] if call.values else NONE


@method(TRAINER, "compute_loss_context_manager", "autocast_smart_context_manager")
def region(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """A context that changes nothing about which gradients there are."""
    return Object("builtins.harmless-context", call.frame.span(call.node))


@method(
    TRAINER,
    "log",
    "save_model",
    "evaluate",
    "predict",
    "add_callback",
    "create_optimizer",
    "create_scheduler",
    "log_metrics",
    "save_state",
)
def harmless(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """What has nothing to do with the loss."""
    return m.unknown(call.frame.text(call.node), data=True)


@method(TRAINER, "is_world_process_zero", "is_local_process_zero")
def is_first(m: Machine, trainer: Abstract, call: Call) -> Abstract:
    """Whether this is the first process: it is."""
    return TRUE


# models that come in a dtype of their own


@fallback
def load(m: Machine, call: Call) -> Abstract | None:
    """`AutoModel.from_pretrained(name, torch_dtype=torch.float16)`, of transformers, diffusers and
    their like.
    """
    given = call.kwargs.get("torch_dtype") or call.kwargs.get("dtype")
    if given is None or call.name.rpartition(".")[2] not in _LOADING:
        return None
    loaded = call_unknown(m, m.session.library_symbol(call.name), call)
    wanted = (
        tape.DType.HALF if isinstance(given, Const) and given.value in _HALF else dtype_of(given)
    )
    if wanted is not None:
        m.state.setdefault("loaded", set()).add(loaded.symbol)
        _note_dtype(m, loaded.symbol, wanted.value, call)
    return loaded


def _note_dtype(m: Machine, model: Symbol, dtype: str, call: Call) -> None:
    own = tensors.leaf(m, model, call.node, call.frame)
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    m.emit(tape.Fact(at=at, what="parameter-cast", value=own, detail=dtype, text=text))


@on("unknown call")
def rebuilt(m: Machine, symbol: Symbol, call: Call) -> None:
    """What is given a loaded model can cast it and put adapters of any dtype into it."""
    for model in m.state.get("loaded", ()):
        is_given = any(
            isinstance(value, Unknown) and value.symbol is model for value in call.values
        )
        if is_given or (
            symbol in model.derived.values() and _CHANGES.search(symbol.text.rpartition(".")[2])
        ):
            _note_dtype(m, model, "unknown", call)
