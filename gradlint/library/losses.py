"""Losses: each value with a gradient that a loss function gives, or that a variable called a loss is bound to.

Each is a fact `loss` on the tape; its `detail` is the name of the variable, or empty.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from gradlint import names, tape
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import hears
from gradlint.interpret.values import Abstract, Call, Const, Object, Tensor, Unknown
from gradlint.library.effects import is_loss_function
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_WORDS = frozenset(
    [
        "losses",
        "nll",
        "kl",
        "kld",
        "elbo",
        "penalty",
        "penalties",
        "regularizer",
        "regulariser",
        "regularization",
        "regularisation",
    ]
)
_LOSS = re.compile(r"(?!gloss|floss)\w*loss")  # `celoss`
_OF_A_LOSS = frozenset(["weight", "weights", "mask", "masks", "coef", "fn", "function", "layer", "head", "scale"])


@functools.lru_cache(maxsize=4096)
def names_loss(name: str) -> bool:
    """Whether a variable's name says that it is a loss."""
    words = names.words(name)
    says = any(word in _WORDS or _LOSS.fullmatch(word) for word in words)
    return says and words[-1] not in _OF_A_LOSS


def refuses(m: Machine, op: str, call: Call) -> None:
    """Raises where a loss function is to compare a Python number, as all of them do (torch 2.13): `logits = 0`, to
    which nothing was added."""
    given = call.get(0, "input")
    if isinstance(given, Const) and type(given.value) in (int, float) and is_loss_function(op):
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.TypeError", at), at)


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
