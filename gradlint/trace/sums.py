"""Losses by what computed them or by their name, and sums that keep the graphs of their terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.tape import Kind
from gradlint.trace.bindings import loss_name
from gradlint.trace.operations import Spec
from gradlint.trace.records import Op

if TYPE_CHECKING:
    from gradlint.trace.session import Session

_SUMS = frozenset({"add", "add_", "radd", "iadd"})
_MOST_SUMS = 200


class Sums:
    """Looks at each new value for a loss, and for a total over rounds."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._has_begun = False  # what may become a total over the steps

    def judge(self, judged: Spec, made: Op) -> None:
        """Write down a sum of losses, and a value that is a loss by what computed it or by its
        name.
        """
        if judged.name in _SUMS:
            self._summed(made)
        if made.requires_grad and made.kind is Kind.OPERATION and made.place:
            name = loss_name(made.place)
            for detail in [""] * judged.is_loss + [name] * bool(name):
                self.session.note("fact", made.place, what="loss", op=made, detail=detail)

    def _summed(self, made: Op) -> None:
        """A total, computed where what it is computed from was computed, keeps the graphs of all
        its terms.
        """
        if not made.place or self.session.sums > _MOST_SUMS:
            return
        terms = [
            each for each in _terms(made) if each.requires_grad and each.kind is Kind.OPERATION
        ]
        total = next((each for each in terms if _grows_into(each, made)), None)
        if total is None:
            self._perhaps_first(made, terms)
            return
        self.session.sums += 1
        for term in made.inputs:
            if term is not total and total not in term.inputs and term.requires_grad:
                self.session.note("kept", made.place, op=term, how="sum", total=total)

    def _perhaps_first(self, made: Op, terms: list[Op]) -> None:
        """A sum with what an earlier step computed is perhaps the first of a total: the next one is
        looked at, too.
        """
        if not self._has_begun and any(each.step < made.step for each in terms):
            self._has_begun = True
            self.session.attention.look_again()


def _terms(made: Op) -> tuple[Op, ...]:
    """What a sum is made of, and what carries a gradient there is scaled from:
    `decay * total + (1 - decay) * loss`.
    """
    return (
        *made.inputs,
        *(source for term in made.inputs if term.requires_grad for source in term.inputs),
    )


def _grows_into(total: Op, made: Op) -> bool:
    """Whether one statement computed both, in one call of its function or in those of two steps."""
    if not total.place:
        return False
    old, new = total.place[0], made.place[0]
    return old == new or (
        old.code is new.code and old.instruction == new.instruction and total.step < made.step
    )
