"""The branches of an entry: what is known of each, which way a run goes at it, and in what order
they are turned round.

A *plan* says which way each branch site goes; a site not in it goes its default way. An `Oracle`
answers the branches of one run by its plan.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from gradlint import memo, tape
from gradlint.dataclass import dataclass
from gradlint.interpret.facts import Facts
from gradlint.interpret.symbols import Symbol, Test
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

QUIET = 10  # paths without anything new
SWEEPING = 8_000  # steps on the paths of an entry that turn many branches at once
LEAST = 3  # the rank of branches that do nothing that a rule reports, as program/ranks.py says it
TOGETHER = LEAST + 1  # that of combinations
# steps on the branches of each rank, and on combinations
ENOUGH = (12_000, 6_000, 3_000, 3_000, 4_000)
OF_TESTS = 4  # a test has so small a part of it
# the rank of branches in the constructor of a part's object that do nothing of it: the last
BESIDE = TOGETHER + 1
ENOUGH_OF_A_PART = (12_000, 6_000, 3_000, 3_000, 0, 1_000)
QUIET_OF_A_PART = 2
SWEEPING_A_PART = 2_000
PAIRING_A_PART = 5_000
PATHS_OF_A_PART = 2  # for each rank of branches, however long they are

Site = ir.Node  # the test of a branch
Choice = tuple[Site, int | None]  # a site in all its rounds, or in its n-th visit
Plan = frozenset[tuple[Choice, bool]]


@dataclass(frozen=True, slots=True)
class Branching:
    """Where a path branches: the node of the test and its file.

    `picks_data`: its answer runs nothing, and picks between two values that no parameter leads to;
    `writes`: one of its answers has an operation write in place.
    """

    test: Site
    file: str
    picks_data: bool = False
    writes: bool = False
    is_refused: bool = False  # one of its sides ends the program, or the function, by an exception
    in_try: bool = False  # a handler can catch what its sides raise
    # what hangs on it; None of what is no statement and no conditional expression
    whole: ir.Node | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names and attributes that stand in what hangs on it."""
        return _names(self.whole or self.test)


