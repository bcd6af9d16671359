"""What an operand stands for: a number for an unknown one, a tensor for a loader's batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import symbols, tensors
from gradlint.interpret.values import (
    Abstract,
    Const,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


def concrete(m: Machine, value: Abstract) -> Abstract:
    return m.concrete.get(value.symbol, value) if isinstance(value, Unknown) else value


def concretise(m: Machine, unknown: Unknown, number: Const) -> Const:
    """Takes an unknown number to be `number` from here on."""
    return m.concrete.setdefault(unknown.symbol, number)


def collated(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """What a loader has put together of samples, or a part is given as a tensor, as the tensor that
    it is.
    """
    return tensors.as_tensor(m, value, node, frame) if is_collated(m, value) else value


def is_collated(m: Machine, value: Abstract) -> bool:
    if (
        not isinstance(value, Unknown)
        or value.type not in ("", "tensor")
        or value.origin is not None
    ):
        return False
    is_given = bool(m.session.contract) and value.type == "tensor"
    return is_given or symbols.is_collated(m.symbol(value))
