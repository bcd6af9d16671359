"""One path through one entry: the state of the interpreter. Everything that happens to tensors goes
through it and onto the tape.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret.gaps import Gap, GiveUp
from gradlint.interpret.looping import Loop, Looping, Round
from gradlint.interpret.scopes import Branch, Frame, GradState, Signal
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.tables import ATTRIBUTE, CALL, EVALUATE, EXECUTE, ITERATE, Visit
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Lib,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.counters import Course
    from gradlint.interpret.paths import Oracle
    from gradlint.interpret.session import Session

MAX_DEPTH = 24  # calls within calls
MAX_RECURSION = 4  # of one function in itself
MAX_UNKNOWN = 2  # the same, where it is given nothing new but what is unknown
ITEMS = 2  # of something without a known end, where a list of it is made within another
# of a known sequence; behind the first ones, a loop shows nothing new, but for a model's
MAX_ITEMS = 12
MAX_STEPS = 40_000  # statements and expressions on one path
MAX_OF_TESTS = 12_000  # the same in a test, which trains to see that something trains
MAX_SILENT = 5_000  # the same where nothing speaks of training, while a path has come to none

TRAINING = (
    tape.Backward, tape.OptimizerStep, tape.ZeroGrad, tape.Clip, tape.Unscale, tape.ScalerUpdate,
    tape.SchedulerStep,
)  # fmt: skip

# what code without a tensor in view leaves, too
_IN_PASSING = (tape.Iteration, tape.Fact, tape.ModuleCall)


class Raised(Exception):
    """An exception of the interpreted program; `running` are the functions that it has ended,
    innermost first.
    """

    def __init__(self, value: Abstract, at: Span) -> None:
        super().__init__()
        self.value = value
        self.at = at
        self.running: list[Function] = []


class Stop(Exception):
    """The interpreted program ends: `sys.exit()`."""


class Machine:
    """The state of one path."""

    def __init__(self, entry: str, oracle: Oracle, session: Session) -> None:
        self.tape = tape.Tape(entry)
        self.oracle = oracle
        self.session = session
        self.grad = GradState()
        self.autocast: list[tuple[str | None, bool | None]] = []
        self.checkpoint = ""
        self.where: tuple[Span, ...] = ()  # the calls that are being run, outermost first
        self.running: list[Any] = []
        self.frames: list[Frame] = []
        self.floor = 0  # how many of them wait for the code of a module
        self.protected: list[Frame] = []  # whose `try` catches what a backward raises
        # whose bodies are being run, and in how many loops
        self.trying: list[tuple[ir.Try, Frame, int]] = []
        self.appended: dict[int, Span] = {}  # where something was last put into a container
        # of all conditions: what statements meet there is met by the next branch
        self.outside = Branch()
        self.branch = self.outside
        # of counters, by the places where they are held against a number
        self.courses: dict[object, Course] = {}
        self.loops: list[Loop] = []
        # in which these are; None where that has changed
        self._rounds: tuple[tuple[int, int], ...] | None = ()
        self.loop_count = 0
        # loops, by number: `for callback in callbacks: callback(batch)`
        self.over_callables: set[int] = set()
        self.steps = 0
        self.made = 0  # events on the tape that modules, gradients and optimizers have
        # the steps of functions without a tensor in view, of all calls
        self.spent: dict[ir.Node, int] = {}
        self.calm = 0  # the steps at which is looked for calls that run for long without a tensor
        self.most = session.most if session.may_train or session.contract else MAX_SILENT
        self.nodes: dict[Symbol, tape.Value] = {}
        self.tensors: dict[Symbol, Tensor] = {}
        # of what a part is given: the operations that have it as an input
        self.uses: dict[int, set[str]] = {}
        self.leaves: dict[Symbol, tape.Value] = {}
        self.parameters: dict[tape.Parameter, Tensor] = {}
        self.views: dict[int, list[Tensor]] = {}
        self.symbols: dict[int, tuple[object, Symbol]] = {}
        self._values: dict[Symbol, list[tape.Value]] = {}
        self.objects: dict[Symbol, Instance | Object] = {}
        # what a truth was the answer to
        self.tests: dict[int, tuple[tape.Value | Const, Test]] = {}
        self.concrete: dict[Symbol, Const] = {}
        # what was put into the unknown
        self.overrides: defaultdict[Symbol, dict[str, Abstract]] = defaultdict(dict)
        self.state: dict[str, Any] = {}  # what the library's model keeps, by its own keys
        # of the side of a branch that is run; none at the top
        self.journal: list[tuple[object, ...]] | None = None
        self.sinks: list[tape.Backward] = []
        self.executed: set[Any] = session.executed

    # running

    def evaluate(self, node: ir.Node, frame: Frame) -> Abstract:
        self.steps += 1
        if self.steps > self.most:
            raise GiveUp(Gap("steps", frame.span(node), self.tape.entry))
        return EVALUATE[type(node)](self, node, frame)

    def spend(self, at: Span) -> None:
        """Counts a step of the library's model that no expression of the program stands for."""
        self.steps += 1
        if self.steps > self.most:
            raise GiveUp(Gap("steps", at, self.tape.entry))

    def execute(self, statements: list[ir.Node], frame: Frame) -> Signal | None:
        for statement in statements:
            self.steps += 1
            if self.steps > self.most:
                raise GiveUp(Gap("steps", frame.span(statement), self.tape.entry))
            signal: Signal | None = EXECUTE[type(statement)](self, statement, frame)
            if signal is not None:
                return signal
        return None

    def call(self, function: Abstract, call: Call) -> Abstract:
        """Calls any value with the arguments of `call`."""
        return CALL[type(function)](self, function, call)

    def invoke(
        self, function: Abstract, args: list[Abstract], at: Call, /, **kwargs: Abstract
    ) -> Abstract:
        """Calls `function` from a handler, at the place of the call that is being handled."""
        return self.call(function, Call(at.name, args, kwargs, at.node, at.frame))

    def attribute(self, value: Abstract, name: str, at: Call) -> Abstract:
        """`value.name`; something unknown where nothing is known of it."""
        handler = ATTRIBUTE.get(type(value))
        found = None if handler is None else handler(self, value, name, at)
        if found is None:
            symbol = self.symbol(value)
            return Unknown(symbol.derive(("attribute", name), f"{symbol.text}.{name}"))
        return found

    def iterate(self, value: Abstract, visit: Visit, at: Call) -> None:
        """Hands the items of `value` to `visit`, one after the other, until it returns True."""
        ITERATE[type(value)](self, value, visit, at)

    def items(self, value: Abstract, at: Call) -> list[Abstract]:
        """The items of `value`, eagerly; of something unknown, a few."""
        if (
            type(value) is Sequence
            and not value.open
            and value.kind != "generator"
            and len(value.items) <= MAX_ITEMS
        ):
            self.loop_count += 1  # a loop, as for any other: there is nothing to be seen of it
            return list(value.items)
        found: list[Abstract] = []

        def visit(item: Abstract) -> bool:
            found.append(item)
            return False

        with self.loop("", self.listed):
            self.iterate(value, visit, at)
        return found

    # identity

    def symbol(self, value: Abstract) -> Symbol:
        """The symbol that stands for a value; one per object, kept for the path."""
        if isinstance(value, Unknown):
            return value.symbol
        if isinstance(value, Const):
            return self.session.constant_symbol(value.value)
        if isinstance(value, Lib):  # one name, however often it is read: `x.dtype == torch.long`
            return self.session.library_symbol(value.name)
        key: object = value.node if isinstance(value, Tensor) else value
        known = self.symbols.get(id(key))
        if known is None:
            text = value.node.title if isinstance(value, Tensor) else type(value).__name__.lower()
            known = self.symbols[id(key)] = (key, Symbol(text))
            if isinstance(key, tape.Value):
                self._values.setdefault(known[1], []).append(key)
            elif isinstance(key, Instance | Object):
                self.objects[known[1]] = key
        return known[1]

    def identify(self, value: tape.Value, symbol: Symbol) -> None:
        """From now on questions about `value` are those about `symbol`."""
        self.symbols[id(value)] = (value, symbol)
        self._values.setdefault(symbol, []).append(value)
        if symbol.asked is not symbol:
            self._values.setdefault(symbol.asked, []).append(value)

    def override(self, symbol: Symbol, how: str, key: object) -> Abstract | None:
        """What was put where something unknown has an "attribute" or "item"; None where nothing
        was.
        """
        own = self.overrides.get(symbol)
        return own.get(f"{how}:{key}") if own else None

    def values_of(self, symbols: Collection[Symbol]) -> tuple[tape.Value, ...]:
        """The values on the tape that are one of `symbols`, or about which the same questions are
        asked.
        """
        found = {id(value): value for symbol in symbols for value in self._values.get(symbol, ())}
        if not found:
            return ()
        now = {key: self.symbols[key][1] for key in found}
        return tuple(
            value
            for key, value in found.items()
            if now[key] in symbols or now[key].asked in symbols
        )

    def unknown(
        self, text: str, *, data: bool = False, type: str = "", test: Test | None = None
    ) -> Unknown:
        """Something new that nothing is known of."""
        return Unknown(Symbol(text), data=data, type=type, test=test)

    # places

    @property
    def is_script(self) -> bool:
        """Whether this path runs a whole file from its top, and no function that others call."""
        return self.tape.entry.endswith(":<script>")

    @property
    def rounds(self) -> tuple[tuple[int, int], ...]:
        """The rounds of the loops that are being run; one tuple for all that happens in them."""
        if self._rounds is None:
            self._rounds = tuple(
                [
                    (loop.number, loop.round)
                    for loop in self.loops
                    if loop.over and not loop.is_single
                ]
            )
        return self._rounds

    def turn(self, loop: Loop, to: int) -> None:
        """Has a loop be in another round."""
        loop.round = to
        self._rounds = None

    def set_loops(self, loops: list[Loop]) -> None:
        """Has these loops be the ones that are being run."""
        self.loops = loops
        self._rounds = None

    def is_driver(self, frame: Frame) -> bool:
        """Whether a scope is one of the driver of a part, which is no code of the user's."""
        driver = self.session.driver
        return driver is not None and frame.code is driver[0]

    def emit(self, event: tape.Event) -> None:
        """Writes an event on the tape, at this place in the loops and calls."""
        event.stack, event.iteration = self.where, self.rounds
        event.assumed = bool(self.frames) and self.is_driver(self.frames[-1])
        self.tape.write(event)
        self.made += not isinstance(event, _IN_PASSING)
        if isinstance(event, TRAINING):
            self.most = self.session.most
        if isinstance(event, tape.Backward):
            self.sinks.append(event)
            self.session.loops.trained(self, event)
        if isinstance(event, tape.ModuleCall):
            event.within = self._methods()
        if self.journal is not None:
            self.journal.append(_written(type(event).__name__))

    def _methods(self) -> tuple[tuple[Span, tape.Module], ...]:
        """The calls of modules' methods that are being run, outermost first."""
        calls = zip(self.where, self.frames[-len(self.where) :], strict=False) if self.where else ()
        owners = ((at, frame.receiver) for at, frame in calls)
        return tuple(
            (at, owner.module)
            for at, owner in owners
            if owner is not None and owner.module is not None
        )

    def note(self, *entry: object) -> None:
        """Writes down that something was assigned, so that branches that do the same are seen
        to.
        """
        if self.journal is not None:
            self.journal.append(entry)

    # loops and modes

    @property
    def listed(self) -> int:
        """How many items of something without a known end a list of them has; within another list,
        a few.
        """
        return ITEMS if any(not loop.over for loop in self.loops) else self.session.loops.listed

    def loop(self, over: str, rounds: int = 2) -> Looping:
        """Runs a loop."""
        self.loop_count += 1
        return Looping(self, Loop(self.loop_count, rounds, over=over))

    def round(self, loop: Loop, at: Span, text: str) -> Round:
        """One round of a loop over what `text` says."""
        return Round(self, loop, at, text)

    @contextmanager
    def protecting(self, frames: list[Frame]) -> Iterator[None]:
        """Runs the body of a `try` that catches what a backward in these scopes raises."""
        before, self.protected = self.protected, self.protected + frames
        try:
            yield
        finally:
            self.protected = before

    @contextmanager
    def grad_mode(self, enabled: bool, at: Span, *, inference: bool = False) -> Iterator[None]:
        """Runs a body under another grad mode, which ends with it."""
        before = self.grad
        self.enter_grad_mode(enabled, at, inference=inference)
        try:
            yield
        finally:
            self.restore_grad_mode(before, at)

    def enter_grad_mode(
        self, enabled: bool, at: Span, *, inference: bool = False, by_call: bool = False
    ) -> None:
        """Sets grad mode. Inside inference mode nothing switches recording on again (torch
        2.13).
        """
        if enabled and self.grad.inference and not inference:
            self.grad = replace(self.grad)
        else:
            self.grad = GradState(
                enabled, inference or self.grad.inference, at, self.where, by_call
            )
        now = self.grad
        self.emit(
            tape.GradMode(at=at, enabled=now.enabled, inference=now.inference, by_call=by_call)
        )

    def restore_grad_mode(self, before: GradState, at: Span) -> None:
        """Goes back to the grad mode that was in force before."""
        self.grad = before
        self.emit(
            tape.GradMode(at=at, enabled=before.enabled, inference=before.inference, entered=False)
        )

    def has_trained(self) -> bool:
        """Whether the path has come to a part of a training step."""
        return any(isinstance(event, TRAINING) for event in self.tape.events)

    def gap(self, kind: str, at: Span, detail: str = "") -> None:
        self.session.gaps.add(Gap(kind, at, detail))


@functools.cache
def _written(kind: str) -> tuple[object, ...]:
    """What the journal says of an event: the same for all of a kind."""
    return "event", kind
