"""Constants of torch, `torch.pi`, and questions that training answers one way:
`torch.jit.is_scripting()`.
"""

from __future__ import annotations

import math

from gradlint.interpret.machine import Machine
from gradlint.interpret.registry import attribute, function
from gradlint.interpret.values import FALSE, Abstract, Call, Const

_NUMBERS = {"e": math.e, "inf": math.inf, "nan": math.nan, "pi": math.pi}


def _constant(name: str, number: float) -> None:
    @attribute("torch", name)
    def handler(m: Machine, package: Abstract, at: Call) -> Abstract:
        return Const(number)


for _name, _number in _NUMBERS.items():
    _constant(_name, _number)


@function("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.onnx.is_in_onnx_export")
def elsewhere(m: Machine, call: Call) -> Abstract:
    """Python does not run what is scripted, and what is traced or exported does not train."""
    return FALSE
