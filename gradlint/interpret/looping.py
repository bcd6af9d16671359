"""A loop that is being run: its rounds, and what they are told of."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.interpret.symbols import Symbol, serials
from gradlint.interpret.values import Abstract
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


@dataclass(eq=False, slots=True)
class Loop:
    """A loop that is being run: how many rounds it takes, and which one it is in."""

    number: int
    rounds: int
    round: int = 0
    over: str = ""
    length: int | None = None  # that is written down, of what it runs over
    node: ir.Node | None = None
    target: ir.Node | None = None  # what each round binds anew
    looks_up: bool = False  # in what it runs over, by what that gives: a dict
    numbers: range = range(0)  # the values of its induction variable, where not all are unrolled
    shown: tuple[int, ...] = ()  # those of `numbers` that are unrolled
    skipped: int = 0  # iterations before this one that are not unrolled
    end: tape.Iteration | None = None  # of the last round
    # of what it runs over, and numbers that it runs to
    sizes: dict[Symbol, int] = field(default_factory=dict)
    drawn: set[Symbol] = field(default_factory=set)  # what `next` takes items out of in its rounds
    # the number of its last round, and the unknown one that it runs to
    last: tuple[Abstract, Symbol] | None = None
    # the number of the first symbol that is made in it
    since: int = field(default_factory=serials.__next__)
    is_single: bool = False  # it runs over one item: its rounds are none
    is_sized: bool = False  # it runs over a list or a tuple
    ends_early: bool = False  # what a round finds can end it
    # the loops, by number, of the generator that it runs over
    fed_by: set[int] = field(default_factory=set)
    # that a `while` asks for, at first
    states: dict[int, tuple[object, ir.Node, Frame]] = field(default_factory=dict)
    # the rounds in which it takes items out of an iterator, until there are none
    drains: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether another round is run; one that drains an iterator goes round once more, to find
        it exhausted.
        """
        return self.round < self.rounds if self.drains is None else self.round <= self.drains

    @property
    def hands_on(self) -> set[Symbol]:
        """What the items come from that its rounds get."""
        return self.sizes.keys() | self.drawn

    def is_on_the_way(self) -> None:
        """Its last round was a part of one: a machine of several states has not come round yet."""
        self.rounds += 1
        self.drains = None if self.drains is None else self.drains + 1

    def ends(self) -> None:
        """Its last round was the last one: there was nothing more to run over."""
        if self.end is not None:
            self.end.last = True


class Looping:
    """`Machine.loop`; a class, which is entered and left in a fraction of the time that a generator
    takes.
    """

    __slots__ = ("loop", "m")

    def __init__(self, m: Machine, loop: Loop) -> None:
        self.m, self.loop = m, loop

    def __enter__(self) -> Loop:
        self.m.loops.append(self.loop)
        self.m._rounds = None
        return self.loop

    def __exit__(self, *error: object) -> None:
        self.m.loops.pop()
        self.m._rounds = None


class Round:
    """`Machine.round`: its end is told where nothing has left it."""

    __slots__ = ("at", "loop", "m", "number", "over", "round", "text")

    def __init__(self, m: Machine, loop: Loop, at: Span, text: str) -> None:
        self.m, self.loop, self.at, self.text = m, loop, at, text
        self.number, self.round, self.over = loop.number, loop.round, loop.over

    def __enter__(self) -> None:
        self.m.emit(self._event(begins=True))

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.loop.end = self._event(begins=False)
            self.m.emit(self.loop.end)
            self.m.turn(self.loop, self.loop.round + 1)

    def _event(self, *, begins: bool) -> tape.Iteration:
        return tape.Iteration(
            at=self.at,
            loop=self.number,
            round=self.round,
            begins=begins,
            over=self.over,
            text=self.text,
            ends_early=self.loop.ends_early,
            is_sized=self.loop.is_sized,
        )
