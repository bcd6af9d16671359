"""Items and attributes of unknown values, which carry the gradient that the whole carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import defaults, tensors
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Unknown
from gradlint.ir import nodes as ir
from gradlint.tape import Kind, Storage

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


def derived(
    m: Machine, base: Unknown, how: str, key: object, node: ir.Node, frame: Frame
) -> Unknown:
    """A part of something unknown: an item or attribute, which carries the gradient that the whole
    carries.
    """
    symbol = base.symbol.derive((how, key), frame.text(node))
    override = m.override(base.symbol, how, key)
    if isinstance(override, Unknown):
        return override
    is_data = base.data and not _is_made_of_what_it_keeps(m, base.symbol)
    result = Unknown(symbol, data=is_data, type="array" if base.type == "array" else "")
    origin = base.origin
    if origin is not None:
        result.origin = origin
    elif (
        base.symbol in m.nodes
        and symbol not in m.nodes
        and not (how == "attribute" and _is_module(m, base.symbol))
    ):
        whole = m.nodes[base.symbol]
        if whole.kind not in (Kind.UNKNOWN, Kind.DATA):
            # Taking a part is no operation: grad mode has no say in it, and it has been there as
            # long as the whole.
            part = tensors.value(
                m, "part", Kind.OPERATION, [whole], node, frame, assumed=whole.assumed
            )
            part.requires_grad, part.iteration = whole.requires_grad, whole.iteration
            part.inference, part.inference_at = whole.inference, whole.inference_at
            part.cut_at, part.cut_stack = whole.cut_at, whole.cut_stack
            part.storage = Storage()
            m.nodes[symbol] = part
    if how == "item":
        defaults.note_item(m, base, key, result)
    return result


def _is_module(m: Machine, symbol: Symbol) -> bool:
    """Whether its parameters or those of an item were asked for: a call that gave a module computed
    nothing.
    """
    own = m.leaves.get(symbol)
    if own is not None:
        return own.parameter in m.parameters
    asked = (part for part, leaf in m.leaves.items() if leaf.parameter in m.parameters)
    return any(part.source is symbol and _is_item(part.key) for part in asked)


def _is_item(key: object) -> bool:
    return isinstance(key, tuple) and key[0] == "item"


def _is_made_of_what_it_keeps(m: Machine, symbol: Symbol) -> bool:
    """Whether it is a part of what has computed with the values that it was given to keep."""
    made: set[Symbol] | None = m.state.get("made of what it keeps")
    part: Symbol | None = symbol if made else None
    while made and part is not None and part not in made:
        part = part.source
    return part is not None
