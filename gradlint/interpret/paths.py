"""Which paths are run: every entry from its start again and again, each time with other answers at
its branches.

A *plan* says which way each branch site goes; a site not in it goes its default way. The first path
takes the defaults; then each site is turned round on its own, those first whose source speaks of
what rules report; then, over the sites that were seen to matter (their sides do not leave the same
behind), combinations; then single rounds of loops. `BUDGET` bounds the paths of an entry: sides not
yet taken come first, so that each side is taken at least once where it allows that. Each rank of
sites, and the combinations, have steps of their own (`ENOUGH`): many branches of one rank leave
those of the next their share; what a program of few questions needs beyond that it may take from
all of them. After `QUIET` paths in a row that showed nothing new only sites that speak of training
are still turned, and nothing is combined any more. New is an event, a loss that has no gradient,
what a loss hangs on, and, but for combinations, which bring most of those by themselves, an event
behind another: edge coverage, as fuzzers use it (M. Zalewski, "Technical whitepaper for afl-fuzz").
A part with no trainer in view has tighter bounds (`OF_A_PART`).
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from gradlint import memo, tape
from gradlint.dataclass import dataclass
from gradlint.interpret.values import Symbol, Test
from gradlint.ir import nodes as ir

BUDGET = 40  # paths of one entry
FULL = 4  # up to this many sites that matter, all combinations are run
QUIET = 10  # paths without anything new
MORE = 3  # paths where the bounds end a search that misses a training step
SWEPT = 2  # the rank of branches from which on many are turned at once first
SWEEPING = 8_000  # steps on the paths of an entry that turn many branches at once
_RANKS = (  # what the source of a branch speaks of, from what rules report to what ends its block
    r"backward|zero_grad|\.step\(|no_grad|inference_mode|requires_grad|set_grad|detach|\.data\b|\.item\(|scaler|autocast"
    r"|unscale|clip_|(?:torch|th)\.(?:tensor|zeros|ones|full|empty|where)|new_zeros|accum|create_graph|retain_graph|no_sync",
    r"grad|loss|[Oo]ptim|\.(?:eval|train)\(|freeze|numpy|tolist|half|clip|where|sqrt|log\(|checkpoint|mask|sched|amp\b",
    r"step|train|scale|update|reduce|gather|\b(?:return|continue|break)\b",
)
_RANKED = tuple(map(re.compile, _RANKS))
LEAST = len(_RANKS)  # the rank of all other branches
TOGETHER = LEAST + 1  # that of combinations
ENOUGH = (
    12_000,
    6_000,
    3_000,
    3_000,
    4_000,
)  # steps on the branches of each rank, and on combinations
OF_TESTS = 4  # a test has so small a part of it
# the rank of branches in the constructor of a part's object that speak of nothing: the last
BESIDE = TOGETHER + 1
ENOUGH_OF_A_PART = (12_000, 6_000, 3_000, 3_000, 0, 1_000)
QUIET_OF_A_PART = 2
SWEEPING_A_PART = 2_000
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
    rank: int = 0  # how much its source says that a rule may ask for: 0 is most
    sides: set[bool] = field(default_factory=set)
    left: dict[bool, set[object]] = field(default_factory=lambda: {True: set(), False: set()})
    visits: int = 0
    turned: Plan = frozenset()  # what it takes to come to it and turn it round
    questions: set[object] = field(default_factory=set)  # that it asks: two sites can ask the same
    # the answers to questions about the machine
    machine: dict[Symbol, set[bool]] = field(default_factory=dict)
    # met where a registry is filled, of which more is taken to be than is seen
    registers: bool = False
    prepares: bool = False  # met where the object is made whose method the entry is

    @property
    def matters(self) -> bool:
        return len(self.sides) < 2 or not self.left[True] or self.left[True] != self.left[False]


class Facts:
    """What the decisions of a path have made true of symbols."""

    def __init__(self) -> None:
        self.truth: dict[tuple[Symbol, str, object], bool] = {}
        # the same, by what was asked about
        self.answers: dict[Symbol, dict[tuple[str, object], bool]] = {}
        self.equal: dict[Symbol, object] = {}
        self.low: dict[Symbol, tuple[float, bool]] = {}
        self.high: dict[Symbol, tuple[float, bool]] = {}
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
        assert isinstance(operand, int | float)
        low, low_open = self.low.get(subject, (float("-inf"), True))
        high, high_open = self.high.get(subject, (float("inf"), True))
        below = high < operand or (high == operand and high_open)  # subject < operand for sure
        above = low > operand or (low == operand and low_open)
        is_it = low == high == operand and not (low_open or high_open)
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
                return True if below or above else False if is_it else None
        return True if is_it else False if below or above else None

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


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many paths of an entry are run."""

    enough: tuple[int, ...] = ()  # steps for each rank; those of `ENOUGH` where it is empty
    paths: int = 0  # for each rank that has steps, however long they are
    quiet: int = QUIET  # paths in a row without anything new
    sweeping: int = SWEEPING  # steps on paths that turn many branches at once
    # the rank of branches of a constructor whose code speaks of nothing
    least_preparing: int = LEAST

    @property
    def steps(self) -> list[int]:
        return list(self.enough or ENOUGH)


