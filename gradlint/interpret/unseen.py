"""Modules that are made out of view, and what is known of them: what they are a part of, and what
they are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Instance, Object, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def module(m: Machine, symbol: Symbol) -> tape.Module:
    """The module that something unknown is: of an attribute, a part of its owner."""
    known = m.session.modules.get(symbol)
    if known is None:
        owner = symbol.source if symbol.is_attribute else None
        parent = None if owner is None else module(m, owner)
        known = m.session.modules[symbol] = tape.Module(symbol.text, parent, unseen=True)
    return known


def note_making(m: Machine, result: Symbol, called: Symbol, call: Call) -> None:
    """Notes of which modules code out of view may have made the result of a call: `wrap(model)`,
    `model.get_base()`.
    """
    given = [known for value in call.values if (known := _given(m, value)) is not None]
    if called.is_attribute and called.source is not None:
        given.append(module(m, called.source))
    if given:
        made = tape.Module(result.text, unseen=True, made_of=tuple(given))
        m.session.modules[result] = made


def _given(m: Machine, value: Abstract) -> tape.Module | None:
    match value:
        case Instance() | Object():
            return value.module
        case Unknown() if not value.data and value.symbol not in m.tensors:
            return module(m, value.symbol)
    return None
