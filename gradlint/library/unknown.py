"""What is taken of something unknown by the names that are asked of it: a tensor, a module, an
optimizer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, tensors
from gradlint.interpret.attributes import is_looked_at, of_tensor
from gradlint.interpret.calls import call_unknown
from gradlint.interpret.conditions import is_collated
from gradlint.interpret.estimates import estimated
from gradlint.interpret.registry import find_method, guesses, hears, method, tell
from gradlint.interpret.subscripts import derived
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Const,
    Function,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library import roles
from gradlint.library.autograd import refuse_in_transform
from gradlint.library.devices import place, send
from gradlint.library.effects import lookup
from gradlint.library.returns import gives
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_MOVES = (
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
)
# Names that objects of many kinds have: no sign of a tensor.
_SHARED = frozenset(
    [
        *_MOVES,
        "train",
        "eval",
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

_ENGINES = re.compile(
    r"accelerator|engine|fabric|booster|scaler|manager|trainer|amp|strategy|runner", re.I
)
# arguments of a step: an epoch and a metric; a scheduler of noise takes more
MOST_OF_A_SCHEDULER = 2


@guesses()
def tensor_attribute(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute that tensors have, of something that may be one."""
    if unknown.type not in ("", "tensor") or name.startswith("_"):
        return None
    if (
        unknown.data
        and unknown.origin is None
        and name != "requires_grad_"
        and not _is_of_tensors(name, unknown)
    ):
        return None
    if name == "backward":
        return None
    is_shared = name in _SHARED or is_looked_at(name, at)
    effect = lookup(name)
    if effect is not None and effect.zero_gradient and not effect.in_place and not is_shared:
        return Builtin(name, lambda machine, call: _rounded(machine, unknown, name, call))
    if name in _TENSOR_ONLY or (not is_shared and (find_method("torch.Tensor", name) or effect)):
        return of_tensor(m, tensors.as_tensor(m, unknown, at.node, at.frame), name, at)
    if name in ("grad", "data", "shape", "T") and unknown.symbol in m.tensors:
        return of_tensor(m, m.tensors[unknown.symbol], name, at)
    return None


