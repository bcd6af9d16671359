"""Environment variables: settings that the user has not made, on the first path.

if "USE_FUSED" in os.environ: …                  # taken on another path
rank = int(os.environ.get("RANK", -1))           # -1 on the first
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import attribute, function
from gradlint.interpret.values import NONE, Abstract, Call, Const, Unknown
from gradlint.library.python.results import argument, fresh, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_NOT_SET = Const(frozenset())  # no variable is


@attribute("os", "environ")
def environ(m: Machine, package: Abstract, at: Call) -> Abstract:
    """All variables, of which none that is asked for is set on the first path."""
    symbol = m.session.constant_symbol("os.environ")
    m.state.setdefault("options", {})[symbol] = None, _NOT_SET
    return Unknown(symbol, data=True, type="object")


@function("os.environ.get", "os.getenv")
def get(m: Machine, call: Call) -> Abstract:
    """What a variable is, or what the program takes where it is not set."""
    name, default = argument(m, call), call.get(1, "default") or NONE
    if not isinstance(name, Const) or not isinstance(default, Const):
        return fresh(m, call, "str")
    symbol = m.session.constant_symbol("os.environ").derive((name.value, default.value), text(call))
    m.state.setdefault("options", {})[symbol] = None, default
    return Unknown(symbol, data=True, type="str" if isinstance(default.value, str) else "")
