"""What a Function's `forward` puts into `ctx`: saved tensors, marks and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.operators import BITWISE
from gradlint.interpret.registry import attribute, method
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.functions import CONTEXT

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

BY_DEFAULT = "by its default or annotation"


@method(CONTEXT, "save_for_backward", "save_for_forward")
def save(m: Machine, context: Object, call: Call) -> Abstract:
    """`ctx.save_for_backward(…)`: autograd checks that these stay as they are."""
    for given, node in zip(call.args, _written(call), strict=False):
        if kind := _kind_of_no_tensor(m, given):
            at, text = call.frame.span(node), call.frame.text(node)
            m.emit(tape.Fact(at=at, what="saved-no-tensor", detail=kind, text=text))
    context.state["saved"] = tensors.sources(m, call.args, call.node, call.frame)
    context.attrs["saved_tensors"] = Sequence("tuple", list(call.args), call.open)
    return NONE


def _written(call: Call) -> list[ir.Node]:
    """The arguments as they are written; the whole call for each where one does not stand for
    one.
    """
    written = call.node.args if isinstance(call.node, ir.Call) else []
    return written if len(written) == len(call.args) else [call.node] * len(call.args)


def _kind_of_no_tensor(m: Machine, given: Abstract) -> str:
    """What is saved that is no tensor; "" for a tensor, for None (which torch takes) and for the
    unknown. What a parameter is by its default, somebody can replace by a tensor.
    """
    is_given = m.session.parameters.is_given
    match given:
        case Const(value=None):
            return ""
        case Const() if id(given) in m.tests:  # `x > 0`, which this path has answered
            return ""
        case Const():
            return "a string" if isinstance(given.value, str) else "a number"
        case Sequence():
            return f"a {given.kind}"
        case Mapping():
            return "a dict"
        case Unknown() if _can_be_a_mask(given):
            return ""
        case Unknown(type="number" | "bool" | "str", symbol=asked):
            kind = "a string" if given.type == "str" else "a number"
            return f"{kind} {BY_DEFAULT}" if is_given(asked) else kind
    return ""


def _can_be_a_mask(given: Unknown) -> bool:
    """Whether it is a mask where what was compared is a tensor: `x > 0`, and what bitwise operators
    make of such: `(x > 0) & (x < 1)`.
    """
    match given.symbol.key:
        case (str(op), *_) if op in BITWISE:
            return True
    return given.type == "bool" and isinstance(given.test, Test)


@method(CONTEXT, "mark_dirty")
def mark_dirty(m: Machine, context: Object, call: Call) -> Abstract:
    """`ctx.mark_dirty(x)`: `forward` wrote this input."""
    written = [value for value in call.args if isinstance(value, Tensor | Unknown)]
    context.state["dirty"] += [
        tensors.as_tensor(m, value, call.node, call.frame) for value in written
    ]
    return NONE


@method(CONTEXT, "mark_non_differentiable")
def mark_non_differentiable(m: Machine, context: Object, call: Call) -> Abstract:
    """`ctx.mark_non_differentiable(y)`: this output carries no gradient."""
    context.state["cut"] += tensors.sources(m, call.args, call.node, call.frame)
    return NONE


@method(CONTEXT, "set_materialize_grads", "mark_shared_storage")
def setting(m: Machine, context: Object, call: Call) -> Abstract:
    """What changes nothing about the forward."""
    return NONE


@attribute(CONTEXT, "needs_input_grad")
def needs_input_grad(m: Machine, context: Object, at: Call) -> Abstract:
    """For each argument, whether it requires grad."""
    found = context.state.get("needs")
    return found if isinstance(found, Abstract) else m.unknown("needs_input_grad", data=True)


@method(CONTEXT, "__set_*__")
def keep(m: Machine, context: Object, call: Call) -> Abstract:
    """`ctx.name = value`."""
    value = call.args[0]
    held = (
        value.items.values()
        if isinstance(value, Mapping)
        else value.items
        if isinstance(value, Sequence)
        else [value]
    )
    for tensor in held:
        if isinstance(tensor, Tensor | Unknown):
            context.state["kept"].append(
                (call.frame.span(call.node), call.frame.text(call.node), tensor)
            )
    context.attrs[call.name] = value
    return NONE
