"""Statements that freeze and thaw parameters, and those that are meant to and do not."""

from __future__ import annotations

import functools
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
from gradlint.library.structure import named_parameters
from gradlint.tape import Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
_FLAG = "requires_grad"
# more than a slip away from it
_TAKEN_FOR_IT = frozenset(
    [
        "requires_grads",
        "require_gradient",
        "requires_gradient",
        "requires_gradients",
        "requires_grade",
        "grad_required",
        "need_grad",
        "needs_grad",
        "trainable",
        "requires_grad_",
    ]
)
_SLIPS = 2


@functools.cache
def is_misspelt(name: str) -> bool:
    """Whether an attribute is `requires_grad` but for a slip: letters that are swapped, left out,
    or wrong. What is derived from that name, `_requires_grad`, is one of the program's own.
    """
    is_slip = _FLAG not in name and _slips(name.lower(), _FLAG) <= _SLIPS
    return name in _TAKEN_FOR_IT or is_slip


def _slips(word: str, meant: str) -> int:
    """By how many letters two words differ; two that are swapped count as one (the distance of
    Damerau and Levenshtein).
    """
    if abs(len(word) - len(meant)) > _SLIPS:
        return _SLIPS + 1
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(word, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(meant, 1):
            least = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other))
            is_swap = i > 1 and j > 1 and word[i - 2] == other and letter == meant[j - 2]
            row.append(min(least, last[j - 2] + 1) if is_swap else least)
    return row[-1]


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
    whole = whole_of(tensor)
    if whole is not None and whole.node.requires_grad and not tensor.node.requires_grad:
        in_vain(m, whole.node, "rows", call)


def thaws_rows(m: Machine, tensor: Tensor, call: Call) -> None:
    """`parameter[5:].requires_grad_(True)` of a frozen one makes a leaf of its own: a fact
    `thawed-in-vain`.
    """
    whole = whole_of(tensor)
    if whole is not None and not whole.node.requires_grad:
        at, text = call.frame.span(call.node), call.frame.text(call.node)
        m.emit(
            tape.Fact(at=at, what="thawed-in-vain", value=whole.node, source=tensor.node, text=text)
        )


def whole_of(view: Tensor) -> Tensor | None:
    """The parameter that a tensor is a view of."""
    whole = view.base
    while whole is not None and whole.node.kind is not Kind.PARAMETER:
        whole = whole.base
    return whole


def freezes_module(m: Machine, module: Instance | Object, call: Call) -> None:
    """`module.requires_grad = False` sets an attribute that nobody reads, and so does
    `module.requires_grad = trainable`; what an object keeps of its own, its methods can read:
    `self.requires_grad = trainable`.
    """
    wanted = conditions.truth(m, call.args[0])
    if wanted:
        thaws_module(m, module, call)
    if wanted or (wanted is None and module is call.frame.receiver):
        return
    for _, tensor in named_parameters(m, module, call):
        if tensor.node.requires_grad:
            in_vain(m, tensor.node, flagged(wanted), call)


def thaws_module(m: Machine, module: Instance | Object, call: Call) -> None:
    """`module.requires_grad = True` of one that is frozen leaves it so: a fact
    `module-thawed-in-vain` of each of its parameters.
    """
    held = [tensor.node for _, tensor in named_parameters(m, module, call)]
    if not held or any(node.requires_grad for node in held) or module is call.frame.receiver:
        return
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    for node in held:
        m.emit(tape.Fact(at=at, what="module-thawed-in-vain", value=node, text=text))


def flagged(wanted: bool | None) -> str:
    """How a module is frozen in vain: for good, or where a flag is off."""
    return "module" if wanted is False else "flag"


@method("torch.Tensor", "__set_*__")
def set_attribute(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`tensor.name = value` of a name that torch does not know."""
    if is_misspelt(call.name):
        misspelt(m, tensor, call)
    tensor.attrs[call.name] = call.args[0]
    return call.args[0]


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
