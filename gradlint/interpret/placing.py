"""What is taken down where a value gets a place: for the branch around it, and what is put away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.scopes import Frame
from gradlint.interpret.summary import summary
from gradlint.interpret.values import (
    Abstract,
    Tensor,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def note(m: Machine, what: str, name: str, value: Abstract) -> None:
    """Writes down that a value was put somewhere, where a branch has to know."""
    if m.journal is not None:
        m.journal.append((what, name, summary(value)))


def put_away(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """Takes down that a value lies where who takes it out is not seen: under an unknown key, in a
    cell's output.
    """
    if isinstance(value, Tensor) and value.node.requires_grad:
        m.emit(
            tape.Fact(at=frame.span(node), what="put-away", value=value.node, text=frame.text(node))
        )
