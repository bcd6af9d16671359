"""Statements that freeze and thaw parameters, and those that are meant to and do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions
from gradlint.interpret.registry import method, on
from gradlint.interpret.values import (
    Abstract,
    Call,
    Instance,
    Object,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.holdings import parameters_in
from gradlint.library.structure import MODULE, named_parameters
from gradlint.tape import Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
MISSPELT = frozenset(
    [
        "require_grad",
        "require_grads",
        "requires_grads",
        "required_grad",
        "require_gradient",
        "requires_gradient",
        "requires_gradients",
        "requiresGrad",
        "requiresgrad",
        "requires_Grad",
        "requieres_grad",
        "requires_grade",
        "grad_required",
        "requiregrad",
        "requires_grd",
        "need_grad",
        "needs_grad",
        "trainable",
        "requires_grad_",
    ]
)


def is_named(node: Value, call: Call) -> bool:
    """Whether a statement names the very parameter that it freezes:
    `embedding.weight.requires_grad = False`.
    """
    said = call.node.function if isinstance(call.node, ir.Call) else call.node
    holder = said.target if isinstance(said, ir.Attribute) else None
    return (
        isinstance(holder, ir.Attribute)
        and node.parameter is not None
        and holder.name == node.parameter.name
    )


def in_vain(m: Machine, value: Value | None, how: str, call: Call) -> None:
    """Writes down a statement that is meant to freeze, and does not."""
    m.emit(
        tape.Fact(
            at=call.frame.span(call.node),
            what="frozen-in-vain",
            value=value,
            detail=how,
            text=call.frame.text(call.node),
        )
    )


def freezes_data(m: Machine, tensor: Tensor, call: Call) -> None:
    """`parameter.data.requires_grad = False` is said of a tensor that is thrown away."""
    said = call.node.function if isinstance(call.node, ir.Call) else call.node
    if (
        isinstance(said, ir.Attribute)
        and isinstance(said.target, ir.Attribute)
        and said.target.name == "data"
    ):
        for node in tensor.node.inputs:
            if node.kind is Kind.PARAMETER and node.requires_grad:
                in_vain(m, node, "data", call)


def freezes_rows(m: Machine, tensor: Tensor, call: Call) -> None:
    """`parameter.data[:5].requires_grad = False` is said of a view that nothing else has."""
    whole = _whole(tensor)
    if whole is not None and whole.node.requires_grad and not tensor.node.requires_grad:
        in_vain(m, whole.node, "rows", call)


def thaws_rows(m: Machine, tensor: Tensor, call: Call) -> None:
    """`parameter[5:].requires_grad_(True)` of a frozen one makes a leaf of its own: a fact
    `thawed-in-vain`.
    """
    whole = _whole(tensor)
    if whole is not None and not whole.node.requires_grad:
        at, text = call.frame.span(call.node), call.frame.text(call.node)
        m.emit(
            tape.Fact(at=at, what="thawed-in-vain", value=whole.node, source=tensor.node, text=text)
        )


def _whole(view: Tensor) -> Tensor | None:
    """The parameter that a tensor is a view of."""
    whole = view.base
    while whole is not None and whole.node.kind is not Kind.PARAMETER:
        whole = whole.base
    return whole


def freezes_module(m: Machine, module: Instance | Object, call: Call) -> None:
    """`module.requires_grad = False` sets an attribute that nobody reads."""
    if conditions.truth(m, call.args[0]) is False:
        held = [tensor.node for _, tensor in named_parameters(m, module, call)]
        for node in held:
            if node.requires_grad:
                in_vain(m, node, "module", call)


def register_misspelt(name: str) -> None:
    @method(("torch.Tensor", MODULE), f"__set_{name}__")
    def handler(m: Machine, receiver: Tensor | Instance | Object, call: Call) -> Abstract:
        misspelt(m, receiver, call)
        receiver.attrs[name] = call.args[0]
        return call.args[0]


for _name in sorted(MISSPELT):
    register_misspelt(_name)


def misspelt(m: Machine, receiver: Abstract, call: Call) -> None:
    """`parameter.require_grad = False`: an attribute that torch does not know."""
    given = conditions.truth(m, call.args[0])
    if given or (given is None and not (isinstance(receiver, Tensor) and "grad" in call.name)):
        return  # what is not known may be meant for an attribute of one's own
    held = parameters_in(m, receiver, call) if not isinstance(receiver, Unknown) else iter(())
    for tensor in held:
        if tensor.node.requires_grad:
            in_vain(m, tensor.node, call.name, call)


@on("discarded")
def compared(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`p.requires_grad == False` as a statement."""
    if (
        isinstance(node, ir.Compare)
        and isinstance(node.left, ir.Attribute)
        and node.left.name == "requires_grad"
    ):
        owner = m.evaluate(node.left.target, frame)
        if (
            isinstance(owner, Tensor)
            and owner.node.kind is Kind.PARAMETER
            and owner.node.requires_grad
        ):
            in_vain(m, owner.node, "compared", Call("==", [], {}, node, frame))
