"""`torchvision.transforms`: what is made of an image carries no gradient; what is made of a tensor,
what that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import tensors
from gradlint.interpret.registry import fallback, method, notify
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import Abstract, Call, Object

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_TRANSFORMS = "torchvision.transforms"


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """A transform, `ToTensor()`, or what one that is a function makes of an image."""
    if not call.name.startswith(f"{_TRANSFORMS}."):
        return None
    if call.name.rpartition(".")[2][:1].isupper():
        return Object(_TRANSFORMS, call.frame.span(call.node))
    return _apply(m, m.session.library_symbol(call.name), call)


@method(_TRANSFORMS, "__call__", "forward")
def transform(m: Machine, made: Object, call: Call) -> Abstract:
    return _apply(m, m.symbol(made), call)


def _apply(m: Machine, symbol: Symbol, call: Call) -> Abstract:
    inputs = tensors.sources(m, call.values, call.node, call.frame)
    if any(source.requires_grad for source in inputs):
        return call_unknown(m, symbol, call)
    notify("data call", m, symbol, call)
    return m.unknown(call.frame.text(call.node), data=True)
