"""Numbers that torch names: they carry no gradient, whatever is made of them."""

from __future__ import annotations

import math

from gradlint.interpret.machine import Machine
from gradlint.interpret.registry import attribute
from gradlint.interpret.values import Abstract, Call, Const

_NUMBERS = {"e": math.e, "inf": math.inf, "nan": math.nan, "pi": math.pi}


def _constant(name: str, number: float) -> None:
    @attribute("torch", name)
    def handler(m: Machine, package: Abstract, at: Call) -> Abstract:
        return Const(number)


for _name, _number in _NUMBERS.items():
    _constant(_name, _number)
