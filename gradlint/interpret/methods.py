"""Methods of the library's model, bound to their receivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import (
    MethodHandler,
    find_method,
)  # fmt: skip
from gradlint.interpret.values import (
    Abstract,
    Builtin,
    Call,
)  # fmt: skip

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def method(receiver: Abstract, cls: str, name: str) -> Builtin | None:
    """A method of the library's model, bound to its receiver; it is told its own name, whoever
    calls it.
    """
    handler = find_method(cls, name)
    return None if handler is None else _bound(handler, receiver, cls, name)


def _bound(handler: MethodHandler, receiver: Abstract, cls: str, name: str) -> Builtin:
    def run(m: Machine, call: Call) -> Abstract:
        call.name = name
        return handler(m, receiver, call)

    return Builtin(f"{cls}.{name}", run, receiver=receiver)


def any_method(m: Machine, receiver: Abstract, cls: str, name: str) -> Abstract | None:
    """A method that only the class's catch-all knows (`torch.Tensor.*`)."""
    handler = find_method(cls, "*")
    return (
        None if handler is None or name.startswith("__") else _bound(handler, receiver, cls, name)
    )