ALL = Bounds()
OF_A_PART = Bounds(ENOUGH_OF_A_PART, PATHS_OF_A_PART, QUIET_OF_A_PART, SWEEPING_A_PART, BESIDE)


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


def _answer(plan: Mapping[Choice, bool], site: Site, visit: int, default: bool) -> bool:
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
        self.registers = False  # what is run fills a registry: `@register_model`
        # what is run is not the entry yet, but makes the object whose method it is
        self.prepares = False
        self.sought: set[Site] = set()  # whose answers keep the path from a training step
        # the free branches that ask about the machine, in order
        self.of_machine: list[tuple[Free, Symbol]] = []
        self._told: dict[Symbol, list[Site]] = {}  # what the free branches have asked for

    def decide(
        self,
        at: Branching,
        test: Test,
        default: bool,
        source: Callable[[], str],
        *,
        keeps: bool | None = None,
        about: Symbol | None = None,
    ) -> tuple[bool, bool]:
        """The way that a branch goes, and whether it was free to go either way; `source` is what
        hangs on it.

        One that `keeps` to an answer leaves the other way to another round. `about` is what the
        library says of the machine, where that is asked: `torch.cuda.is_available`.
        """
        self.asked += 1
        known = self.facts.known(test)
        if known is not None:
            return known, False
        site = at.test
        if site not in self.visited:
            rank = 0 if at.writes else self._rank(source())
            self.visited[site] = Visited(
                at, default, rank, registers=self.registers, prepares=self.prepares
            )
        visit = self.visits[site] = self.visits.get(site, 0) + 1
        seen = self.visited[site]
        seen.registers = seen.registers and self.registers
        seen.visits = max(seen.visits, visit)
        answer = _answer(self.plan, site, visit, default) if keeps is None else keeps
        if keeps is None:
            self.free.append(Free(site, visit, default, answer))
            if about is not None:
                self.of_machine.append((self.free[-1], about))
                seen.machine.setdefault(about, set()).add(answer)
        seen.sides.add(answer)
        seen.questions.add((test.subject.text, test.relation, test.operand))
        self.taken.setdefault((site, None), self.plan.get((site, None), default))
        self.facts.learn(test, answer)
        self._told.setdefault(test.subject, []).append(site)
        return answer, True

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

    def _rank(self, source: str) -> int:
        found = rank(source, prepares=self.prepares)
        return self.bounds.least_preparing if self.prepares and found == LEAST else found

    def leave(self, site: Site, side: bool, journal: list[tuple[object, ...]]) -> None:
        """Takes down what a side of a branch left behind."""
        seen = self.visited.get(site)
        if seen is not None:
            seen.left[side].add(tuple(journal))