@dataclass(slots=True)
class Visited:
    """What the runs so far have shown of one branch site."""

    at: Branching
    default: bool
    rank: int = 0  # how much its sides may do that a rule asks for: 0 is most
    sides: set[bool] = field(default_factory=set)
    # sides that were run in an earlier round of a loop, where the test had one answer alone
    followed: set[bool] = field(default_factory=set)
    left: dict[bool, set[object]] = field(default_factory=lambda: {True: set(), False: set()})
    visits: int = 0
    turned: Plan = frozenset()  # what it takes to come to it and turn it round
    questions: set[object] = field(default_factory=set)  # that it asks: two sites can ask the same
    # the answers to questions about the machine
    machine: dict[Symbol, set[bool]] = field(default_factory=dict)
    # met where a registry is filled, of which more is taken to be than is seen
    registers: bool = False
    prepares: bool = False  # met where the object is made whose method the entry is
    in_try: bool = False  # a handler can catch what its sides raise, wherever it was met
    # its second side was taken with many others at once, which can hide what it shows by itself
    swept: bool = False

    @property
    def matters(self) -> bool:
        return len(self.sides) < 2 or not self.left[True] or self.left[True] != self.left[False]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many paths of an entry are run."""

    enough: tuple[int, ...] = ()  # steps for each rank; those of `ENOUGH` where it is empty
    paths: int = 0  # for each rank that has steps, however long they are
    quiet: int = QUIET  # paths in a row without anything new
    sweeping: int = SWEEPING  # steps on paths that turn many branches at once
    # the rank of branches of a constructor that do nothing that a rule asks for
    least_preparing: int = LEAST
    pairing: int = 0  # steps on paths that turn a branch beside one that brings a write in place

    @property
    def steps(self) -> list[int]:
        return list(self.enough or ENOUGH)


ALL = Bounds()
OF_A_PART = Bounds(
    ENOUGH_OF_A_PART, PATHS_OF_A_PART, QUIET_OF_A_PART, SWEEPING_A_PART, BESIDE, PAIRING_A_PART
)


def of_a_test() -> Bounds:
    """The bounds of a test: it trains to see that something trains, and the program is entered by
    itself.
    """
    return Bounds(tuple(steps // OF_TESTS for steps in ENOUGH))


@dataclass(frozen=True, slots=True)
class Free:
    """A branch as a run comes to it: the site, in its n-th visit, its default way and the way it
    goes.
    """

    site: Site
    visit: int
    default: bool
    answer: bool


def answer_by(plan: Mapping[Choice, bool], site: Site, visit: int, default: bool) -> bool:
    return plan.get((site, visit), plan.get((site, None), default))


class Oracle:
    """Answers the branches of one run by its plan, and writes down what was asked."""

    def __init__(self, plan: Plan, visited: dict[Site, Visited], bounds: Bounds = ALL) -> None:
        self.plan = dict(plan)
        self.visited = visited
        self.bounds = bounds
        self.facts = Facts()
        self.taken: dict[Choice, bool] = {}
        self.visits: dict[Site, int] = {}
        self.free: list[Free] = []  # what was asked that the plan answers, in order
        self.decisions: list[tape.Decision] = []
        self.asked = 0  # how often something hung on how a branch goes
        # where it writes in place, or into something unknown that can be a tensor
        self.writes: set[ir.Node] = set()
        self.registers = False  # what is run fills a registry: `@register_model`
        # what is run is not the entry yet, but makes the object whose method it is
        self.prepares = False
        self.goes_astray = False  # it has taken a side that an exception ends, though not the other
        # by the attributes of its object, the branches of the constructor that decide what they are
        self.choosing: dict[str, set[Site]] = {}
        self.sought: set[Site] = set()  # whose answers keep the path from a training step
        # the free branches that ask about the machine, in order
        self.of_machine: list[tuple[Free, Symbol]] = []
        self._told: dict[Symbol, list[Site]] = {}  # what the free branches have asked for
        # sides that were run in a call, where their test had one answer alone
        self._known: dict[tuple[Site, object], set[bool]] = {}
        self._followed: set[Site] = set()  # branches that go with those

    def decide(
        self,
        at: Branching,
        test: Test,
        default: bool,
        rank: Callable[[], int],
        *,
        keeps: bool | None = None,
        about: Symbol | None = None,
        call: object = None,
    ) -> tuple[bool, bool]:
        """The way that a branch goes, and whether it was free to go either way; `rank` says how
        soon what hangs on it is worth taking.

        One that `keeps` to an answer leaves the other way to another round. `about` is what the
        library says of the machine, where that is asked: `torch.cuda.is_available`; `call` stands
        for the call of the function that asks.
        """
        self.asked += 1
        site = at.test
        known = self.facts.known(test)
        if known is not None:
            return known, False
        if site not in self.visited:
            self.visited[site] = Visited(
                at, default, self._rank(at, rank), registers=self.registers, prepares=self.prepares
            )
        visit = self.visits[site] = self.visits.get(site, 0) + 1
        seen = self.visited[site]
        seen.registers = seen.registers and self.registers
        seen.in_try = seen.in_try or at.in_try
        seen.visits = max(seen.visits, visit)
        answer = answer_by(self.plan, site, visit, default) if keeps is None else keeps
        if keeps is None:
            self.free.append(Free(site, visit, default, answer))
            if about is not None:
                self.of_machine.append((self.free[-1], about))
                seen.machine.setdefault(about, set()).add(answer)
        seen.sides.add(answer)
        seen.followed |= self._known.get((site, call), set())
        seen.questions.add(_question(test))
        self.taken.setdefault((site, None), self.plan.get((site, None), default))
        self.facts.learn(test, answer)
        self._told.setdefault(test.subject, []).append(site)
        return answer, True

    def pass_through(self, site: Site, side: bool, call: object) -> None:
        """Notes a side that is run because the test has one answer alone at that moment."""
        self._known.setdefault((site, call), set()).add(side)

    @contextlib.contextmanager
    def registering(self) -> Iterator[Callable[[], list[Visited]]]:
        """What branches meanwhile decides only what a registry is seen to hold; gives the branches
        that are new.
        """
        known, before, self.registers = len(self.visited), self.registers, True
        try:
            yield lambda: list(self.visited.values())[known:]
        finally:
            self.registers = before

    def is_told(self, subject: Symbol) -> bool:
        """Whether a branch of this path that was free has asked for it."""
        return subject in self._told

    def look_for(self, subject: Symbol) -> None:
        """Has the branches turned round first that have asked for it: what it is keeps the path
        from training.
        """
        self.sought.update(self._told[subject])

    def follow(self, at: Branching, test: Test, rank: Callable[[], int]) -> None:
        """A branch asks what has been answered: it goes with the one that asked it first, which is
        worth turning as soon as this one.
        """
        if at.test in self._followed or test.subject not in self._told:
            return
        self._followed.add(at.test)
        question, own = _question(test), self._rank(at, rank)
        for site in self._told[test.subject]:
            first = self.visited[site]
            if question in first.questions:
                first.rank = min(first.rank, own)

    def _rank(self, at: Branching, rank: Callable[[], int]) -> int:
        """What a constructor does otherwise says less than what is done with its object."""
        found = 0 if at.writes else rank()
        if self.prepares:
            return 1 if found <= 1 else self.bounds.least_preparing
        return found

    def leave(self, site: Site, side: bool, journal: list[tuple[object, ...]]) -> None:
        """Takes down what a side of a branch left behind."""
        seen = self.visited.get(site)
        if seen is not None:
            seen.left[side].add(tuple(journal))


def _question(test: Test) -> object:
    """What is asked, whichever way round."""
    return test.subject.text, test.relation, test.operand


@memo.of_programs
def _names(node: ir.Node) -> frozenset[str]:
    inner = list(within([node]))
    names = {each.id for each in inner if isinstance(each, ir.Name)}
    return frozenset(names | {each.name for each in inner if isinstance(each, ir.Attribute)})


class Restart(Exception):
    """The run learned something that changes how the entry is to be run: start again."""


def is_lost(made: tape.Tape) -> bool:
    """Whether an exception has ended a path, or `sys.exit()` before any training: a program is
    taken to work.
    """
    raised = next((event.raised for event in made.events[-1:] if isinstance(event, tape.End)), "")
    if raised == "exit":
        return not any(
            isinstance(event, tape.Backward | tape.OptimizerStep) for event in made.events
        )
    return raised == "exception"


def shows_nothing(made: tape.Tape) -> bool:
    """Whether a path is lost, and is none of a part that has come to the backward of its driver
    with a gradient: that has shown all of it, and why it raises.
    """
    return is_lost(made) and not any(
        event.assumed and event.value.requires_grad
        for event in made.events
        if isinstance(event, tape.Backward)
    )


def alone(site: Site, seen: Visited) -> Plan:
    """One site turned round, in all its rounds."""
    return frozenset({((site, None), not seen.default)})


def turned_at(oracle: Oracle, site: Site) -> Plan:
    """The choices of a run up to `site`, which goes the other way."""
    plan = {}
    for choice, side in oracle.taken.items():
        if choice[0] is site:
            plan[choice] = not side
            break
        if oracle.plan.get(choice) is not None:
            plan[choice] = side
    return frozenset(plan.items())
