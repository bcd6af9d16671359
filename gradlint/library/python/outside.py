"""Libraries that have nothing to do with autograd, as `libraries.toml` lists them: their results
carry no gradient.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlint.interpret.registry import attribute, fallback
from gradlint.interpret.values import Abstract, Call, Unknown
from gradlint.library.python import command_lines
from gradlint.library.python.results import last, same, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@functools.cache
def _facts() -> dict[str, Any]:
    with (Path(__file__).parent / "libraries.toml").open("rb") as stream:
        return tomllib.load(stream)


@functools.cache
def _packages() -> frozenset[str]:
    return frozenset(_facts()["packages"].split())


@functools.cache
def _changing() -> frozenset[str]:
    return frozenset(_facts()["changing"].split())


@functools.cache
def _fractions() -> frozenset[str]:
    return frozenset(_facts()["fractions"].split())


@functools.cache
def _results() -> dict[str, str]:
    return {name: kind for kind, names in _facts()["results"].items() for name in names.split()}


def result_type(name: str) -> str:
    """The type of what the function `name` gives; "" where it is not known."""
    return _results().get(name) or _results().get(name.partition(".")[0], "")


def is_outside(name: str) -> bool:
    """Whether what `name` gives never carries a gradient."""
    return name.partition(".")[0] in _packages()


@fallback
def outside(m: Machine, call: Call) -> Abstract | None:
    """What a function of such a library gives."""
    settings = command_lines.filled(m, call)
    if settings is not None:
        return settings
    if not is_outside(call.name):
        return None
    kind = result_type(call.name)
    made = same(m, call, call.name, call.values, kind)
    if call.name in _changing() or call.name.partition(".")[0] in _changing():
        made.symbol = m.unknown(text(call)).symbol
    if call.name in _fractions():  # `if random() < share`, where the share is 0 or 1
        m.oracle.facts.low[made.symbol.asked], m.oracle.facts.high[made.symbol.asked] = (
            (0.0, False),
            (1.0, True),
        )
    return made


def _value(name: str, kind: str) -> None:
    @attribute(name.rpartition(".")[0], last(name))
    def handler(m: Machine, receiver: Abstract, call: Call) -> Abstract:
        return Unknown(m.session.constant_symbol(name), data=True, type=kind)


for _kind, _names in _facts()["values"].items():
    for _name in _names.split():
        _value(_name, _kind)
