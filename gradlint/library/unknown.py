"""What is taken of something unknown by the names that are asked of it: a tensor, a module, an optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.attributes import of_tensor
from gradlint.interpret.calls import call_unknown
from gradlint.interpret.expressions import derived
from gradlint.interpret.registry import find_method, guesses, method
from gradlint.interpret.values import NONE, Abstract, Call, Const, Sequence, Tensor, Unknown
from gradlint.library.devices import place
from gradlint.library.effects import lookup
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# Names that objects of many kinds have: no sign of a tensor.
_SHARED = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "train",
        "eval",
        "apply",
        "share_memory_",
        "requires_grad_",
        "parameters",
        "step",
        "update",
        "get",
        "copy",
        "index",
        "count",
        "add",
        "pop",
        "append",
        "extend",
        "remove",
        "insert",
        "sort",
        "split",
        "replace",
        "format",
        "join",
        "data",
        "values",
        "keys",
        "items",
        "name",
        "shape",
        "size",
        "T",
        "real",
        "imag",
        "set_",
        "where",
        "map",
        "masked",
        "put",
        "update_",
        "names",
        "device",
        "dtype",
        "layout",
        "grad",
        "H",
        "select",
    ]
)
_TENSOR_ONLY = frozenset(
    [
        "backward",
        "detach",
        "item",
        "tolist",
        "numpy",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "detach_",
        "new_tensor",
        "register_hook",
        "retain_grad",
    ]
)


@guesses
def tensor_attribute(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute that tensors have, of something that may be one."""
    if unknown.type not in ("", "tensor") or name.startswith("_"):
        return None
    if unknown.data and unknown.origin is None and name != "requires_grad_":
        return None
    if name == "backward":
        return None
    if name in _TENSOR_ONLY or (name not in _SHARED and (find_method("torch.Tensor", name) or lookup(name))):
        return of_tensor(m, tensors.as_tensor(m, unknown, at.node, at.frame), name, at)
    if name in ("grad", "data", "shape", "T") and unknown.symbol in m.tensors:
        return of_tensor(m, m.tensors[unknown.symbol], name, at)
    return None