@memo.of_programs
def rank(source: str, *, prepares: bool = False) -> int:
    """How soon what hangs on a branch is worth taking: 0, where it speaks of what rules ask for, is
    first.
    """
    if prepares:
        return 1 if _RANKED[1].search(source) else LEAST
    return next((rank for rank, words in enumerate(_RANKED) if words.search(source)), len(_RANKED))


@memo.of_programs
def _names(node: ir.Node) -> frozenset[str]:
    inner = list(ir.within([node]))
    names = {each.id for each in inner if isinstance(each, ir.Name)}
    return frozenset(names | {each.name for each in inner if isinstance(each, ir.Attribute)})


class Restart(Exception):
    """The run learned something that changes how the entry is to be run: start again."""


def explore(
    run: Callable[[Oracle], tape.Tape],
    spent: Callable[[], int],
    is_enough: Callable[[tape.Tape], bool],
    cut_short: Callable[[], None],
    visited: dict[Site, Visited],
    bounds: Bounds,
    *,
    misses: Callable[[], frozenset[str] | None] = lambda: None,
    sweep: Callable[[Plan], Iterator[tape.Tape]] = lambda _: iter(()),
) -> Iterator[tape.Tape]:
    """Runs the entry along its paths, until one `is_enough`, and notes in `visited` what they show
    of its branches.

    `spent` says how many steps all of them have taken; `cut_short` is called where the bounds leave
    some that are worth it. Where the bounds end the search and it `misses` training steps, a few
    sites more are turned, those first that speak of what is asked around these.
    """
    pending = _Pending(visited, bounds)
    pending.add(frozenset())
    shown: set[object] = set()
    followed: set[object] = set()
    quiet, lost, swept = 0, True, False
    works: Plan = frozenset()  # what leads to the end of the first path that comes there
    for _ in range(BUDGET):
        if not swept and pending.is_low and not lost and _many_open(visited):
            swept = True
            yield from sweep(works)
        found = pending.next(quiet=quiet >= bounds.quiet)
        if found is None:
            break
        plan, rank = found
        oracle, before = Oracle(plan, visited, bounds), spent()
        made = run(oracle)
        pending.took(rank if plan else None, spent() - before, oracle.free)
        yield made
        if is_enough(made):
            pending.cut_short = True
            break
        known = len(shown), len(followed)
        shown.update(_shown(made))
        followed.update(itertools.pairwise((type(event), event.at) for event in made.events))
        is_new = len(shown) > known[0] or (len(followed) > known[1] and rank != TOGETHER)
        quiet = 0 if is_new else quiet + 1
        if lost and not is_lost(made):
            works, lost = plan, False
        open_ = [site for site, _ in oracle.taken if len(visited[site].sides) < 2]
        for site in open_:
            turned = turned_at(oracle, site)
            visited[site].turned = visited[site].turned or turned
            pending.add(
                turned, turns=site, saves=site in oracle.sought or (lost and site is open_[-1])
            )
        for turned in _of_machine(oracle):
            pending.add(turned, rank=0)
    for _ in range(MORE if pending.cut_short else 0):
        asked = misses()
        more = pending.left_out(asked) if asked is not None else None
        if more is None:
            break
        made = run(Oracle(more, visited, bounds))
        yield made
        is_enough(made)
    if not swept:
        yield from sweep(works)
    if pending.cut_short or pending.next(quiet=quiet >= bounds.quiet) is not None:
        cut_short()


def _many_open(visited: Mapping[Site, Visited]) -> bool:
    """Whether more branches have an untaken side than all combinations are run of."""
    return sum(len(seen.sides) < 2 for seen in visited.values()) > FULL


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


def _shown(made: tape.Tape) -> Iterator[object]:
    """What a path shows: its events, and what each loss does and does not hang on."""
    for event in made.events:
        yield type(event), event.at
        if isinstance(event, tape.Backward):
            yield event.at, event.value.requires_grad
            for value in tape.ancestors(event.value):
                if value.cut is not None or value.is_leaf:
                    yield event.at, value.at, value.cut, value.requires_grad