def _rounded(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """`x.round(decimals=1)` of a tensor. A method that is given a tensor is none of it:
    `self.model.angle(t)`.
    """
    if all(isinstance(value, Const) for value in call.values):
        return m.call(
            m.attribute(tensors.as_tensor(m, unknown, call.node, call.frame), name, call), call
        )
    symbol = unknown.symbol
    return call_unknown(m, symbol.derive(("attribute", name), f"{symbol.text}.{name}"), call)


def _is_of_tensors(name: str, unknown: Unknown) -> bool:
    """Whether only tensors have a method: `batch.new_zeros(3)`, `mask.unsqueeze(1)` of what a
    loader gives.
    """
    effect = lookup(name)
    if effect is None:
        return False
    if name.startswith("new_"):
        return effect.creates
    return effect.view == "always" and is_collated(unknown.symbol)


@method("unknown", "backward")
def backward(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`loss.backward()`; with an argument, an engine's or accelerator's `backward(loss)`."""
    from gradlint.library import autograd

    is_engine = bool(call.args) and unknown.symbol not in m.tensors
    if is_engine and not _is_made_of_tensors(m, unknown) and not _is_its_gradient(m, unknown, call):
        return autograd.backward(m, call.args[0], call)
    tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
    return m.call(m.attribute(tensor, "backward", call), call)


def _is_made_of_tensors(m: Machine, unknown: Unknown) -> bool:
    """Whether it is what something unknown makes of a tensor: no engine, and `backward` takes its
    gradient.
    """
    made = m.nodes.get(unknown.symbol)
    own = (Kind.PARAMETER, Kind.UNKNOWN)
    return (
        made is not None
        and made.op == "call"
        and any(source.kind not in own for source in made.inputs)
    )


def _is_its_gradient(m: Machine, unknown: Unknown, call: Call) -> bool:
    """Whether what `y.backward(given)` is given is a gradient, and no loss: it carries none, and
    `y` is no engine.
    """
    if _ENGINES.search(unknown.symbol.text.rpartition(".")[2]):
        return False
    given = tensors.node_of(m, call.args[0], call.node, call.frame)
    return given is not None and not any(value.requires_grad for value in tape.ancestors(given))


def _same(name: str) -> None:
    @method("unknown", name)
    def same(m: Machine, unknown: Unknown, call: Call) -> Abstract:
        """`model.to(device)`, `x.to(device)`: what it was."""
        place(m, call)
        if name in ("to", "cuda"):
            send(m, unknown.symbol, call)
        _tell_cast(m, unknown, call)
        if unknown.symbol in m.tensors:
            return m.call(m.attribute(m.tensors[unknown.symbol], name, call), call)
        return unknown


for _name in (*_MOVES, "contiguous"):
    _same(_name)


def _tell_cast(m: Machine, unknown: Unknown, call: Call) -> None:
    """The fact that the parameters of what may be a module are cast."""
    from gradlint.library.modules import cast_of

    wanted = cast_of(call)
    if wanted is not None and not unknown.data and unknown.type in ("", "module"):
        own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
        own.dtype = wanted
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node), what="parameter-cast", value=own, detail=wanted.value
            )
        )


@method("unknown", "train")
def train(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    return _set_training(m, unknown, call.get(0, "mode") or TRUE, call)


@method("unknown", "eval")
def evaluate(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    return _set_training(m, unknown, FALSE, call)


def _set_training(m: Machine, unknown: Unknown, given: Abstract, call: Call) -> Abstract:
    from gradlint.library.structure import module_of

    training = given.value if isinstance(given, Const) and isinstance(given.value, bool) else None
    m.overrides[unknown.symbol]["attribute:training"] = given
    m.note("attribute", "training", training)
    m.emit(
        tape.TrainMode(
            at=call.frame.span(call.node),
            module=module_of(m, unknown, call),
            training=training,
            text=call.frame.text(call.node),
        )
    )
    return unknown


@method("unknown", "rsample")
def rsample(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`flow(context).rsample()`: of a distribution, whoever made it."""
    symbol = unknown.symbol
    made = call_unknown(m, symbol.derive(("attribute", "rsample"), f"{symbol.text}.rsample"), call)
    m.nodes[made.symbol].flags |= {tape.DRAWN}
    return made


@method("unknown", "requires_grad_")
def requires_grad_(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """A leaf is made of what is data; something unknown that was frozen is trained again."""
    refuse_in_transform(m, "requires_grad_", call)
    wanted = call.constant(0, "requires_grad", True)
    if unknown.data or (unknown.symbol in m.nodes and not m.nodes[unknown.symbol].requires_grad):
        tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
        m.call(m.attribute(tensor, "requires_grad_", call), call)
        return tensor
    if wanted is False:
        freeze(m, unknown, call)
    else:
        thaw(m, unknown.symbol)
    return unknown


def thaw(m: Machine, symbol: Symbol) -> None:
    """What was frozen of an unknown module and of all that it is a part of: something there is
    trained again.
    """
    part: Symbol | None = symbol
    while part is not None:
        own = m.leaves.get(part)
        if own is not None and own.cut is tape.Cut.FROZEN:
            own.requires_grad, own.cut, own.cut_at, own.cut_stack = True, None, None, ()
        # `model.get_submodule(name)`
        part = part.source or (part.twin.source if part.twin is not None else None)


@hears("unknown call")
def hooked(m: Machine, symbol: Symbol, call: Call) -> None:
    """`part.register_forward_hook(hook)`: what the hook gives takes the place of what frozen parts
    compute.
    """
    if symbol.source is None or call.called not in (
        "register_forward_hook",
        "register_forward_pre_hook",
    ):
        return
    hook = call.get(0, "hook")
    function = hook.function if isinstance(hook, Bound) else hook
    if not isinstance(function, Function) or gives(function):
        thaw(m, symbol.source)


def freeze(m: Machine, unknown: Unknown, call: Call) -> None:
    """Freezes the parameters of an unknown module, as far as this path is concerned."""
    own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    own.requires_grad, own.cut = False, tape.Cut.FROZEN
    own.cut_at, own.cut_stack = call.frame.span(call.node), m.where


@method("unknown", "parameters", "trainable_parameters", "get_parameters")
def parameters(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """All parameters of an unknown module, as one."""
    return Sequence("generator", [_whole(m, unknown, call)])


@method("unknown", "named_parameters")
def named_parameters(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    name = m.unknown("name", data=True, type="str")
    return Sequence("generator", [Sequence("tuple", [name, _whole(m, unknown, call)])])


def _whole(m: Machine, unknown: Unknown, call: Call) -> Tensor:
    own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    whole = m.parameters.get(own.parameter) if own.parameter is not None else None
    if whole is None:
        whole = Tensor(own)
        assert own.parameter is not None
        m.parameters[own.parameter] = whole
    return whole


_CHILD = "child"


@method("unknown", "children", "modules")
def children(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """The parts of an unknown module, one of which stands for all."""
    made = _child(m, unknown, call)
    return Sequence("generator", [made], open=True, rest=made)


@method("unknown", "named_children", "named_modules")
def named_children(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """The parts of an unknown module with their names, one of which stands for all."""
    name = m.unknown("name", data=True, type="str")
    made = Sequence("tuple", [name, _child(m, unknown, call)])
    return Sequence("generator", [made], open=True, rest=made)


def _child(m: Machine, unknown: Unknown, call: Call) -> Unknown:
    whole = tensors.leaf(m, unknown.symbol, call.node, call.frame)
    symbol = unknown.symbol.derive((_CHILD,), f"a part of {unknown.symbol.text}")
    if symbol not in m.session.modules and whole.parameter is not None:
        m.session.modules[symbol] = tape.Module(symbol.text, whole.parameter.module, unseen=True)
    return Unknown(symbol)


@method("unknown", "__set_requires_grad__")
def set_requires_grad(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`layer.requires_grad = False` sets an attribute that nobody reads, if it is a module: then it
    is called, or what it is a part of.
    """
    from gradlint.library import freezing

    symbol = unknown.symbol
    made = m.nodes.get(symbol)
    is_computed = (made is not None and made.op != "call") or symbol in m.tensors
    is_tensor = unknown.data or unknown.type == "tensor" or is_computed
    wanted = conditions.truth(m, call.args[0])
    if wanted:
        requires_grad_(m, unknown, Call("requires_grad_", [], {}, call.node, call.frame))
    elif wanted is False and not is_tensor:
        whole = [symbol.source] if symbol.key == (_CHILD,) and symbol.source is not None else []
        for each in (symbol, *whole):
            freezing.in_vain(m, tensors.leaf(m, each, call.node, call.frame), "module", call)
    return NONE


@method("unknown", "zero_grad")
def zero_grad(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    from gradlint.library import optimizers

    if roles.role(m, unknown, call) == "optimizer":
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


@method("unknown", "__set_grad__")
def set_grad(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`p.grad = None` for something unknown, which may be anybody's parameter."""
    from gradlint.library import holdings

    at, given = call.frame.span(call.node), call.args[0]
    if (isinstance(given, Const) and given.value is None) or holdings.constant_zero(given):
        m.emit(tape.ZeroGrad(at=at, optimizer=None, complete=False))
    else:
        m.emit(tape.Fact(at=at, what="gradient-set"))
    return NONE


@method("unknown", "step")
def step(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`step` of an optimizer, a scheduler or a scaler; of anything else (an environment, a learner)
    it is foreign.
    """
    from gradlint.library import optimizers

    role = roles.role(m, unknown, call)
    if role == "scaler" and call.args:
        return _scaler(m, unknown, "step", call)
    if role == "scheduler" and len(call.values) <= MOST_OF_A_SCHEDULER:
        optimizers.scheduler_step(m, unknown, call)
        return NONE
    if role == "scheduler":  # of noise: what it makes of a prediction hangs on it
        return call_unknown(
            m, unknown.symbol.derive(("attribute", "step"), f"{unknown.symbol.text}.step"), call
        )
    if role == "optimizer":
        return optimizers.step(m, unknown, call)
    return _foreign(m, unknown, "step", call)


def _scaler(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """A method of something that is taken to be a GradScaler."""
    from gradlint.library import amp

    handler = find_method("torch.amp.GradScaler", name)
    made = amp.scaler_of(m, unknown, call)
    return (
        handler(m, made, call)
        if handler is not None and made is not None
        else m.unknown(name, data=True)
    )


def _foreign(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """A method that gives nothing to learn from, and may do anything with what it is given."""
    node, frame = call.node, call.frame
    symbol = unknown.symbol.derive(("attribute", name), f"{unknown.symbol.text}.{name}")
    tell("unknown call", m, symbol, call)
    made = tensors.value(
        m, "call", Kind.DATA, tensors.sources(m, call.values, node, frame), node, frame
    )
    m.emit(tape.ModuleCall(at=frame.span(node), module=tape.Module(symbol.text), result=made))
    return m.unknown(frame.text(node), data=True)


@method("unknown", "scale")
def scale(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    if call.args and roles.role(m, unknown, call) == "scaler":
        return _scaler(m, unknown, "scale", call)
    return call_unknown(m, unknown.symbol.derive(("attribute", "scale"), "scale"), call)


@method("unknown", "unscale_")
def unscale_(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """Of an optimizer, whatever the name: nothing but a scaler does that."""
    if call.args and (
        roles.role(m, unknown, call) == "scaler" or roles.looks_like_optimizer(m, call.args[0])
    ):
        return _scaler(m, unknown, "unscale_", call)
    return call_unknown(m, unknown.symbol.derive(("attribute", "unscale_"), "unscale_"), call)


@method("unknown", "update")
def update(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    is_scaler = roles.role(m, unknown, call) == "scaler"
    return (_scaler if is_scaler else _foreign)(m, unknown, "update", call)


@method("unknown", "append", "extend", "add", "insert", "setdefault")
def keep(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """Something is put into an unknown container; `h.add(x, alpha=0.1)` is a tensor's,
    `tree.add(x, style=s)` not.
    """
    if call.kwargs and call.called == "add" and call.kwargs.keys() <= {"alpha", "out"}:
        given, effect = [unknown, *call.args], lookup("add")
        return tensors.apply(
            m,
            "torch.Tensor.add",
            given,
            call.node,
            call.frame,
            effect,
            kwargs=call.kwargs,
            method=True,
        )
    tell("data call", m, unknown.symbol, call)
    for value in tensors.sources(m, call.args, call.node, call.frame):
        if value.records and not value.assumed:
            m.emit(
                tape.Kept(
                    at=call.frame.span(call.node),
                    value=value,
                    how="unknown",
                    text=call.frame.text(call.node),
                )
            )
    return NONE


@method("unknown", "split", "rsplit", "partition", "rpartition")
def split(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`setting.split(",")`: a text is what has commas, and its parts are texts; `batch.split(8)`: a
    tensor's are counted.
    """
    at = call.args[0] if call.args else None
    if call.called == "split" and estimated(m, at) is not None and unknown.type in ("", "tensor"):
        tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
        return m.call(m.attribute(tensor, "split", call), call)
    handler = find_method("str", call.called)
    if (
        handler is not None
        and isinstance(at, Const)
        and isinstance(at.value, str)
        and not re.search(r"\w", at.value)
    ):
        return handler(m, unknown, call)
    node = call.node.function if isinstance(call.node, ir.Call) else call.node
    return m.call(derived(m, unknown, "attribute", call.called, node, call.frame), call)


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


@method("unknown", "pop", "popleft")
def pop(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """An item, which is no longer there for the next who asks."""
    key = call.constant(0, "key")
    asked = key if key is not None else m.symbol(call.args[0]) if call.args else call.name
    taken = m.state.setdefault("taken out", {})
    number = taken[unknown.symbol, asked] = taken.get((unknown.symbol, asked), 0) + 1
    return derived(
        m, unknown, "item", asked if number == 1 else (asked, number), call.node, call.frame
    )


def _measure(name: str) -> None:
    @method("unknown", name)
    def measure(m: Machine, unknown: Unknown, call: Call) -> Abstract:
        key = (name, tuple(m.symbol(arg) for arg in call.args))
        return Unknown(
            unknown.symbol.derive(key, call.frame.text(call.node)), data=True, type="number"
        )


for _name in ("size", "dim", "numel", "__len__"):
    _measure(_name)