@method("unknown", "backward")
def backward(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`loss.backward()`; with an argument, an engine's or accelerator's `backward(loss)`."""
    from gradlint.library import autograd

    if call.args and unknown.symbol not in m.tensors and not _is_made_of_tensors(m, unknown):
        return autograd.backward(m, call.args[0], call)
    tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
    return m.call(m.attribute(tensor, "backward", call), call)


def _is_made_of_tensors(m: Machine, unknown: Unknown) -> bool:
    """Whether it is what something unknown makes of a tensor: no engine, and `backward` takes its gradient."""
    made = m.nodes.get(unknown.symbol)
    own = (Kind.PARAMETER, Kind.UNKNOWN)
    return made is not None and made.op == "call" and any(source.kind not in own for source in made.inputs)


@method(
    "unknown",
    "to",
    "cuda",
    "cpu",
    "half",
    "float",
    "double",
    "bfloat16",
    "type",
    "share_memory_",
    "apply",
    "contiguous",
)
def same(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`model.to(device)`, `x.to(device)`: what it was."""
    place(m, call)
    _tell_cast(m, unknown, call)
    if unknown.symbol in m.tensors:
        return m.call(m.attribute(m.tensors[unknown.symbol], call.name.rpartition(".")[2], call), call)
    return unknown


def _tell_cast(m: Machine, unknown: Unknown, call: Call) -> None:
    """The fact that the parameters of what may be a module are cast."""
    from gradlint.library.modules import cast_of

    wanted = cast_of(call)
    if wanted is not None and not unknown.data and unknown.type in ("", "module"):
        own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
        own.dtype = wanted
        m.emit(tape.Fact(at=call.frame.span(call.node), what="parameter-cast", value=own, detail=wanted.value))


@method("unknown", "train", "eval")
def set_training(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    from gradlint.library.modules import module_of

    given = call.get(0, "mode")
    training: bool | None = not call.frame.text(call.node).rpartition(".")[2].startswith("eval")
    if given is not None:
        training = given.value if isinstance(given, Const) and isinstance(given.value, bool) else None
    m.emit(
        tape.TrainMode(
            at=call.frame.span(call.node),
            module=module_of(m, unknown, call),
            training=training,
            text=call.frame.text(call.node),
        )
    )
    return unknown


@method("unknown", "requires_grad_")
def requires_grad_(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    wanted = call.constant(0, "requires_grad", True)
    if unknown.data or (unknown.symbol in m.nodes and not m.nodes[unknown.symbol].requires_grad):
        tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
        m.call(m.attribute(tensor, "requires_grad_", call), call)
        return tensor
    if wanted is False:
        freeze(m, unknown, call)
    return unknown


def freeze(m: Machine, unknown: Unknown, call: Call) -> None:
    """Freezes the parameters of an unknown module, as far as this path is concerned."""
    own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    own.requires_grad, own.cut = False, tape.Cut.FROZEN
    own.cut_at, own.cut_stack = call.frame.span(call.node), m.where


@method("unknown", "parameters", "named_parameters", "trainable_parameters", "get_parameters")
def parameters(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """All parameters of an unknown module, as one."""
    own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    whole = m.parameters.get(own.parameter) if own.parameter is not None else None
    if whole is None:
        whole = Tensor(own)
        assert own.parameter is not None
        m.parameters[own.parameter] = whole
    named = "named" in call.frame.text(call.node)
    item: Abstract = Sequence("tuple", [m.unknown("name", data=True, type="str"), whole]) if named else whole
    return Sequence("generator", [item])


@method("unknown", "zero_grad")
def zero_grad(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    from gradlint.library import optimizers

    if optimizers.looks_like_optimizer(m, unknown):
        optimizers.zero_grad(m, unknown, call)
    else:
        own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
        m.emit(
            tape.ZeroGrad(
                at=call.frame.span(call.node),
                optimizer=None,
                parameters=(own,),
                complete=False,
                text=call.frame.text(call.node),
            )
        )
    return NONE


@method("unknown", "step")
def step(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`step` of an optimizer, a scheduler or a scaler; of anything else (an environment) it is data."""
    from gradlint.library import optimizers

    name = unknown.symbol.text.lower()
    if "scal" in name and call.args:
        return _scaler(m, unknown, "step", call)
    if any(word in name for word in ("sched", "warmup", "lr_")):
        optimizers.scheduler_step(m, unknown, call)
        return NONE
    if optimizers.looks_like_optimizer(m, unknown):
        return optimizers.step(m, unknown, call)
    return m.unknown(call.frame.text(call.node), data=True)


def _scaler(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """A method of something that is taken to be a GradScaler."""
    from gradlint.library import amp

    handler = find_method("torch.amp.GradScaler", name)
    made = amp.scaler_of(m, unknown, call)
    return handler(m, made, call) if handler is not None and made is not None else m.unknown(name, data=True)


@method("unknown", "scale", "unscale_")
def scale(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    if "scal" not in unknown.symbol.text.lower() or not call.args:
        return call_unknown(m, unknown.symbol.derive(("attribute", "scale"), "scale"), call)
    name = "unscale_" if "unscale_" in call.frame.text(call.node) else "scale"
    return _scaler(m, unknown, name, call)


@method("unknown", "update")
def update(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    return _scaler(m, unknown, "update", call) if "scal" in unknown.symbol.text.lower() else NONE


@method("unknown", "append", "extend", "add", "insert", "setdefault")
def keep(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """Something is put into an unknown container."""
    for value in tensors.sources(m, call.args, call.node, call.frame):
        if value.records and not value.assumed:
            m.emit(
                tape.Kept(at=call.frame.span(call.node), value=value, how="unknown", text=call.frame.text(call.node))
            )
    return NONE


@method("unknown", "get")
def get(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    from gradlint.library.samples import can_be_missing

    key = call.constant(0, "key")
    if len(call.args) > 1 and can_be_missing(m, key or m.symbol(call.args[0]), unknown, call):
        return call.args[1]
    return derived(
        m,
        unknown,
        "item",
        key if key is not None else m.symbol(call.args[0]) if call.args else "get",
        call.node,
        call.frame,
    )


@method("unknown", "size", "dim", "numel", "__len__")
def measure(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    name = call.frame.text(call.node).rpartition("(")[0].rpartition(".")[2]
    key = (name, tuple(m.symbol(arg) for arg in call.args))
    return Unknown(unknown.symbol.derive(key, call.frame.text(call.node)), data=True, type="number")
