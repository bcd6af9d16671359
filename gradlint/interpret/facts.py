"""What the decisions of a path have made true of symbols: intervals, constants, answers.

if epochs > 3: …     # behind it, on the one side: 3 < epochs
    if epochs == 2:  # known to be false there
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from gradlint.dataclass import dataclass
from gradlint.interpret.symbols import Symbol, Test


class Facts:
    """What the decisions of a path have made true of symbols."""

    def __init__(self) -> None:
        self.truth: dict[tuple[Symbol, str, object], bool] = {}
        # the same, by what was asked about
        self.answers: dict[Symbol, dict[tuple[str, object], bool]] = {}
        self.equal: dict[Symbol, object] = {}
        self.low: dict[Symbol, tuple[float, bool]] = {}
        self.high: dict[Symbol, tuple[float, bool]] = {}
        # the sums with a lower bound that it is a term of, each with the other term
        self.sums: dict[Symbol, list[tuple[Symbol, Symbol]]] = {}
        self.among: dict[Symbol, frozenset[object]] = {}  # one of these it is: `x in ("a", "b")`
        self.barred: dict[Symbol, frozenset[object]] = {}  # none of these
        # what it can be, and others together with it
        self.rows: dict[Symbol, list[dict[Symbol, object]]] = {}

    def one_of(self, rows: list[dict[Symbol, object]]) -> None:
        """Takes these symbols to be what one of the rows says."""
        for symbol in rows[0]:
            self.rows[symbol] = rows

    def known(self, test: Test) -> bool | None:
        """Whether what is known decides the test."""
        answer = self._known(test.subject, test.relation, test.operand)
        return None if answer is None else answer != test.negated

    def _known(self, subject: Symbol, relation: str, operand: object) -> bool | None:
        key = (subject, relation, operand)
        if key in self.truth:
            return self.truth[key]
        if subject in self.equal:
            answer = answer_of(self.equal[subject], relation, operand)
            if answer is not None:
                return answer
        if relation == "is" and operand is None and self._known_true(subject):
            return False
        if relation == "true" and self.truth.get((subject, "is", None)):
            return False
        said = {answer_of(row[subject], relation, operand) for row in self.rows.get(subject, ())}
        if len(said) == 1:
            return said.pop()
        one_of = self._one_of(subject, relation, operand)
        if one_of is not None:
            return one_of
        if relation in ("<", "<=", ">", ">=", "==", "true") and (
            relation == "true" or isinstance(operand, int | float)
        ):
            return self._interval(subject, relation, 0 if relation == "true" else operand)
        return None

    def _one_of(self, subject: Symbol, relation: str, operand: object) -> bool | None:
        """What the constants that it can still be, and those that it cannot be, say to a
        question.
        """
        barred = self.barred.get(subject, frozenset())
        if subject in self.among:
            answers = {
                answer_of(constant, relation, operand) for constant in self.among[subject] - barred
            }
            if len(answers) == 1:
                return answers.pop()
        asked = (operand,) if relation == "==" else operand if relation == "in" else None
        return False if isinstance(asked, tuple) and barred.issuperset(asked) else None

    def _known_true(self, subject: Symbol) -> bool:
        return (
            bool(self.truth.get((subject, "true", None)))
            or subject in self.low
            or subject in self.high
        )

    def _interval(self, subject: Symbol, relation: str, operand: object) -> bool | None:
        """What the bounds on a number say of how it compares with another."""
        assert isinstance(operand, int | float)
        low, low_open = self._low(subject)
        high, high_open = self.high.get(subject, (float("inf"), True))
        # the number is below, at most, above, at least what it is compared with: for sure
        at_most, at_least = high <= operand, low >= operand
        below = high < operand or (at_most and high_open)
        above = low > operand or (at_least and low_open)
        is_it = low == high == operand and not (low_open or high_open)
        yes, no = {
            "<": (below, at_least),
            "<=": (at_most, above),
            ">": (above, at_most),
            ">=": (at_least, below),
            "true": (below or above, is_it),
        }.get(relation, (is_it, below or above))
        return True if yes else False if no else None

    def _low(self, subject: Symbol) -> tuple[float, bool]:
        """A lower bound of a number, and whether it is open: its own, or that of a sum whose other
        term is bounded from above (`a > 0` where `a + b > 0` and not `b > 0`).
        """
        bounds = [self.low.get(subject, (float("-inf"), True))]
        for whole, other in self.sums.get(subject, ()):
            low, low_open = self.low[whole]
            high, high_open = self.high.get(other, (float("inf"), True))
            bounds.append((low - high, low_open or high_open))
        return max(bounds)

    def learn(self, test: Test, answer: bool) -> None:
        """Takes the test to have come out so."""
        holds = answer != test.negated
        self.truth[test.subject, test.relation, test.operand] = holds
        self.answers.setdefault(test.subject, {})[test.relation, test.operand] = holds
        if (rows := self.rows.get(test.subject)) is not None:
            rows[:] = [
                row
                for row in rows
                if answer_of(row[test.subject], test.relation, test.operand) in (holds, None)
            ]
        match test.relation, holds:
            case "==", True:
                self.equal[test.subject] = test.operand
            case "==", False:
                self.barred[test.subject] = self.barred.get(test.subject, frozenset()) | {
                    test.operand
                }
            case "in", True if isinstance(test.operand, tuple):
                some = frozenset(test.operand)
                self.among[test.subject] = self.among.get(test.subject, some) & some
            case "in", False if isinstance(test.operand, tuple):
                self.barred[test.subject] = self.barred.get(test.subject, frozenset()) | frozenset(
                    test.operand
                )
            case ("<", True) | (">=", False):
                self._lower_high(test, True)
            case ("<=", True) | (">", False):
                self._lower_high(test, False)
            case (">", True) | ("<=", False):
                self._raise_low(test, True)
            case (">=", True) | ("<", False):
                self._raise_low(test, False)

    def bind(self, symbol: Symbol, number: float) -> None:
        """Has a number be known where it is compared, and nowhere else: rounds are not counted by
        it.
        """
        self.low[symbol.asked] = self.high[symbol.asked] = (number, False)

    def number(self, symbol: Symbol) -> float | None:
        """The number that a symbol is bound to, or that its bounds leave."""
        low, high = self.low.get(symbol.asked), self.high.get(symbol.asked)
        return None if low is None or low != high or low[1] else low[0]

    def allows(self, subject: Symbol, value: object) -> bool:
        """Whether a symbol can be this constant, for all that was answered about it."""
        answers = (
            (holds, answer_of(value, *asked))
            for asked, holds in self.answers.get(subject, {}).items()
        )
        return all(said in (holds, None) for holds, said in answers)

    def any_of(self, count: Symbol) -> Test:
        """What `mask.any()` asks of the sum of a mask, which is never below zero."""
        self.learn(Test(count, ">=", 0), True)
        return Test(count, ">", 0)

    def _lower_high(self, test: Test, is_open: bool) -> None:
        if isinstance(test.operand, int | float):
            self.high[test.subject] = min(
                self.high.get(test.subject, (float("inf"), True)), (test.operand, is_open)
            )

    def _raise_low(self, test: Test, is_open: bool) -> None:
        if isinstance(test.operand, int | float):
            self.low[test.subject] = max(
                self.low.get(test.subject, (float("-inf"), True)), (test.operand, is_open)
            )
            match test.subject.source, test.subject.key:
                case Symbol() as one, ("+", Symbol() as other, bool()):
                    self.sums.setdefault(one, []).append((test.subject, other))
                    self.sums.setdefault(other, []).append((test.subject, one))


@dataclass(eq=False, slots=True)
class Member:
    """A member of an enum, among all those that are written down."""

    symbol: Symbol
    members: AbstractSet[Symbol]


def answer_of(value: object, relation: str, operand: object) -> bool | None:
    """What a constant answers to a question; None where it cannot be asked."""
    if isinstance(value, Member):
        is_asked = relation in ("is symbol", "== symbol") and operand in value.members
        return value.symbol is operand if is_asked else None
    if relation == "true":
        return bool(value)
    if relation == "is":
        return value is operand
    if relation == "==":
        return value == operand
    if relation == "in" and isinstance(value, frozenset):
        return operand in value
    if relation == "in" and isinstance(operand, tuple):
        return value in operand
    if isinstance(value, int | float) and isinstance(operand, int | float):
        return {
            "<": value < operand,
            "<=": value <= operand,
            ">": value > operand,
            ">=": value >= operand,
        }.get(relation)
    return None
