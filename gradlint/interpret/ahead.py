"""Rounds that a loop over many numbers would not show, and that a branch asks for:
`if epoch == 5: unfreeze(model)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret.values import Const

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Branch


@dataclass(frozen=True, slots=True)
class Turn:
    """What a number is that was computed from that of a round: `(round + offset) % modulus`, where
    there is one.
    """

    loop: Loop
    offset: int = 0
    modulus: int = 0

    def asked(self, number: int) -> int | None:
        """A round in which it comes to `number`, where the loop has one and does not show it."""
        rounds = self.loop.numbers
        if not self.modulus:
            rounds = (
                rounds[rounds.index(sought) :][:1]
                if (sought := number - self.offset) in rounds
                else rounds[:0]
            )
        shown = (self._of(each) for each in self.loop.shown)
        found = (each for each in rounds[: self.modulus or 1] if self._of(each) == number)
        return None if number in shown else next(found, None)

    def _of(self, number: int) -> int:
        return (number + self.offset) % self.modulus if self.modulus else number + self.offset


def note(m: Machine, number: Const, turn: Turn) -> Const:
    """Notes what a number is."""
    m.state.setdefault("turns", {})[id(number)] = number, turn
    return number


def computed(m: Machine, op: str, left: Const, right: Const, made: Const) -> Const:
    """Notes what is computed from the number of a round: `epoch + 1`, `epoch % 5`."""
    turn = _turn(m, left)
    if turn is None or turn.modulus or type(right.value) is not int or op not in "+-%":
        return made
    if op == "%":
        return note(m, made, Turn(turn.loop, turn.offset, right.value)) if right.value > 0 else made
    return note(
        m, made, Turn(turn.loop, turn.offset + (right.value if op == "+" else -right.value))
    )


def ask(m: Machine, left: Const, numbers: Iterable[object]) -> None:
    """Notes that a number is held against others, one of which it may be in a round that the loop
    does not show.
    """
    turn = _turn(m, left)
    asked = (
        (turn.asked(number) for number in numbers if type(number) is int)
        if turn is not None
        else ()
    )
    number = next((number for number in asked if number is not None), None)
    if turn is not None and number is not None:
        m.branch.ahead.append((turn.loop, number))


def show(m: Machine, branch: Branch) -> None:
    """Has the rounds shown in which a branch goes the other way."""
    for loop, number in branch.ahead:
        if loop.node is not None:
            m.session.loops.look_ahead(loop.node, number)


def _turn(m: Machine, number: Const) -> Turn | None:
    known: tuple[Const, Turn] | None = m.state.get("turns", {}).get(id(number))
    return None if known is None else known[1]
