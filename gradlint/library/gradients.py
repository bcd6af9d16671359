"""What a tensor says of its gradient: `x.grad`, `x.grad_fn`, `x.is_leaf`, `x.retain_grad()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.registry import (
    attribute,
    method,
)
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Object,
    Tensor,
)
from gradlint.library import holdings
from gradlint.library.autograd import (
    gains_gradient,
    last_backward,
    may_have_gradient,
)
from gradlint.library.flags import grad_test
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@attribute("torch.Tensor", "is_leaf")
def is_leaf(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return FALSE if tensor.node.records else TRUE


@attribute("torch.Tensor", "grad_fn")
def grad_fn(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    if not tensor.node.records:
        return NONE
    return Object("torch.autograd.graph.Node", at.frame.span(at.node))


@attribute("torch.Tensor", "grad")
def grad(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    """The gradient: a tensor without a graph (with one where a backward created it)."""
    holdings.reads_gradient(m, tensor, at)
    last = last_backward(m)
    is_frozen = tensor.node.assumed and m.oracle.facts.known(grad_test(m, tensor)) is False
    if is_frozen or not may_have_gradient(m, tensor.node):
        tensor.grad = None
        return NONE
    if tensor.grad is None or _is_of_another(tensor.grad, last):
        made = _gradient(m, tensor, last, at)
        made.node.name = f"{tensor.node.title}.grad"
        made.attrs["<of>"] = tensor
        tensor.grad = made
    # once written, it has a new node
    if isinstance(tensor.grad, Tensor) and tensor.grad.attrs.get("<of>") is tensor:
        tensor.grad.node.flags |= {"gradient"}
        tensor.grad.node.parameter = tensor.node.parameter
    if tensor.grad is not NONE and m.state.get("glance") is not at.node:
        m.emit(
            tape.Clip(
                at=at.frame.span(at.node),
                parameters=(tensor.node,),
                reads_only=True,
                text=at.frame.text(at.node),
            )
        )
    return tensor.grad


def _gradient(m: Machine, tensor: Tensor, last: tape.Backward | None, at: Call) -> Tensor:
    if last is None or not last.create_graph or not tensor.node.requires_grad:
        return tensors.batch(m, "torch.Tensor.grad", at.node, at.frame)
    made = tensors.value(
        m, "torch.Tensor.grad", Kind.OPERATION, (last.value, tensor.node), at.node, at.frame
    )
    made.requires_grad, made.assumed = True, last.value.assumed  # in whatever grad mode it is read
    return Tensor(made)


def _is_of_another(gradient: Abstract, last: tape.Backward | None) -> bool:
    """Whether a gradient with a graph is that of an earlier backward."""
    if (
        not isinstance(gradient, Tensor)
        or gradient.node.op != "torch.Tensor.grad"
        or not gradient.node.inputs
    ):
        return False
    return last is not None and gradient.node.inputs[0] is not last.value


@method("torch.Tensor", "__set_grad__")
def set_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.grad = g`; of what is no leaf it is a plain attribute, which reads as it was set."""
    given, kept = call.args[0], m.state.setdefault("grad-kept", set())
    is_none = isinstance(given, Const) and given.value is None
    if is_none or holdings.constant_zero(given):
        m.emit(
            tape.ZeroGrad(at=call.frame.span(call.node), optimizer=None, parameters=(tensor.node,))
        )
        tensor.grad = None
    else:
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node),
                what="gradient-set",
                value=tensor.node,
                source=given.node if isinstance(given, Tensor) else None,
            )
        )
        tensor.grad = given
    if is_none:
        kept.discard(id(tensor.node))
        return NONE
    kept.add(id(tensor.node))
    gains_gradient(m, tensor.node)
    return NONE


@method("torch.Tensor", "retain_grad")
def retain_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """Its gradient will be kept, although it is no leaf."""
    m.state.setdefault("grad-kept", set()).add(id(tensor.node))
    return NONE
