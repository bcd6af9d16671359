"""Shares of a window: what is divided by the number that the window's iterations are counted by.

    loss = criterion(model(x), y) / accumulate
    if (step + 1) % accumulate == 0:

Each such quotient that is known when a round is counted is a fact `share-of-window`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Const, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# with the numbers, which are told apart by identity
_Shares = dict[Symbol | int, tuple[Abstract, list[tape.Value]]]


def made(m: Machine, op: str, quotient: tape.Value | None, number: Abstract) -> None:
    """Notes a quotient with gradient, and what it was divided by."""
    if quotient is None or op != "/" or not isinstance(number, Const | Unknown):
        return
    if m.loops and quotient.requires_grad:
        _, quotients = _known(m).setdefault(_identity(number), (number, []))
        quotients.append(quotient)


def counted(m: Machine, number: Abstract) -> None:
    """Writes down what was divided by the number that a round is counted by. The share of a window
    of one round is the whole.
    """
    if isinstance(number, Const) and number.value == 1:
        return
    if m.loops and isinstance(number, Const | Unknown):
        _, quotients = _known(m).get(_identity(number), (number, []))
        for quotient in quotients:
            m.emit(tape.Fact(at=quotient.at, what="share-of-window", value=quotient))
        quotients.clear()


def _known(m: Machine) -> _Shares:
    found: _Shares = m.state.setdefault("shares", {})
    return found


def _identity(number: Const | Unknown) -> Symbol | int:
    """What tells a number from one that is written elsewhere: a variable from a literal, and from
    another variable.
    """
    return number.symbol if isinstance(number, Unknown) else id(number)
