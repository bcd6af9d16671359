"""What Python computes with that came out of torch: numbers, lists and arrays."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

from gradlint.interpret.tensors import node_of, operation
from gradlint.interpret.values import (
    Abstract,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.tape import Cut, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


def is_no_tensor(m: Machine, value: Abstract) -> bool:
    """Whether this path knows that something unknown is no tensor, or a number made of such: `not
    isinstance(x, torch.Tensor)`. A copy of it loses no gradient."""
    if not isinstance(value, Unknown):
        return False
    symbol = value.symbol
    while symbol.key == ("copy",) and symbol.source is not None:
        symbol = symbol.source
    asked = (symbol, symbol.asked)
    denied = (
        key
        for key, holds in m.oracle.facts.truth.items()
        if not holds and key[1] == "isa" and key[0] in asked
    )
    return any("torch.Tensor" in _classes(cls) for *_, cls in denied)


def _classes(asked: object) -> tuple[object, ...]:
    """The names of the classes that `isinstance` was asked for; none of what is not known."""
    return asked if isinstance(asked, tuple) else (asked,) if isinstance(asked, str) else ()


def number(
    m: Machine, tensor: Abstract, op: str, node: ir.Node, frame: Frame, type: str = "number"
) -> Unknown:
    """A Python number (or list, or NumPy array) copied out of a tensor."""
    known = None if is_no_tensor(m, tensor) else node_of(m, tensor, node, frame)
    symbol = m.symbol(tensor).derive(("copy",), m.symbol(tensor).text)
    if type == "number":  # `count.item() > 0` is what `count > 0` is
        symbol.twin = m.symbol(tensor).asked
    if known is None:
        return Unknown(symbol, data=True, type=type)
    made = operation(m, op, [known], node, frame, cut=Cut.COPY, in_torch=False)
    made.dtype = known.dtype
    return Unknown(symbol, data=True, origin=made, type=type)


def python(m: Machine, op: str, args: Many[Abstract], node: ir.Node, frame: Frame) -> Value | None:
    """Arithmetic outside torch on what was copied out of it; None where nothing was."""
    origins = [arg.origin for arg in args if isinstance(arg, Unknown) and arg.origin is not None]
    return operation(m, op, origins, node, frame, in_torch=False) if origins else None
