"""The flag `requires_grad` of a tensor: reading it, setting it, freezing and thawing parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, tensors
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import (
    attribute,
    method,
)
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import FALSE, NONE, TRUE, Abstract, Call, Object, Tensor
from gradlint.library import freezing
from gradlint.library.autograd import (
    refuse_in_transform,
)
from gradlint.tape import Cut, Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@method("torch.Tensor", "requires_grad_")
def requires_grad_(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    refuse_in_transform(m, "requires_grad_", call)
    wanted = call.constant(0, "requires_grad", True)
    set_requires_grad(m, tensor, wanted is not False, call, "torch.Tensor.requires_grad_")
    return tensor


@method("torch.Tensor", "__set_requires_grad__")
def assign_requires_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    wanted = conditions.truth(m, call.args[0])
    if wanted is not None:
        set_requires_grad(m, tensor, wanted, call, "requires_grad")
    elif tensor.node.parameter is not None:
        tensor.node.assumed = True
        set_requires_grad(
            m,
            tensor,
            conditions.decide(m, call.args[0], call.node, call.frame),
            call,
            "requires_grad",
        )
    return NONE


def set_requires_grad(m: Machine, tensor: Tensor, wanted: bool, call: Call, op: str) -> None:
    """Makes a tensor a leaf that requires grad, or freezes one."""
    node = tensor.node
    if node.parameter is not None:
        at, what = call.frame.span(call.node), "thawed" if wanted else "frozen"
        m.emit(tape.Fact(at=at, what=what, value=node, text=call.frame.text(call.node)))
    # torch: "you can only change requires_grad flags of leaf variables"; `requires_grad_()` of what
    # requires grad already changes nothing
    is_refused = op == "requires_grad" or (op == "torch.Tensor.requires_grad_" and not wanted)
    if is_refused and node.records and not node.is_leaf:
        is_of_rows = op != "requires_grad" and freezing.whole_of(tensor) is not None
        _refuses_flag(m, node, "rows" if is_of_rows else "", call)
    if not wanted:
        freezing.freezes_data(m, tensor, call)
    if wanted == node.requires_grad:
        freezing.freezes_rows(m, tensor, call)
        return
    if wanted and node.parameter is not None and node.kind is Kind.PARAMETER:
        made = _again(m, node, call)
        made.requires_grad, made.cut = True, None
    elif wanted:
        made = _leaf_of(m, node, op, call)
        tensor.detached = False
    elif node.kind in (Kind.PARAMETER, Kind.LEAF):
        made = _frozen(m, node, call)
    else:
        return
    made.storage, made.name = node.storage, node.name
    tensor.node = made
    if wanted:
        freezing.thaws_rows(m, tensor, call)


def _leaf_of(m: Machine, node: tape.Value, op: str, call: Call) -> tape.Value:
    """The leaf that data becomes where it is made to require grad."""
    if node.inference and not m.grad.inference:
        at = call.frame.span(call.node)
        m.emit(tape.Fact(at=at, what="inference-tensor-used", value=node, detail=op))
    made = tensors.value(
        m,
        op,
        Kind.LEAF,
        (node,),
        call.node,
        call.frame,
        requires_grad=True,
        dtype=node.dtype,
    )
    made.parameter = tape.Parameter(node.name, None, made.at)
    made.number, made.inference, made.inference_at = None, node.inference, node.inference_at
    return made


def _frozen(m: Machine, node: tape.Value, call: Call) -> tape.Value:
    """A parameter that requires grad no more, by this call."""
    made = _again(m, node, call)
    made.requires_grad, made.cut = False, Cut.FROZEN
    made.cut_at, made.cut_stack = call.frame.span(call.node), m.where
    if freezing.is_named(node, call):
        made.flags |= {"frozen-by-name"}
    return made


def _refuses_flag(m: Machine, node: tape.Value, of: str, call: Call) -> None:
    """Ends the program as torch does: the flag of what is computed from what requires grad cannot
    be set (torch 2.13), nor that `of` rows of a parameter.

    `requires_grad_()` alone asks for what is so already.
    """
    if all(value.assumed for value in tape.leaves(node)):
        return
    at = call.frame.span(call.node)
    text = call.frame.text(call.node)
    m.emit(tape.Fact(at=at, what="flag-refused", value=node, detail=of, text=text))
    raise Raised(Object("builtins.RuntimeError", at), at)


def _again(m: Machine, node: tape.Value, call: Call) -> tape.Value:
    """The same parameter as a new value."""
    made = tensors.value(
        m, node.op, node.kind, (), call.node, call.frame, assumed=node.assumed, dtype=node.dtype
    )
    made.parameter, made.at, made.stack, made.text = node.parameter, node.at, node.stack, node.text
    return made


@attribute("torch.Tensor", "requires_grad")
def requires_grad(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    node = tensor.node
    is_prediction = tape.PREDICTED in node.flags and node.requires_grad  # what a contract is about
    if node.assumed and not is_prediction:
        test = grad_test(m, tensor)
        m.state.setdefault("grad-tests", {})[test.subject] = node
        return (
            conditions.boolean(m, test, f"{node.title}.requires_grad")
            if node.requires_grad
            else FALSE
        )
    return TRUE if node.requires_grad else FALSE


def grad_test(m: Machine, tensor: Tensor) -> Test:
    """The question whether a tensor out of view requires grad."""
    return Test(
        m.symbol(tensor).derive("requires_grad", f"{tensor.node.title}.requires_grad"), "true"
    )