class _Run:
    """The ways that the paths went which were run, as a tree: two that answer alike as far as they
    go are one.

    A run goes on from its answers alone, so that a plan is known to bring nothing new where all
    that it comes to is answered as on a path that was run.
    """

    def __init__(self) -> None:
        self._first = _Fork()

    def add(self, way: Sequence[Free]) -> None:
        fork = self._first
        for free in way:
            fork.at = fork.at or free
            fork = fork.sides.setdefault(free.answer, _Fork())
        fork.ends = True

    def has(self, plan: Plan) -> bool:
        """Whether a run by this plan would go a way that was gone."""
        answers, fork = dict(plan), self._first
        while fork.at is not None:
            answer = _answer(answers, fork.at.site, fork.at.visit, fork.at.default)
            if answer not in fork.sides:
                return False
            fork = fork.sides[answer]
        return fork.ends


@dataclass(slots=True)
class _Fork:
    """A branch that paths came to, and what they came to behind each side; at the end of a path,
    none.
    """

    at: Free | None = None
    ends: bool = False
    sides: dict[bool, _Fork] = field(default_factory=dict)


class _Pending:
    """The plans that wait to be run: sites turned round first, then what they give together."""

    def __init__(self, visited: dict[Site, Visited], bounds: Bounds) -> None:
        self.visited = visited
        self.paths = bounds.paths
        self.left = bounds.steps  # for the plans of each rank
        self.first = 0  # the steps of the first path, which another one is taken to need as well
        self.cut_short = False  # whether plans were dropped because their rank had spent enough
        self._queue: list[tuple[int, int, Plan, Site | None]] = []
        self._saving: set[Plan] = set()
        # until it is known what the other ranks leave
        self._waiting: deque[tuple[Plan, Site | None]] = deque()
        self._number = itertools.count()
        self._tried: set[Plan] = set()
        self._run = _Run()
        self._combined: set[frozenset[Site]] = set()
        self._combinations: Iterator[Plan] = iter(())  # that were not queued yet: most never are

    def took(self, rank: int | None, steps: int, way: Sequence[Free]) -> None:
        """Counts the steps of a path, and notes the way that it went; that of no rank is the first
        one.

        Each rank has steps for some more like the first.
        """
        self._run.add(way)
        if rank is None:
            self.first = steps
            self.left = [max(left, self.paths * steps) if left else 0 for left in self.left]
        else:
            self.left[rank] -= steps

    def add(
        self, plan: Plan, *, turns: Site | None = None, saves: bool = False, rank: int | None = None
    ) -> None:
        """Queues a plan; one that is there for the untaken side of a site is dropped once that is
        taken.

        One that `saves` an entry all of whose paths exceptions have ended so far, or keeps away
        from training, comes first, whatever the others have taken.
        """
        if rank is None:
            rank = (
                0 if saves or not plan else TOGETHER if turns is None else self.visited[turns].rank
            )
        number = next(self._number)
        if saves:
            self._saving.add(plan)
        heapq.heappush(self._queue, (rank, -number if saves else number, plan, turns))

    @property
    def is_low(self) -> bool:
        """Whether none of a high rank is left."""
        return not self._queue or self._queue[0][0] >= SWEPT

    def next(self, *, quiet: bool) -> tuple[Plan, int] | None:
        """The plan to run next, and its rank; None where nothing is left that is worth it."""
        while True:
            if not self._queue and not quiet:
                self._combine()
            if not self._queue and not quiet and self._waiting:
                return self._next_waiting()
            if not self._queue or (quiet and self._queue[0][0] >= LEAST):
                return None
            rank, _, plan, turns = heapq.heappop(self._queue)
            is_taken = turns is not None and len(self.visited[turns].sides) == 2
            if is_taken or plan in self._tried or self._run.has(plan):
                continue
            if self.left[rank] < self.first and plan not in self._saving:
                if self._has_few_questions():
                    self._waiting.append((plan, turns))
                    continue
                self.cut_short |= rank < BESIDE
                if rank == TOGETHER:
                    self._combinations = iter(())
                continue
            self._tried.add(plan)
            return plan, rank

    def left_out(self, asked: frozenset[str]) -> Plan | None:
        """The plan for the untaken side of a site, first of those that speak of what is asked, then
        of training.
        """
        open_ = [(site, seen) for site, seen in self.visited.items() if len(seen.sides) < 2]
        for site, seen in sorted(
            open_, key=lambda each: (asked.isdisjoint(each[1].at.names), each[1].rank)
        ):
            plan = seen.turned or alone(site, seen)
            if plan not in self._tried:
                self._tried.add(plan)
                return plan
        return None

    def _has_few_questions(self) -> bool:
        """Whether all ways to answer what the branches ask are few, however many branches ask it;
        not of a part.
        """
        questions = set().union(*(seen.questions for seen in self.visited.values()))
        return not self.paths and len(questions) <= FULL

    def _next_waiting(self) -> tuple[Plan, int] | None:
        """The next plan whose rank has spent its steps, at the cost of the rank that has most of
        them left.
        """
        while self._waiting:
            plan, turns = self._waiting.popleft()
            is_taken = turns is not None and len(self.visited[turns].sides) == 2
            if is_taken or plan in self._tried or self._run.has(plan):
                continue
            richest = max(range(len(self.left)), key=self.left.__getitem__)
            self.cut_short = self.cut_short or self.left[richest] < self.first
            if self.cut_short:
                return None
            self._tried.add(plan)
            return plan, richest
        return None

    def _combine(self) -> None:
        """Queues the next combination of the sites that matter; behind them come single rounds."""
        plan = next(self._combinations, None)
        if plan is None:
            sites = [site for site, seen in self.visited.items() if seen.matters]
            key = frozenset(sites)
            if key in self._combined:
                return
            self._combined.add(key)
            turned = [
                self.visited[site].turned or alone(site, self.visited[site]) for site in sites
            ]
            self._combinations = itertools.chain(
                _combinations(turned), _rounds(sites, self.visited)
            )
            plan = next(self._combinations, None)
        if plan is not None:
            self.add(plan)


