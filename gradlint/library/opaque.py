"""Modules that are not known: their parameters, parts, modes and hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, tensors
from gradlint.interpret.lineage import canonical
from gradlint.interpret.registry import method, on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Bound,
    Call,
    Const,
    Function,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import roles, structure
from gradlint.library.autograd import refuse_in_transform
from gradlint.library.returns import gives
from gradlint.library.unknown import thaw

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


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


@on("unknown call")
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
    """All parameters of an unknown module, as one, and those that the program has put on it."""
    added = [tensor for _, tensor in structure.parameters_put_on(m, unknown.symbol, call)]
    return Sequence("generator", [_whole(m, unknown, call), *added])


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
_TENSORS = frozenset(map(canonical, ["torch.Tensor", "torch.nn.Parameter"]))


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
    elif _is_found_to_be_a_tensor(m, symbol):
        requires_grad_(m, unknown, Call("requires_grad_", call.args[:1], {}, call.node, call.frame))
    elif not is_tensor:
        whole = [symbol.source] if symbol.key == (_CHILD,) and symbol.source is not None else []
        for each in (symbol, *whole):
            own = tensors.leaf(m, each, call.node, call.frame)
            freezing.in_vain(m, own, freezing.flagged(wanted), call)
    return NONE


def _is_found_to_be_a_tensor(m: Machine, symbol: Symbol) -> bool:
    """Whether the path has asked `isinstance(x, nn.Parameter)`, and gone on where it is one."""
    return any(
        holds and test[:2] == (symbol, "isa") and canonical(test[2]) in _TENSORS
        for test, holds in m.oracle.facts.truth.items()
        if isinstance(test[2], str)
    )


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
