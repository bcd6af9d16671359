"""The length of a training loop or window that is not known: that of its option's default, or a
small number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import estimates
from gradlint.interpret.conditions import SMALL
from gradlint.interpret.operands import concretise
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import Const, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def window(m: Machine, unknown: Unknown) -> Const:
    """Takes an unknown number of rounds to be its flag's default, or else small, and the loop to
    leave a remainder.
    """
    # this path has asked already
    if m.oracle.facts.known(Test(unknown.symbol.asked, ">", 1)) is False:
        return concretise(m, unknown, Const(1))
    known = _default(m, unknown)
    number = m.concrete.setdefault(unknown.symbol, known or Const(SMALL))
    if known is None and unknown.symbol not in m.state.get("lengths", ()):
        m.session.loops.guess(m)
    m.session.loops.counted(m, number)
    return number


def _default(m: Machine, unknown: Unknown) -> Const | None:
    """What the defaults of command-line flags come to, if that is more than one; a small number for
    a large one.
    """
    number = estimates.by_default(m, unknown.symbol)
    if number is None or number < 2:
        return None
    smaller = m.session.loops.periods.smaller.get(number)
    return Const(number) if smaller is None else Const(smaller, None, number)


def is_length(m: Machine, unknown: Unknown) -> bool:
    """Whether an unknown number is a length, met in a training loop: that is taken to have as many
    rounds.
    """
    # a driver's rounds say nothing of lengths
    takes_batches = m.session.loops.takes_batches(m) and not m.session.contract
    return takes_batches and unknown.symbol in m.state.get("lengths", ())


def length(m: Machine, unknown: Unknown) -> Const:
    """The length that something is taken to have in a training loop."""
    known = m.state["lengths"][unknown.symbol]
    if not isinstance(known, int):
        return Const(m.session.loops.batches)
    return Const(m.session.loops.shown(known, m.loops[-1]), None, known)
