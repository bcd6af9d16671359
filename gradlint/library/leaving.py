"""What leaves the graph or torch: `x.item()`, `x.numpy()`, `x.detach()`, `x.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, copies, memory, tensors
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import (
    attribute,
    method,
)
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Object,
    Tensor,
    Unknown,
)
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@method("torch.Tensor", "item", "tolist", "numpy", "__float__", "__int__", "__array__")
def copied_out(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    if call.called == "numpy" and _is_prediction(m, tensor.node):
        at = call.frame.span(call.node)
        # torch refuses it, so that nobody gives a prediction
        raise Raised(Object("builtins.RuntimeError", at), at)
    kind = "array" if call.called in ("numpy", "tolist", "__array__") else "number"
    number = copies.number(m, tensor, f"torch.Tensor.{call.called}", call.node, call.frame, kind)
    if call.called == "numpy" and number.origin is not None:
        number.origin.storage = tensor.node.storage
    if call.called == "item" and id(tensor.node) in m.tests:  # mask.any().item()
        answer = conditions.boolean(m, conditions.test_of(m, tensor), call.frame.text(call.node))
        if isinstance(answer, Unknown):
            answer.origin = number.origin
        return answer
    return (
        Const(tensor.node.number)
        if isinstance(tensor.node.number, int | float) and kind == "number"
        else number
    )


def _is_prediction(m: Machine, node: tape.Value) -> bool:
    """Whether it requires grad because an argument of a loss in a part is taken to, and by nothing
    else.
    """
    leaves = (
        list(tape.leaves(node)) if m.session.contract and m.session.contract != "forward" else []
    )
    return bool(leaves) and all(leaf.kind is Kind.UNKNOWN for leaf in leaves)


@method("torch.Tensor", "detach")
def detach(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return memory.detach(m, tensor, "torch.Tensor.detach", call.node, call.frame)


@attribute("torch.Tensor", "data")
def data(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    known = tensor.attrs.get("<data>")
    if isinstance(known, Tensor) and known.node.storage is tensor.node.storage:
        return known
    return memory.detach(m, tensor, "torch.Tensor.data", at.node, at.frame, uncounted=True)


@method("torch.Tensor", "__set_data__")
def set_data(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.data = new`: other memory; what was saved keeps the old, and is out of date with the next
    write to `x`.

    That a parameter is set so is a fact `data-set`.
    """
    new = tensors.node_of(m, call.args[0], call.node, call.frame)
    if tensor.node.parameter is not None:
        at, text = call.frame.span(call.node), call.frame.text(call.node)
        m.emit(
            tape.Fact(
                at=at,
                what="data-set",
                value=tensor.node,
                source=new,
                detail="torch.Tensor.data",
                text=text,
            )
        )
    if tensor.node.storage is not None and not tensor.uncounted:
        tensor.memory_before = (*tensor.memory_before, tensor.node.storage)
    tensor.node.storage = tape.Storage()
    if new is not None and new.storage is not None:
        tensor.node.storage = new.storage
    return NONE


@method("torch.Tensor", "detach_")
def detach_in_place(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    made = memory.detach(m, tensor, "torch.Tensor.detach_", call.node, call.frame)
    tensor.node = made.node
    return tensor
