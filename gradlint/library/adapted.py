"""What is trained in a frozen model that is out of view: adapters, a new head, what code that is
given it puts there.

    unet.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=4))

The model is out of view, and so is what is put into it. From there on something in it may be
trained.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import on
from gradlint.interpret.storage import name_value
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Tensor, Unknown
from gradlint.ir import nodes as ir
from gradlint.library.holdings import parameters_in
from gradlint.library.structure import is_module, is_parameter
from gradlint.library.unknown import thaw

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_LEAVES_AS_IT_IS = re.compile(
    r"load_state_dict|(en|dis)able_|gradient_checkpointing_"
    r"|set_(grad_checkpointing|use_memory|attention_slice)"
)
_TRAINS = re.compile(r"adapter|lora|train|thaw|unfreeze")


@on("discarded")
def changed(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """`unet.add_adapter(config)` as a statement: a method out of view, called for what it does to
    the model.
    """
    if (
        isinstance(value, Unknown)
        and isinstance(node, ir.Call)
        and isinstance(node.function, ir.Attribute)
    ):
        called = value.symbol.twin.source if value.symbol.twin is not None else None
        is_told = bool(node.args or node.kwargs) and not _LEAVES_AS_IT_IS.match(node.function.name)
        if (
            called is not None
            and called.source is not None
            and (is_told or _TRAINS.search(node.function.name))
        ):
            thaw(m, called.source)


@on("unknown call")
def given(m: Machine, symbol: Symbol, call: Call) -> None:
    """`inject_lora(unet)`: code out of view is given the model."""
    for value in call.values:
        if isinstance(value, Unknown) and _is_frozen(m, value.symbol):
            thaw(m, value.symbol)


def _is_frozen(m: Machine, model: Symbol) -> bool:
    own = m.leaves.get(model)
    return own is not None and own.cut is tape.Cut.FROZEN


@on("put in")
def put_in(m: Machine, model: Unknown, at: Call) -> None:
    """`model.fc = nn.Linear(512, 10)`: a part of its own."""
    part = at.args[0]
    is_unknown = isinstance(part, Unknown) and part.type in ("", "module") and not part.data
    if is_unknown or is_module(part) or (isinstance(part, Tensor) and is_parameter(part)):
        thaw(m, model.symbol)


@on("put in")
def exchanged(m: Machine, owner: Unknown, at: Call) -> None:
    """`net.fc = nn.Linear(512, 10)` of a network out of view that has been asked for its `fc`: what
    comes in its place is trained by the calls of the network.
    """
    own = m.leaves.get(owner.symbol)
    if own is None or ("attribute", at.name) not in owner.symbol.derived:
        return
    name_value(m, at.args[0], at.frame.text(at.node))
    for tensor in parameters_in(m, at.args[0], at):
        m.emit(
            tape.Fact(
                at=at.frame.span(at.node),
                what="exchanged",
                value=tensor.node,
                source=own,
                detail=at.name,
            )
        )
