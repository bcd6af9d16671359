"""Statements whose result is dropped: `x.detach()` by itself, `loss.backward` without its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import (
    on,
)
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Bound, Builtin, Tensor, Unknown
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within
from gradlint.library.effects import lookup
from gradlint.library.python import outside

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


_MOVING = ("to", "type", "cuda")  # the methods that take the name of a device or type
_OF_ARRAYS = {
    f"torch.Tensor.{name}"
    for name in ("flatten", "ravel", "reshape", "squeeze", "transpose", "__getitem__")
}
_LISTS_OF_MODULES = [
    ("attribute", name) for name in ("modules", "children", "named_modules", "named_children")
]


@on("discarded")
def discarded(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """A method that changes nothing in place, called for nothing: `x.detach()` as a statement, or
    `x.requires_grad`.
    """
    if isinstance(node, ir.Attribute) and node.name == "requires_grad":
        at, text = frame.span(node), frame.text(node)
        m.emit(
            tape.Fact(
                at=at, what="discarded-result", detail="torch.Tensor.requires_grad", text=text
            )
        )
    if (
        isinstance(value, Tensor)
        and value.node.at == frame.span(node)
        and not value.node.op.endswith("_")
    ):
        op = value.node.op
        is_method = (
            op.startswith("torch.Tensor.") and lookup(op) is not None and not op.endswith("__")
        )
        is_known = op == "torch.Tensor.detach" or not _is_guessed(value.node)
        if is_method and is_known and not _is_run(m, node, frame) and not _is_repeated(m, node):
            m.emit(
                tape.Fact(
                    at=value.node.at,
                    what="discarded-result",
                    value=value.node,
                    detail=op,
                    text=frame.text(node),
                )
            )


def _is_run(m: Machine, node: ir.Node, frame: Frame) -> bool:
    """Whether the receiver is something unknown that is a module: it is called, has parameters, or
    is one's part.
    """
    receiver = (
        node.function.target
        if isinstance(node, ir.Call) and isinstance(node.function, ir.Attribute)
        else None
    )
    owner = m.evaluate(receiver, frame) if isinstance(receiver, ir.Name) else None
    return isinstance(owner, Unknown) and (
        owner.symbol in m.leaves or _is_listed_module(owner.symbol)
    )


def _is_repeated(m: Machine, node: ir.Node) -> bool:
    """Whether a loop does nothing but this, the same in each round: it warms something up, or
    measures it.
    """
    loop = m.loops[-1].node if m.loops else None
    if not isinstance(loop, ir.For) or [getattr(each, "value", None) for each in loop.body] != [
        node
    ]:
        return False
    changing = {each.id for each in within([loop.target]) if isinstance(each, ir.Name)}
    return not any(isinstance(each, ir.Name) and each.id in changing for each in within([node]))


def _is_listed_module(symbol: Symbol) -> bool:
    """Whether it comes out of `model.modules()` or the like."""
    part: Symbol | None = symbol
    while part is not None and part.key not in _LISTS_OF_MODULES:
        part = part.source or (part.twin.source if part.twin is not None else None)
    return part is not None


def _is_guessed(result: tape.Value) -> bool:
    """Whether the method is all that speaks for a tensor; its unused result speaks against:
    `logger.log()`.
    """
    receiver = next(iter(result.inputs), None)
    while receiver is not None and receiver.op in _OF_ARRAYS and receiver.inputs:
        # so have arrays of whatever: `axes.flatten()[0].scatter(x, y)`
        receiver = receiver.inputs[0]
    if receiver is not None and outside.is_outside(_made_by(receiver)):
        return True
    if (
        receiver is not None
        and receiver.op.startswith("torch.Tensor.")
        and lookup(receiver.op) is None
        and "gradient" not in receiver.flags
    ):
        return True  # no tensor has what gave it: `model.eval().to("cpu")`
    if receiver is None or receiver.op not in ("input", "call", "part"):
        return receiver is None
    # `result.log("loss", loss)`
    says = any(isinstance(given, str) for _, given in result.arguments)
    return receiver.assumed or (says and result.op.rpartition(".")[2] not in _MOVING)


def _made_by(value: tape.Value) -> str:
    """The function that made what the methods of tensors, or what was taken for them, were called
    on.
    """
    while value.op.startswith("torch.Tensor.") and value.inputs:
        value = value.inputs[0]
    return value.op


@on("discarded")
def written_and_dropped(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`memory[mask].zero_()` as a statement: rows that were copied for it are written, and given
    up.
    """
    writes = m.tape.of(tape.InPlace) if isinstance(value, Tensor) else ()
    event = writes[-1] if writes else None
    if event is None or event.after is not getattr(value, "node", None) or event.before.name:
        return
    if {tape.COMPUTED_ANEW, "selection"} <= event.before.flags:
        m.emit(tape.Fact(at=event.at, what="lost-write", value=event.before, text=frame.text(node)))


@on("discarded")
def not_called(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`loss.backward` as a statement: the method is looked up, and nothing is done."""
    if (
        isinstance(node, ir.Attribute)
        and node.name in ("backward", "step")
        and isinstance(value, Bound | Builtin)
    ):
        m.emit(
            tape.Fact(
                at=frame.span(node), what="not-called", detail=node.name, text=frame.text(node)
            )
        )
