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

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.interpret.paths import (
    BESIDE,
    LEAST,
    TOGETHER,
    Bounds,
    Free,
    Oracle,
    Plan,
    Site,
    Visited,
    alone,
    answer_by,
    shows_nothing,
    turned_at,
)
from gradlint.ir import nodes as ir

_Order = tuple[int, bool, int]  # of plans: the lowest is run first
Pairing = Callable[[Sequence[Plan], AbstractSet[ir.Node], int], Iterator[tape.Tape]]
BUDGET = 40  # paths of one entry
MOST_ASKED = 3  # paths on branches of the highest rank, however long they are
FULL = 4  # up to this many sites that matter, all combinations are run
MORE = 3  # paths where the bounds end a search that misses a training step
SWEPT = 2  # the rank of branches from which on many are turned at once first


def explore(
    run: Callable[[Oracle], tape.Tape],
    spent: Callable[[], int],
    is_enough: Callable[[tape.Tape], bool],
    cut_short: Callable[[], None],
    visited: dict[Site, Visited],
    bounds: Bounds,
    *,
    own: str = "",
    misses: Callable[[], frozenset[str] | None] = lambda: None,
    sweep: Callable[[Plan], Iterator[tape.Tape]] = lambda _: iter(()),
    pair: Pairing = lambda _writing, _written, _first: iter(()),
) -> Iterator[tape.Tape]:
    """Runs the entry along its paths, until one `is_enough`, and notes in `visited` what they show
    of its branches.

    `spent` says how many steps all of them have taken; `cut_short` is called where the bounds leave
    some that are worth it. Where the bounds end the search and it `misses` training steps, a few
    sites more are turned, those first that speak of what is asked around these.
    """
    pending = _Pending(visited, bounds, own)
    pending.add(frozenset())
    shown: set[object] = set()
    followed: set[object] = set()
    written: set[ir.Node] = set()
    writing: list[Plan] = []  # those behind which a path first came to a write in place
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
        if plan and not oracle.writes <= written:
            writing.append(plan)
        written |= oracle.writes
        shown.update(_shown(made))
        followed.update(itertools.pairwise((type(event), event.at) for event in made.events))
        is_new = len(shown) > known[0] or (len(followed) > known[1] and rank != TOGETHER)
        quiet = 0 if is_new else quiet + 1
        if lost and not shows_nothing(made):
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
    yield from pair(writing, written, pending.first)
    if pending.cut_short or pending.next(quiet=quiet >= bounds.quiet) is not None:
        cut_short()


def _many_open(visited: Mapping[Site, Visited]) -> bool:
    """Whether more branches have an untaken side than all combinations are run of."""
    return sum(len(seen.sides) < 2 for seen in visited.values()) > FULL


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
            answer = answer_by(answers, fork.at.site, fork.at.visit, fork.at.default)
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

    def __init__(self, visited: dict[Site, Visited], bounds: Bounds, own: str) -> None:
        self.visited = visited
        self.own = own  # the file of a part: what it calls in others is judged there, too
        self.paths = bounds.paths
        self.left = bounds.steps  # for the plans of each rank
        self.first = 0  # the steps of the first path, which another one is taken to need as well
        self.cut_short = False  # whether plans were dropped because their rank had spent enough
        self._queue: list[tuple[_Order, int, int, Plan, Site | None]] = []
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
            self.left[0] = max(self.left[0], MOST_ASKED * steps)
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
        order = self._order(rank, None if saves else turns)
        heapq.heappush(self._queue, (order, -number if saves else number, rank, plan, turns))

    def _order(self, rank: int, site: Site | None) -> _Order:
        """How soon a plan is run: of a part, the branches of its own file come before others."""
        is_away = bool(self.own) and site is not None and self.visited[site].at.file != self.own
        return (0, is_away, rank) if rank < LEAST else (rank, is_away, 0)

    @property
    def is_low(self) -> bool:
        """Whether none of a high rank is left."""
        return not self._queue or self._queue[0][2] >= SWEPT

    def next(self, *, quiet: bool) -> tuple[Plan, int] | None:
        """The plan to run next, and its rank; None where nothing is left that is worth it."""
        while True:
            if not self._queue and not quiet:
                self._combine()
            if not self._queue and not quiet and self._waiting:
                return self._next_waiting()
            if not self._queue or (quiet and self._queue[0][2] >= LEAST):
                return None
            _, _, rank, plan, turns = heapq.heappop(self._queue)
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


def _rounds(sites: list[Site], visited: dict[Site, Visited]) -> Iterator[Plan]:
    """Single rounds of sites that are in loops: the first one alone, and all but the first."""
    for site in sites:
        if visited[site].visits > 1:
            default = visited[site].default
            yield frozenset({((site, 1), not default)})
            yield frozenset({((site, None), not default), ((site, 1), default)})


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
