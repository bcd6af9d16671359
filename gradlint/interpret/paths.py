"""Which paths are run: every entry from its start again and again, each time with other answers at its branches.

A *plan* says which way each branch site goes; a site not in it goes its default way. The first path takes the defaults;
then each site is turned round on its own; then, over the sites that were seen to matter (their sides do not leave the
same behind), combinations; then single rounds of loops. `BUDGET` bounds the paths of an entry: sides not yet taken come
first, so that each side is taken at least once where the budget allows.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.interpret.values import Symbol, Test

BUDGET = 40  # paths of one entry
FULL = 4  # up to this many sites that matter, all combinations are run

Site = object  # the IR node of a branch
Choice = tuple[Site, int | None]  # a site in all its rounds, or in its n-th visit
Plan = frozenset[tuple[Choice, bool]]


@dataclass(slots=True)
class Visited:
    """What the runs so far have shown of one branch site."""

    default: bool
    sides: set[bool] = field(default_factory=set)
    left: dict[bool, set[object]] = field(default_factory=lambda: {True: set(), False: set()})
    visits: int = 0

    @property
    def matters(self) -> bool:
        return len(self.sides) < 2 or not self.left[True] or self.left[True] != self.left[False]


class Facts:
    """What the decisions of a path have made true of symbols."""

    def __init__(self) -> None:
        self.truth: dict[tuple[Symbol, str, object], bool] = {}
        self.equal: dict[Symbol, object] = {}
        self.low: dict[Symbol, tuple[float, bool]] = {}
        self.high: dict[Symbol, tuple[float, bool]] = {}

    def known(self, test: Test) -> bool | None:
        """Whether what is known decides the test."""
        answer = self._known(test.subject, test.relation, test.operand)
        return None if answer is None else answer != test.negated

    def _known(self, subject: Symbol, relation: str, operand: object) -> bool | None:
        key = (subject, relation, operand)
        if key in self.truth:
            return self.truth[key]
        if subject in self.equal:
            answer = _decide(self.equal[subject], relation, operand)
            if answer is not None:
                return answer
        if relation == "is" and operand is None and self._known_true(subject):
            return False
        if relation == "true" and self.truth.get((subject, "is", None)):
            return False
        if relation in ("<", "<=", ">", ">=", "==", "true") and (
            relation == "true" or isinstance(operand, int | float)
        ):
            return self._interval(subject, relation, 0 if relation == "true" else operand)
        return None

    def _known_true(self, subject: Symbol) -> bool:
        return bool(self.truth.get((subject, "true", None))) or subject in self.low or subject in self.high

    def _interval(self, subject: Symbol, relation: str, operand: object) -> bool | None:
        assert isinstance(operand, int | float)
        low, low_open = self.low.get(subject, (float("-inf"), True))
        high, high_open = self.high.get(subject, (float("inf"), True))
        below = high < operand or (high == operand and high_open)  # subject < operand for sure
        above = low > operand or (low == operand and low_open)
        match relation:
            case "<":
                return True if below else False if above or low == operand else None
            case "<=":
                return True if below or high == operand else False if above else None
            case ">":
                return True if above else False if below or high == operand else None
            case ">=":
                return True if above or low == operand else False if below else None
            case "true":
                return True if below or above else None
        return False if below or above else None

    def learn(self, test: Test, answer: bool) -> None:
        """Takes the test to have come out so."""
        holds = answer != test.negated
        self.truth[test.subject, test.relation, test.operand] = holds
        match test.relation, holds:
            case "==", True:
                self.equal[test.subject] = test.operand
            case ("<", True) | (">=", False):
                self._lower_high(test, True)
            case ("<=", True) | (">", False):
                self._lower_high(test, False)
            case (">", True) | ("<=", False):
                self._raise_low(test, True)
            case (">=", True) | ("<", False):
                self._raise_low(test, False)

    def _lower_high(self, test: Test, is_open: bool) -> None:
        if isinstance(test.operand, int | float):
            self.high[test.subject] = min(self.high.get(test.subject, (float("inf"), True)), (test.operand, is_open))

    def _raise_low(self, test: Test, is_open: bool) -> None:
        if isinstance(test.operand, int | float):
            self.low[test.subject] = max(self.low.get(test.subject, (float("-inf"), True)), (test.operand, is_open))


def _decide(value: object, relation: str, operand: object) -> bool | None:
    if relation == "true":
        return bool(value)
    if relation == "is":
        return value is operand
    if relation == "==":
        return value == operand
    if isinstance(value, int | float) and isinstance(operand, int | float):
        return {"<": value < operand, "<=": value <= operand, ">": value > operand, ">=": value >= operand}.get(
            relation
        )
    return None


class Oracle:
    """Answers the branches of one run by its plan, and writes down what was asked."""

    def __init__(self, plan: Plan, visited: dict[Site, Visited]) -> None:
        self.plan = dict(plan)
        self.visited = visited
        self.facts = Facts()
        self.taken: dict[Choice, bool] = {}
        self.visits: dict[Site, int] = {}
        self.decisions: list[tape.Decision] = []

    def decide(self, site: Site, test: Test, default: bool) -> tuple[bool, bool]:
        """The way that a branch goes, and whether it was free to go either way."""
        known = self.facts.known(test)
        if known is not None:
            return known, False
        visit = self.visits[site] = self.visits.get(site, 0) + 1
        seen = self.visited.setdefault(site, Visited(default))
        seen.visits = max(seen.visits, visit)
        answer = self.plan.get((site, visit), self.plan.get((site, None), default))
        seen.sides.add(answer)
        self.taken.setdefault((site, None), self.plan.get((site, None), default))
        self.facts.learn(test, answer)
        return answer, True

    def leave(self, site: Site, side: bool, journal: list[tuple[object, ...]]) -> None:
        """Takes down what a side of a branch left behind."""
        seen = self.visited.get(site)
        if seen is not None:
            seen.left[side].add(tuple(journal))


class Restart(Exception):
    """The run learned something that changes how the entry is to be run: start again."""


def explore(run: Callable[[Oracle], tape.Tape], budget: int = BUDGET) -> Iterator[tape.Tape]:
    """Runs the entry along its paths, within the budget."""
    visited: dict[Site, Visited] = {}
    tried: set[Plan] = set()
    pending: deque[Plan] = deque([frozenset()])
    combined: set[frozenset[Site]] = set()
    runs = 0
    while runs < budget:
        plan = pending.popleft() if pending else _next(visited, tried, combined, pending)
        if plan is None:
            return
        if plan in tried:
            continue
        tried.add(plan)
        oracle = Oracle(plan, visited)
        yield run(oracle)
        runs += 1
        for choice, side in oracle.taken.items():
            site = choice[0]
            if (not side) not in visited[site].sides:
                pending.append(_turned(oracle, site))


def _turned(oracle: Oracle, site: Site) -> Plan:
    """The choices of a run up to `site`, which goes the other way."""
    plan = {}
    for choice, side in oracle.taken.items():
        if choice[0] is site:
            plan[choice] = not side
            break
        if oracle.plan.get(choice) is not None:
            plan[choice] = side
    return frozenset(plan.items())


def _next(
    visited: dict[Site, Visited], tried: set[Plan], combined: set[frozenset[Site]], pending: deque[Plan]
) -> Plan | None:
    """Combinations of the sites that matter, then single rounds."""
    sites = [site for site, seen in visited.items() if seen.matters]
    key = frozenset(sites)
    if key in combined:
        return None
    combined.add(key)
    for plan in _combinations(sites, visited):
        if plan not in tried:
            pending.append(plan)
    for site in sites:
        if visited[site].visits > 1:
            default = visited[site].default
            pending.append(frozenset({((site, 1), not default)}))
            pending.append(frozenset({((site, None), not default), ((site, 1), default)}))
    return pending.popleft() if pending else None


def _combinations(sites: list[Site], visited: dict[Site, Visited]) -> Iterator[Plan]:
    turned = [((site, None), not visited[site].default) for site in sites]
    if len(turned) > 1:
        yield frozenset(turned)
    if len(turned) <= FULL:
        for size in range(2, len(turned)):
            yield from map(frozenset, itertools.combinations(turned, size))
        return
    yield from map(frozenset, itertools.combinations(turned, 2))
    for index in range(len(turned)):
        yield frozenset(turned[:index] + turned[index + 1 :])
