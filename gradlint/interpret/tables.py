"""The tables that say how each kind of node and of value is handled; the modules of the interpreter
fill them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradlint.interpret.values import Abstract

Visit = Callable[[Abstract], bool]  # what a loop does with an item; True: it wants no more


EVALUATE: dict[type, Callable[..., Abstract]] = {}
EXECUTE: dict[type, Callable[..., Any]] = {}
CALL: dict[type, Callable[..., Abstract]] = {}
ATTRIBUTE: dict[type, Callable[..., Abstract | None]] = {}
ITERATE: dict[type, Callable[..., None]] = {}


Handler = TypeVar("Handler", bound=Callable[..., Any])


def handles(table: dict[type, Any], *kinds: type) -> Callable[[Handler], Handler]:
    """Registers how a table's question is answered for these kinds of thing; refuses duplicates."""

    def register(function: Handler) -> Handler:
        for kind in kinds:
            if kind in table:
                raise ValueError(f"{kind.__name__} is handled twice")
            table[kind] = function
        return function

    return register
