"""Losses: each value with a gradient that a loss function gives, or that a variable called a loss
is bound to.

Each is a fact `loss` on the tape; its `detail` is the name of the variable, or empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import evidence, tape
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import on
from gradlint.interpret.values import Abstract, Call, Const, Object, Tensor, Unknown
from gradlint.library.layer_effects import is_loss_function
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def refuses(m: Machine, op: str, call: Call) -> None:
    """Raises where a loss function is to compare a Python number, as all of them do (torch 2.13):
    `logits = 0`, to which nothing was added.
    """
    given = call.get(0, "input")
    if isinstance(given, Const) and type(given.value) in (int, float) and is_loss_function(op):
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.TypeError", at), at)


def computed(m: Machine, op: str, value: Value, text: str) -> None:
    """Takes down what a loss function gives."""
    if value.records and is_loss_function(op):
        m.emit(tape.Fact(at=value.at, what="loss", value=value, text=text))


@on("bound")
def named(m: Machine, name: str, bound: Abstract) -> None:
    """Takes down what a variable is bound to whose name says that it is a loss."""
    value = m.nodes.get(bound.symbol) if isinstance(bound, Unknown) else None
    if isinstance(bound, Tensor):
        value = bound.node
    if value is not None and value.records and evidence.is_loss_variable(name):
        m.emit(tape.Fact(at=value.at, what="loss", value=value, detail=name, text=value.text))
