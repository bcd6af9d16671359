"""The module weakref: what is referred to is taken to be alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Builtin, Call
from gradlint.library.python.results import argument

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("weakref.WeakKeyDictionary", "builtins.dict")
alias("weakref.WeakValueDictionary", "builtins.dict")
alias("weakref.WeakSet", "builtins.set")


@function("weakref.ref", "weakref.ReferenceType", "weakref.WeakMethod")
def reference(m: Machine, call: Call) -> Abstract:
    """`ref(x)`: called, it gives `x`."""
    referent = argument(m, call)
    return Builtin("weakref.ref", lambda _machine, _call: referent, receiver=referent)


@function("weakref.proxy")
def proxy(m: Machine, call: Call) -> Abstract:
    """`proxy(x)`: stands for `x` in all that is done with it."""
    return argument(m, call)
