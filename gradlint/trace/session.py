"""One traced run: what has been noted so far, how closely the program is watched at this moment,
and why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Literal, TypeVar

import torch

from gradlint.tape import Kind
from gradlint.trace.attention import Attention
from gradlint.trace.collectives import Collectives
from gradlint.trace.counting import counted
from gradlint.trace.frames import Place, here, is_direct, nearest
from gradlint.trace.gradmode import GradMode
from gradlint.trace.memory import Memory
from gradlint.trace.movement import Movement
from gradlint.trace.names import Names
from gradlint.trace.pause import Differentiation, Pause, Underway
from gradlint.trace.private import enter_mode, lacking, pop_mode, top_mode
from gradlint.trace.recorder import Recorder
from gradlint.trace.records import Held, Note, Op, serial
from gradlint.trace.steppers import Clearing, Stepper
from gradlint.trace.timeline import Timeline

Level = Literal["auto", "watch", "record"]
Result = TypeVar("Result")
_MAIN_THREAD = threading.main_thread().ident
_MOST_NOTES = 20_000
_METHODS = (
    (staticmethod, staticmethod),
    (classmethod, classmethod),
    (
        types.ClassMethodDescriptorType,
        classmethod,
    ),  # written in C: `Function.apply` since torch 2.14
)


class Stop(SystemExit):
    """The run has taken the optimizer steps it was asked for."""


class Session:
    """What is known of the running program. Made once; the probes and the recorder write into
    it.
    """

    def __init__(self, level: Level = "auto", *, first: int = 3, steps: int | None = None) -> None:
        self.level, self.limit = level, steps
        self.step = 0
        self.quiet = False
        self.recording = level != "watch"
        self.memory = Memory()
        self.names = Names(self.memory)
        self.gradmode = GradMode(self)
        self.attention = Attention(self, first)
        self.notes: list[Note] = []
        self.steppers: dict[int, tuple[weakref.ref[Any], Stepper]] = {}
        self.wrappers: list[weakref.ref[torch.nn.Module]] = []  # DistributedDataParallel
        self.autocast: str | None = None
        self.autocasts: list[Place] = []  # where each that is on was entered
        self.faults: list[str] = []
        self.blind: dict[str, None] = {}
        self.timeline = Timeline()
        self.movement = Movement()
        self.scaler: Stepper | None = None
        self.pid = os.getpid()
        self._is_on = False
        self.depth = 0
        self.stepping = False
        self.underway: Underway | None = None
        self.differentiation: Differentiation | None = None
        self.cleared: list[Clearing] = []  # during the step that runs
        self.scaler_stepped = False
        self.in_train = self.in_apply = self.scheduling = self.is_tapped = False
        self.without_cuda = False
        self.sums = 0
        self.batched: set[int] = set()  # the loops in a library's file that got a second batch
        self.given: set[Held] = set()
        self.read_out: list[Iterator[Any]] = []  # by an optimizer
        self.calling = False
        self.on_loss: list[Callable[[torch.Tensor, Op], None]] = []
        self.on_loss_made: list[Callable[[torch.Tensor, Op], None]] = []
        self.on_optimizer: list[Callable[[], None]] = []
        self.on_step: list[Callable[[], None]] = []
        self.on_end: list[Callable[[], None]] = []
        self.scaled: dict[int, Op] = {}
        self.scales = False
        # parameters that DDP missed, by the names that it gives them
        self.left_out: list[tuple[str, Held]] = []
        # the recurrent layers of which cuDNN refused a backward
        self.refused_in_eval: list[tuple[str, ...]] = []
        self.left_dark: dict[object, Place] = {}  # where grad mode was off and nothing was recorded
        self.collectives = Collectives()
        self._flagged: set[tuple[Held, str]] = set()
        # of accumulated gradients
        self.hooks: dict[CodeType, tuple[tuple[int, int], Place, Op, int]] = {}
        self._leaves: dict[Held, Op] = {}
        self._undo: list[Callable[[], None]] = []
        self.blind.update(dict.fromkeys(lacking()))
        self.recorder = Recorder(self)

    # --- switching on and off

    def start(self) -> None:
        """Begin to watch, in this thread."""
        enter_mode(self.recorder)
        self._is_on = True
        # what is registered stays for the life of the process
        ours = weakref.WeakMethod(self._in_child)
        os.register_at_fork(after_in_child=lambda: (method := ours()) and method())

    def _in_child(self) -> None:
        """A forked process (a DataLoader worker) has its own report, which is none."""
        self.quiet = True

    def close(self) -> None:
        """Stop watching and undo what the probes replaced."""
        self.quiet = True
        for each in (self.movement.compare, *self.on_end):
            self.guarded(each)
        if self.attention.runs_eagerly:
            torch.compiler.set_stance("default")
        if top_mode() is self.recorder:
            pop_mode()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def replace(
        self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Callable[[], None]:
        """Put `wrap(original)` in the place of `owner.name`, as `put` does."""
        own = vars(owner)[name]
        original = own.__func__ if isinstance(own, (staticmethod, classmethod)) else own
        made: Any = functools.wraps(original)(wrap(original))
        return self.put(
            owner, name, next((kind(made) for way, kind in _METHODS if isinstance(own, way)), made)
        )

    def put(self, owner: Any, name: str, made: Any) -> Callable[[], None]:
        """Put `made` in the place of `owner.name` until the session is closed, or until what is
        returned is called.
        """
        own = vars(owner)[name]

        def undo() -> None:
            if vars(owner).get(name) is made:
                setattr(owner, name, own)

        setattr(owner, name, made)
        self._undo.append(undo)
        return undo

    def add(self, owner: Any, name: str, made: Any) -> None:
        """Put an attribute where there was none until the session is closed."""
        setattr(owner, name, made)
        self._undo.append(lambda: delattr(owner, name))

    def paused(self) -> Pause:
        """The recorder is off: inside a backward pass or an optimizer step. Left in place below
        other modes.
        """
        return Pause(self)

    def guarded(self, function: Callable[..., Result], *args: Any) -> Result | None:
        """Call our own code: a fault in it is counted and never reaches the program, its calls
        reach no mode.
        """
        try:
            if self._is_covered():
                with torch._C.DisableTorchFunction():
                    return function(*args)
            return function(*args)
        except Exception as error:
            self.faults.append(
                f"{getattr(function, '__qualname__', function)}: {type(error).__name__}: {error}"
            )
            return None

    def _is_covered(self) -> bool:
        """Whether a mode of the program's is on top of the recorder: it would see the calls of
        torch that we make.
        """
        top = top_mode()
        return top is not None and top is not self.recorder

    # --- notes

    def note(self, kind: str, place: Place, **facts: Any) -> Note:
        """Write down that something happened."""
        note = Note(kind, place, self.step, facts=facts)
        if threading.get_ident() != _MAIN_THREAD:
            self.blind[
                "several threads train: what they do is recorded in the order in which it happened"
            ] = None
        self.notes.append(note)
        if len(self.notes) > _MOST_NOTES:
            self._forget_the_middle()
        return note

    def noted_then(self, when: tuple[int, int], kind: str, place: Place, **facts: Any) -> None:
        """A note of what happened before, at that serial number and step."""
        note = self.note(kind, place, **facts)
        note.serial, note.step = when

    def moment(self) -> tuple[int, int]:
        """Now, for what may be noted later."""
        return next(serial), self.step

    def happened(self, kind: str, **facts: Any) -> Note:
        """A note at the user's line, with the counters of the loops around it."""
        return self.note(kind, counted(nearest()), **facts)

    def _forget_the_middle(self) -> None:
        """Keep the beginning and the end of a long run, cut between two optimizer steps."""
        steps = sorted({note.step for note in self.notes})
        kept = {*steps[: len(steps) // 4], *steps[-len(steps) // 4 :]}
        self.notes = [note for note in self.notes if note.step in kept]

    # --- what the probes report

    def leaf(self, held: Held) -> Op:
        """The record of a parameter as a leaf of a graph."""
        if held not in self._leaves:
            self._leaves[held] = Op(
                "parameter",
                Kind.PARAMETER,
                (),
                held.place,
                next(serial),
                self.step,
                True,
                held=held,
            )
        return self._leaves[held]

    def gradient_dropped(self, parameter: torch.Tensor) -> None:
        """`p.grad = None`, or zeros."""
        held = self.memory.held(parameter)
        last = self.notes[-1] if self.notes else None
        place = here()
        if (
            last is not None
            and last.kind == "zero"
            and last.facts["stepper"] is None
            and last.place == place
        ):
            last.facts["held"].append(held)
        else:
            self.note("zero", place, stepper=None, held=[held])

    def flag_set(self, held: Held, what: str, place: Place) -> None:
        """A parameter was frozen or thawed; each is noted once of each parameter."""
        if (held, what) in self._flagged:
            return
        self._flagged.add((held, what))
        last = self.notes[-1] if self.notes else None
        if last is not None and last.kind == what and last.place == place:
            last.facts["held"].append(held)
        else:
            self.note(what, place, held=[held])

    def gradient_given(self, parameter: torch.Tensor) -> None:
        """`p.grad = gradient`: that it has one says nothing of any loss."""
        self.given.add(self.memory.held(parameter))
        self.tapped()

    def tapped(self) -> None:
        """From now on gradients may be put to use without being read: a hook sees them, or another
        name has them.
        """
        if not self.is_tapped:
            self.is_tapped = True
            self.note("fact", here(), what="gradients-tapped", detail="")

    def gradient_read(self, op: Op, place: Place) -> None:
        """`p.grad` was read."""
        last, own = self.notes[-1] if self.notes else None, is_direct()
        if (
            last is not None
            and last.kind == "read"
            and last.place == place
            and last.facts["own"] is own
        ):
            last.facts["ops"].append(op)
        else:
            self.note("read", place, ops=[op], own=own)

    def stepped(self, stepper: Stepper) -> None:
        """An optimizer has stepped; in hooks of a backward, many may, one for each parameter."""
        stepper.steps += 1
        if self.differentiation is None:
            self.go_on()
        else:
            self.differentiation.has_stepped = True

    def go_on(self) -> None:
        """Behind a step, time goes on, and with it how closely we look."""
        self.step += 1
        for each in self.on_step:
            each()
        self.memory.forget_step()
        self.scaled.clear()
        self.attention.stepped()

    def leave(self) -> None:
        """Take the recorder off for good; what the probes replaced still reports."""
        self._is_on = False
        if top_mode() is self.recorder:
            pop_mode()

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """The recorder is off the stack of modes, where it is on top; what the probes replaced
        still reports.
        """
        was_on_top = top_mode() is self.recorder
        if was_on_top:
            pop_mode()
        try:
            yield
        finally:
            if was_on_top and not self.quiet:
                enter_mode(self.recorder)

    @contextlib.contextmanager
    def also_here(self) -> Iterator[None]:
        """The recorder is on in this thread, too."""
        watches = self._is_on and not self.quiet
        if watches:
            enter_mode(self.recorder)
        try:
            yield
        finally:
            if watches and top_mode() is self.recorder:
                pop_mode()

    def stepper(self, thing: Any, cls: str = "") -> Stepper:
        """The record of an optimizer, scaler or scheduler; made where it is first seen."""
        entry = self.steppers.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        made = Stepper(cls or type(thing).__name__, nearest())
        self.steppers[id(thing)] = (weakref.ref(thing), made)
        return made