def alone(site: Site, seen: Visited) -> Plan:
    """One site turned round, in all its rounds."""
    return frozenset({((site, None), not seen.default)})


def _rounds(sites: list[Site], visited: dict[Site, Visited]) -> Iterator[Plan]:
    """Single rounds of sites that are in loops: the first one alone, and all but the first."""
    for site in sites:
        if visited[site].visits > 1:
            default = visited[site].default
            yield frozenset({((site, 1), not default)})
            yield frozenset({((site, None), not default), ((site, 1), default)})


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


def _of_machine(oracle: Oracle) -> Iterator[Plan]:
    """What a run was told of the machine, turned round one by one, where one site asks several
    things of it.

    What the program runs on hangs on each of them, so they come first.

    for name in ("cuda", "mps"): if BACKENDS[name].is_available(): …
    """
    for free, about in oracle.of_machine:
        seen = oracle.visited[free.site]
        if len(seen.machine) > 1 and len(seen.machine[about]) < 2:
            yield frozenset({**oracle.plan, (free.site, free.visit): not free.answer}.items())


def _combinations(turned: list[Plan]) -> Iterator[Plan]:
    if len(turned) > 1:
        yield frozenset().union(*turned)
    if len(turned) <= FULL:
        for size in range(2, len(turned)):
            yield from itertools.starmap(frozenset.union, itertools.combinations(turned, size))
        return
    for distance in range(1, len(turned)):  # neighbours have most to do with each other
        yield from map(frozenset.union, turned, turned[distance:])
    for index in range(len(turned)):
        yield frozenset().union(*turned[:index], *turned[index + 1 :])
