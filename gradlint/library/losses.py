"""Losses: each value with a gradient that a loss function gives, or that a variable called a loss is bound to.

Each is a fact `loss` on the tape; its `detail` is the name of the variable, or empty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import hears
from gradlint.interpret.values import Abstract, Tensor, Unknown
from gradlint.library.effects import is_loss_function
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_NAMED = re.compile(r"loss|(?:^|_)(?:nll|kld?|elbo|penalty|reg|regulari[sz](?:er|ation))(?:_|\d|$)", re.IGNORECASE)


def names_loss(name: str) -> bool:
    """Whether a variable's name says that it is a loss."""
    return _NAMED.search(name) is not None


def computed(m: Machine, op: str, value: Value, text: str) -> None:
    """Takes down what a loss function gives."""
    if value.records and is_loss_function(op):
        m.emit(tape.Fact(at=value.at, what="loss", value=value, text=text))


@hears("bound")
def named(m: Machine, name: str, bound: Abstract) -> None:
    """Takes down what a variable is bound to whose name says that it is a loss."""
    value = m.nodes.get(bound.symbol) if isinstance(bound, Unknown) else None
    if isinstance(bound, Tensor):
        value = bound.node
    if value is not None and value.records and names_loss(name):
        m.emit(tape.Fact(at=value.at, what="loss", value=value, detail=name, text=value.text))
