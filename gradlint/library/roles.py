"""What something unknown is taken for where it steps: an optimizer, a scheduler or a GradScaler, by
use or by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import evidence, tape
from gradlint.evidence import Role
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Instance, Object, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def role(m: Machine, unknown: Unknown, call: Call) -> Role:
    """What something unknown is in a call of its method: what it was used as; else what it is
    called there.
    """
    return (
        _used_as(m, unknown)
        or evidence.role(call.name.rpartition(".")[0])
        or evidence.role(_name(unknown.symbol))
    )


def looks_like_optimizer(m: Machine, value: Abstract) -> bool:
    """Whether a value is an optimizer, or something unknown that is used or named like one."""
    if isinstance(value, Object | Instance):
        return isinstance(value.state.get("handle"), tape.Optimizer)
    return (
        isinstance(value, Unknown)
        and (_used_as(m, value) or evidence.role(_name(value.symbol))) == "optimizer"
    )


def _name(symbol: Symbol) -> str:
    """How the program calls it: what comes out of a dict has its key as a name."""
    match symbol.key:
        case ("item", str(key)):
            return key
    return symbol.text


def _used_as(m: Machine, unknown: Unknown) -> Role:
    if unknown.symbol in m.state.get("unknown-scalers", {}):
        return "scaler"
    return "optimizer" if unknown.symbol in m.state.get("unknown-optimizers", {}) else ""
