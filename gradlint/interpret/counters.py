"""Counters: numbers that each iteration adds to, and how often they reach a literal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret.periods import Numbers, Period
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Const

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine

MOST_COUNTED = 8  # rounds that are run to, wherever the counter is set back
ZERO = Const(0)  # what `if not left` holds a counter against
_UP = {
    "==": 0,
    "!=": 0,
    ">=": 0,
    "<": 0,
    ">": 1,
    "<=": 1,
}  # from a number to that at which the answer is another
_SCALES = ("*", "/", "//")
_DOWN = {"==": 0, "!=": 0, "<=": 0, ">": 0, "<": -1, ">=": -1}


@dataclass(frozen=True, slots=True)
class Course:
    """The values of a counter over the iterations of a loop, where it is compared with a literal.

    `step` is what an iteration adds to it: 0 where it is not known to count.
    """

    begin: int
    now: int
    step: int
    number: int
    at: tuple[int, int]  # the loop, and its round
    is_whole: bool = True  # no round was left out, and no number that it counts to

    def end(self, op: str) -> int:
        """The number from which on the answer is another."""
        return self.number + (_UP if self.step > 0 else _DOWN)[op]

    def lasts(self, op: str) -> int:
        """The iterations until it reaches its end, the first and the last among them; 0 where it
        counts the other way.
        """
        if not self.step or not self.is_whole or (self.end(op) - self.now) * self.step < 0:
            return 0
        return _steps(self.begin, self.end(op), self.step) + 1

    def turns(self, op: str, after: Course) -> int:
        """In how many rounds it comes round, where it has come to its end, and begins again in the
        next round.
        """
        if not self.step or after.at != _next(self.at) or (after.now - self.now) * self.step > 0:
            return 0
        return (
            _steps(after.now, self.now, self.step) + 1
            if (self.now - self.end(op)) * self.step >= 0
            else 0
        )


def _steps(begin: int, end: int, step: int) -> int:
    return -((begin - end) // step)


def _next(at: tuple[int, int]) -> tuple[int, int]:
    return at[0], at[1] + 1


@dataclass(frozen=True, slots=True)
class Grown:
    """A number that has grown by `step`, and what questions about it are asked of."""

    number: Const
    of: Symbol
    step: int
    scale: float = 1  # of what is computed from a counter: the counter, for each that it grows by


@dataclass(frozen=True, slots=True)
class Met:
    """A counter that will reach a literal and can be reset there; of a length, the container."""

    place: object
    counter: Abstract | Symbol
    period: Period
    numbers: Numbers
    counts_up: bool
    is_length: bool
    is_near: bool  # it is waited for, whether it is set back or not


def meet(m: Machine, place: object, op: str, counter: Const, number: Const) -> None:
    """Notes that a counter is compared with a literal, which may bound how long the loop runs.

    `micro < 4` bounds a wait if its body only skips the iteration; otherwise it is a warm-up
    condition of the first iterations. A counter that is reset when it reaches the number is
    followed for as many iterations as that takes.
    """
    if (
        not type(counter.value) is type(number.value) is int
        or op not in _UP
        or not m.loops
        or m.branch.repeats
    ):
        return
    at = _round(m)
    if at is None:
        return
    before = m.courses.get(place)
    course = m.courses[place] = _course(m, before, counter, number, at)
    shown = before.turns(op, course) if before is not None else 0
    if shown > 1:
        m.session.loops.came_round(place, shown)
    shown, is_written = course.lasts(op), number.at is not None or number is ZERO
    stays = is_written or (before is not None and before.number == number.value)
    if shown < 2 or counter.at is not None or not stays:
        return
    step, less = abs(course.step), abs(_less(number) - _less(counter))
    period, end = Period(shown + less // step, shown), course.end(op) + _less(number)
    begin = end if course.step > 0 else end + period.written * step
    grown = growing(m).get(id(counter))
    owner = grown.of.source if grown is not None else None
    numbers = (begin, begin - 1) if is_written else (begin + 1, begin, begin - 1)
    is_reached = op in ("==", ">=", ">") if course.step > 0 else op in ("==", "<=", "<")
    is_near = (
        is_written
        and (is_reached or m.branch.waits)
        and begin > 1
        and period.written <= MOST_COUNTED
    )
    met = Met(
        place,
        owner or counter,
        period,
        Numbers(numbers, step),
        course.step > 0,
        owner is not None,
        is_near,
    )
    if is_near and m.session.loops.counting(m) is not None:
        m.session.loops.comes_to(m, met.place, met.period, met.numbers)
    else:
        m.branch.met.append(met)


def _round(m: Machine) -> tuple[int, int] | None:
    """The innermost loop that runs over what is no callable, and its round."""
    return next((each for each in reversed(m.rounds) if each[0] not in m.over_callables), None)


def _course(
    m: Machine, before: Course | None, counter: Const, number: Const, at: tuple[int, int]
) -> Course:
    value = counter.value
    if before is None or before.at[0] != at[0]:
        grown = growing(m).get(id(counter))
        return Course(value, value, grown.step if grown is not None else 0, number.value, at)
    step = value - before.now
    is_whole = (
        before.is_whole
        and at == _next(before.at)
        and (before.step in (0, step) or step * before.step < 0)
    )
    if not is_whole or before.step not in (0, step):
        return Course(value, value, 0, number.value, at, is_whole)
    return Course(before.begin, value, step, number.value, at)


def _less(number: Const) -> int:
    """How much smaller a number is than it would be, if what is written were taken for what it
    is.
    """
    return 0 if number.written is None else number.written - number.value


def computed(m: Machine, op: str, left: Const, right: Const, made: Const) -> Const:
    """What `left op right` gives, which is smaller than it would be where one of them is; it keeps
    its distance to a counter on the left.
    """
    if op in _SCALES and type(right.value) in (int, float) and right.value > 0:
        return _scaled(m, op, left, right, made)
    if op not in "+-":
        return made
    if left.written is not None and right.written is None:
        made = Const(made.value, made.at, made.value + _less(left))
    counter = counted_by(m, left)
    if counter is not None and type(right.value) is int:
        m.state.setdefault("beside counters", {})[id(made)] = made, counter
    return made


def _scaled(m: Machine, op: str, left: Const, right: Const, made: Const) -> Const:
    """What a number that grows is multiplied or divided to, which grows with it: `step / total`."""
    known = growing_with(m, left)
    if known is not None:
        of = known.of.derive((op, right.value), f"{known.of.text} {op} {right.value}")
        scale = known.scale / right.value if op == "*" else known.scale * right.value
        scaled = m.state.setdefault("scaled counters", {})
        scaled[id(made)] = Grown(made, of, known.step, scale)
    return made


def growing_with(m: Machine, number: Const) -> Grown | None:
    """The counter, or the length, that a number is, or is a multiple or a part of."""
    scaled: dict[int, Grown] = m.state.get("scaled counters", {})
    return growing(m).get(id(number)) or scaled.get(id(number))


def counted_by(m: Machine, number: Const) -> Grown | None:
    """The counter that a number is, or is at a distance from: `i + 1`."""
    beside: dict[int, tuple[Const, Grown]] = m.state.get("beside counters", {})
    return growing(m).get(id(number)) or (beside[id(number)][1] if id(number) in beside else None)


def is_reached(m: Machine, counter: Const, number: Const) -> bool:
    """Whether a counter that each round adds to is at `number` here, with the rounds that the loop
    does not show.

    `count += 1` of `for x in draw(10)`, of which six rounds are run, is 10 in the last of them, and
    so is `i + 1` of its `enumerate`.
    """
    known = counted_by(m, counter)
    if known is None or known.of.source is not None or type(number.value) is not int:
        return False
    loop = _counting(m)
    skipped = loop.skipped if loop is not None else 0
    return skipped > 0 and counter.value + skipped * known.step == number.value


def may_be_reached(m: Machine, place: object, counter: Const, number: Const) -> bool:
    """Whether a counter that each round adds to may come to `number` behind the rounds that are
    shown of a loop of unknown length; it is asked in the last of them.

    Not one that comes round at this place: the rounds that are shown bring it there.
    """
    known, loop = counted_by(m, counter), _counting(m)
    if known is None or known.of.source is not None or m.session.loops.periods.know(place):
        return False
    is_plain = type(number.value) is int and number.written is None
    if not is_plain or loop is None or not _is_open(m, loop):
        return False
    is_last = loop.round + 1 >= loop.rounds
    return is_last and (number.value - counter.value) * known.step > 0


def _is_open(m: Machine, loop: Loop) -> bool:
    """Whether a loop has more rounds than are shown, nobody knows how many."""
    is_measured = loop.length is not None or loop.skipped > 0
    return not is_measured and loop.number not in m.state.get("in full", ())


def _counting(m: Machine) -> Loop | None:
    """The innermost loop whose rounds can be counted: one over callables, or over a single item, is
    a part of a round of the loop around it.
    """
    loops = (
        loop
        for loop in reversed(m.loops)
        if loop.number not in m.over_callables and not loop.is_single
    )
    return next(loops, None)


def grows(m: Machine, owner: Abstract, size: Const) -> Const:
    """The length of something, which is known to grow where it was shorter when it was last asked
    for, in a loop.
    """
    sizes: dict[int, tuple[Abstract, int]] = m.state.setdefault("sizes", {})
    _, before = sizes.setdefault(id(owner), (owner, size.value))
    if m.loops and before < size.value:
        sizes[id(owner)] = (owner, size.value)
        growing(m)[id(size)] = Grown(
            size, m.symbol(owner).derive("reached", "length"), size.value - before
        )
    return size


def counts_on(m: Machine, before: Abstract, after: Const) -> Const:
    """What a counter comes to, which is known to grow in a loop: `steps += 1`,
    `for steps in itertools.count()`.
    """
    if not isinstance(before, Const) or not type(before.value) is type(after.value) is int:
        return after
    if m.loops and before.value < after.value:
        known = growing(m).get(id(before))
        growing(m)[id(after)] = Grown(
            after, known.of if known else Symbol("count"), after.value - before.value
        )
    return after


def growing(m: Machine) -> dict[int, Grown]:
    """The numbers that grow from round to round, by their identity."""
    found: dict[int, Grown] = m.state.setdefault("growing", {})
    return found
