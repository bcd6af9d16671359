"""Python's exceptions, and the ways to end the program."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from gradlint.interpret.lineage import parent
from gradlint.interpret.machine import Stop
from gradlint.interpret.registry import FUNCTIONS, attribute, function
from gradlint.interpret.values import Abstract, Call, Object, Sequence
from gradlint.library.python.results import place

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def exception(m: Machine, call: Call, name: str) -> Abstract:
    """`ValueError("…")`."""
    return Object(name, place(call), attrs={"args": Sequence("tuple", list(call.args))})


def _register(cls: type[BaseException]) -> None:
    name = f"builtins.{cls.__name__}"
    if name in FUNCTIONS or cls.__module__ != "builtins":
        return
    function(name)(lambda m, call: exception(m, call, name))
    base = cls.__mro__[1]
    if issubclass(base, BaseException):
        parent(name, f"builtins.{base.__name__}")


for _found in list(vars(builtins).values()):
    if isinstance(_found, type) and issubclass(_found, BaseException):
        _register(_found)


@attribute("builtins.BaseException", "__traceback__", "__cause__")
def trace(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Where an exception came from."""
    return m.unknown("traceback", data=True, type="object")


@function("sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort")
def leave(m: Machine, call: Call) -> Abstract:
    """Ends the program."""
    raise Stop
