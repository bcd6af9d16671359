"""One traced run: what has been noted so far, how closely the program is watched at this moment,
and why.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple, TypeVar

import torch

from gradlint.tape import Kind
from gradlint.trace.counting import counted
from gradlint.trace.frames import Frame, Place, here, is_direct, is_users, nearest
from gradlint.trace.memory import Memory
from gradlint.trace.movement import Movement
from gradlint.trace.private import enter_mode, lacking, pop_mode, top_mode
from gradlint.trace.recorder import Recorder
from gradlint.trace.records import Held, Note, Op, serial
from gradlint.trace.source import context

Level = Literal["auto", "watch", "record"]
Result = TypeVar("Result")
_GRAD_MODES = torch.autograd.grad_mode.__file__
_DISTRIBUTIONS = os.path.join("torch", "distributions", "")
_MAIN_THREAD = threading.main_thread().ident
_MOST_WITHOUT_STEP = 64  # backward passes: a program that never steps is not recorded for ever
_MOST_NOTES = 20_000
_EVALUATIONS = 4
_EAGER = "compiled code runs eagerly, so that it can be seen, and with eager rounding and dropout"
_UNSEEN = (
    "what happens in compiled code is not seen; --level record runs it eagerly, with eager "
    "rounding and dropout"
)
_HAS_STANCES = hasattr(torch.compiler, "set_stance")
_METHODS = (
    (staticmethod, staticmethod),
    (classmethod, classmethod),
    (
        types.ClassMethodDescriptorType,
        classmethod,
    ),  # written in C: `Function.apply` since torch 2.14
)
_LASTING = frozenset([
    "backward", "batch", "clip", "fact", "frozen", "kept", "module", "read", "scheduler", "step",
    "thawed", "train",
    "unscale", "update", "zero",
])  # fmt: skip


def _lasts(note: Note) -> bool:
    """Whether the account of a step hangs on it; gradients can be cleared in place, or spoilt."""
    if note.kind == "inplace":
        return note.facts["before"].gradient_of is not None or note.facts["written"].lasts
    return note.kind in _LASTING


class Stop(SystemExit):
    """The run has taken the optimizer steps it was asked for."""


@dataclass(eq=False, slots=True)
class Stepper:
    """An optimizer, a scaler or a scheduler: what a report needs once the object itself is gone."""

    cls: str
    place: Place
    name: str = ""
    held: list[Held] = field(default_factory=list)
    # whom these identities are of
    seen: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    frozen: set[int] = field(default_factory=set)
    optimizer: Stepper | None = None
    enabled: bool | None = True
    device: str = ""
    unscales: bool = False
    is_kept: bool = False  # whether the numbers of what it holds now are taken down
    starved: frozenset[int] = frozenset()
    steps: int = 0


class Clearing(NamedTuple):
    """Gradients cleared: where, of which optimizer or of which parameters, and whether something
    had read them.
    """

    place: Place
    stepper: Stepper | None
    parameters: list[Held]
    was_read: bool


class Root(str):
    """The name of an outermost module: equal to no other, though another module is called the
    same.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(eq=False, slots=True)
class Collectives:
    """The last collectives of this rank, in order: what was called, and where."""

    last: deque[tuple[str, Place]] = field(default_factory=lambda: deque(maxlen=4096))
    count: int = 0
    inside: bool = False

    def add(self, name: str, place: Place) -> None:
        """Write one down."""
        self.last.append((name, place))
        self.count += 1


@dataclass(eq=False, slots=True)
class Timeline:
    """Gradient norms by parameter, one column a step, and the losses; filled only where they are
    asked for.

    A norm is None where a step found no gradient of a parameter that requires one. `on_norms` hears
    of each step, also where none is `kept`.
    """

    wanted: bool = False
    kept: bool = True
    batch: int | None = None  # that a DataLoader gave last, from 0
    # the first: what, step, batch, where
    not_finite: tuple[str, int, int | None, Place] | None = None
    on_norms: list[Callable[[int, dict[str, float | None]], None]] = field(default_factory=list)
    norms: list[tuple[int, dict[str, float | None]]] = field(default_factory=list)
    # of each backward, with the steps before it
    losses: list[tuple[int, float]] = field(default_factory=list)
    # whether a step ever found a gradient that is not zero
    trained: dict[Held, bool] = field(default_factory=dict)

    def look(self, what: str, value: float, step: int, place: Place) -> None:
        """Takes down the first value that is not finite."""
        if self.not_finite is None and not math.isfinite(value):
            self.not_finite = what, step, self.batch, place


class Session:
    """What is known of the running program. Made once; the probes and the recorder write into
    it.
    """

    def __init__(self, level: Level = "auto", *, first: int = 3, steps: int | None = None) -> None:
        self.level, self.first, self.limit = level, first, steps
        self.step = 0
        self.quiet = False
        self.recording = level != "watch"
        self.memory = Memory()
        self.notes: list[Note] = []
        self.steppers: dict[int, tuple[weakref.ref[Any], Stepper]] = {}
        self.modules: list[weakref.ref[torch.nn.Module]] = []
        self.wrappers: list[weakref.ref[torch.nn.Module]] = []  # DistributedDataParallel
        self.grad_off: Place = ()
        self._restored: weakref.WeakKeyDictionary[Any, tuple[Place, bool]] = (
            weakref.WeakKeyDictionary()
        )
        self._made_at: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()
        self.inference_at: Place = ()
        self.samples = False  # grad mode is off inside a distribution's `sample()`
        self.autocast: str | None = None
        self.faults: list[str] = []
        self.blind: dict[str, None] = {}
        self.timeline = Timeline()
        self.movement = Movement()
        self.scaler: Stepper | None = None
        self.compiled = self.runs_eagerly = False
        self.again = first
        # put into it since the last backward
        self._in_eval: list[weakref.ref[torch.nn.Module]] = []
        # The parts that an `eval()` put into eval mode, and no `train()` back, with the module that
        # was asked.
        self.asleep = weakref.WeakKeyDictionary[torch.nn.Module, weakref.ref[torch.nn.Module]]()
        self.evaluations = 0  # the calls of modules that are noted although the run is only watched
        self._sinks: set[object] = set()
        self._late: set[object] = set()
        self.pid = os.getpid()
        self._is_on = False
        self.depth = 0
        self.stepping = False
        self.cleared: list[Clearing] = []  # during the step that runs
        self.scaler_stepped = False
        self.named_at = (0, 0)
        self.in_train = self.in_apply = self.scheduling = self.is_tapped = False
        self.without_cuda = False
        self.sums = 0
        self.batched: set[int] = set()  # the loops in a library's file that got a second batch
        self.given: set[Held] = set()
        self.read_out: list[Iterator[Any]] = []  # by an optimizer
        self._without_step = 0
        self.calling = False
        self.before_compiling: list[Callable[[], None]] = []
        self._roots: dict[int, tuple[weakref.ref[torch.nn.Module], Root]] = {}
        self._parts: dict[int, tuple[weakref.ref[torch.nn.Module], tuple[str, ...]]] = {}
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
        self._modules_made: dict[int, tuple[weakref.ref[torch.nn.Module], Place]] = {}
        self._flagged: set[tuple[Held, str]] = set()
        # of accumulated gradients
        self.hooks: dict[CodeType, tuple[tuple[int, int], Place, Op, bool]] = {}
        self._firsts: dict[int, tuple[weakref.ref[torch.nn.Module], tuple[Held, int] | None]] = {}
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
        for each in (*self.on_end, self.movement.compare):
            self.guarded(each)
        if self.runs_eagerly:
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

    def paused(self) -> _Pause:
        """The recorder is off: inside a backward pass or an optimizer step. Left in place below
        other modes.
        """
        return _Pause(self)

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

    def grad_mode_switched(self, enabled: bool, by: FrameType) -> None:
        """Grad mode went on or off in the frame `by`: what the end of an `enable_grad` restores was
        there before it.
        """
        if by.f_back is not None and by.f_back.f_code.co_filename == _GRAD_MODES:
            by = by.f_back  # `no_grad` leaves it to a `set_grad_enabled`
        manager = by.f_locals.get("self") if by.f_code.co_filename == _GRAD_MODES else None
        before = (self.grad_off, self.samples)
        self.grad_mode_changed(enabled, manager)
        if manager is None:
            return
        if by.f_code.co_name != "__exit__":
            self._restored[manager] = before
        elif not enabled and manager in self._restored:
            self.grad_off, self.samples = self._restored.pop(manager)

    def grad_mode_changed(
        self, enabled: bool, manager: object = None, inference: bool = False
    ) -> None:
        """Grad mode went on or off, by a context manager, a decorator or a call."""
        place = self.switch()
        if not enabled:
            self.grad_off = self.entered_by(manager, place)
        self.samples = not enabled and _in_distributions()
        if inference:
            self.inference_at = () if enabled else self.grad_off
        self.note("gradmode", place, enabled=enabled, inference=inference)
        if enabled:
            self.grad_off = ()

    def manager_made(self, manager: object) -> None:
        """A context manager that switches a mode was made, to be entered here or elsewhere."""
        self._made_at[manager] = nearest()[:1]

    def entered_by(self, manager: object, place: Place) -> Place:
        """What made the manager that a `with` enters, with the calls that led to the `with`; else
        the place itself.
        """
        entered = bool(place) and context(place[0].code, place[0].instruction) == "with"
        made = self._made_at.get(manager, ()) if entered and manager is not None else ()
        return (*made, *place[1:]) if made else place

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

    def switch(self) -> Place:
        """Where a mode was entered or left."""
        return _switch()

    def part(self, module: torch.nn.Module) -> tuple[str, ...]:
        """The path of a module from the outermost one that holds it."""
        entry = self._parts.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        return (self._root(module),)

    def _root(self, module: torch.nn.Module) -> Root:
        """The name of an outermost module; what is wrapped under its own name keeps that."""
        entry = self._roots.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        name = _variable(module) or type(module).__name__
        inside = set(map(id, module.modules()))
        alike = (
            root
            for key, (known, root) in self._roots.items()
            if key in inside and known() is not None
        )
        root = next((each for each in alike if str.__eq__(each, name)), None) or Root(name)
        self._roots[id(module)] = weakref.ref(module), root
        return root

    def variable(self, thing: object) -> str:
        """The name that the program has for an object at this moment, or ''."""
        return _variable(thing)

    def made_at(self, module: torch.nn.Module | None) -> Place:
        """Where the program made a module; () where that was not seen."""
        entry = self._modules_made.get(id(module)) if module is not None else None
        return entry[1] if entry is not None and entry[0]() is module else ()

    def module_made(self, module: torch.nn.Module) -> None:
        """A module begins to be one."""
        reference = weakref.ref(module)
        self.modules.append(reference)
        self._modules_made[id(module)] = reference, here()

    def find_modules(self) -> None:
        """The modules that were made before anybody watched: of them only the names are known."""
        # asks no proxy
        found = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
        self.modules += map(weakref.ref, found)

    def first_parameter(self, module: torch.nn.Module) -> tuple[Held, int] | None:
        """A parameter of a module, and how deep it lies in it: says later, by its name, where the
        module is.
        """
        entry = self._firsts.get(id(module))
        if entry is None or entry[0]() is not module:
            found = next(module.named_parameters(), None)
            first = None if found is None else (self.memory.held(found[1]), found[0].count(".") + 1)
            entry = self._firsts[id(module)] = (weakref.ref(module), first)
        return entry[1]

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
        """An optimizer has stepped: time goes on, and with it how closely we look."""
        self.step += 1
        stepper.steps += 1
        for each in self.on_step:
            each()
        self.memory.forget_step()
        self.scaled.clear()
        self.again = max(0, self.again - 1)
        self._without_step = 0
        self._look(self.again > 0)
        if not self.recording:
            self._thin_out()

    def _look(self, closely: bool) -> None:
        if self.level == "auto":
            self.recording = closely

    def meet_compiler(self) -> None:
        """The program compiles something. It stays compiled, unless every operation is to be
        recorded.
        """
        self.compiled = True
        self.runs_eagerly = self.level == "record" and _HAS_STANCES
        self.blind[_EAGER if self.runs_eagerly else _UNSEEN] = None
        for undo in self.before_compiling:
            undo()
        if self.runs_eagerly:
            torch.compiler.set_stance("force_eager")

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

    def look_again(self) -> None:
        """Something is new: record the next steps in full."""
        self.again = self.first
        self._look(True)

    def seen_sink(self, place: Place) -> None:
        """A backward at a line where there was none before is worth a closer look."""
        key = (place[0].code, place[0].instruction) if place else None
        self._without_step += 1
        if key not in self._sinks:
            self._sinks.add(key)
            self.look_again()
        elif self._without_step > _MOST_WITHOUT_STEP:
            self._look(False)

    def evaluated(self, module: torch.nn.Module) -> None:
        """A module was put into eval mode: the next calls of modules tell whether something is
        evaluated so.
        """
        self._in_eval.append(weakref.ref(module))
        self.evaluations = _EVALUATIONS

    def woken(self, module: torch.nn.Module) -> bool:
        """Whether all that was put into eval mode is in train mode again, by whatever:
        `part.training = True`, say.
        """
        parts = [part for part in module.modules() if part in self.asleep] if self.asleep else []
        if not parts or not all(part.training for part in parts):
            return False
        for part in parts:
            del self.asleep[part]
        return True

    def asleep_by(self, part: torch.nn.Module) -> torch.nn.Module | None:
        """The module whose `eval()` put a part into eval mode."""
        by = self.asleep.get(part)
        return None if by is None else by()

    def trained_in_eval(self) -> None:
        """Before a backward: a module that is still in eval mode since the last one is worth a
        closer look.
        """
        if any(
            module is not None and not module.training
            for module in (each() for each in self._in_eval)
        ):
            self.look_again()
        self._in_eval.clear()

    def came_late(self, place: Place) -> None:
        """After the first step something happens at a line where it did not before: worth a closer
        look.
        """
        key = (place[0].code, place[0].instruction) if place else None
        if self.step and key not in self._late:
            self._late.add(key)
            self.look_again()

    def _thin_out(self) -> None:
        """In watch, details of steps that went well are dropped."""
        for index in range(len(self.notes) - 1, -1, -1):
            if self.notes[index].step < self.step - 1:
                self.notes[index + 1 :] = [
                    note
                    for note in self.notes[index + 1 :]
                    if note.step >= self.step or _lasts(note)
                ]
                return

    def name_parameters(self) -> None:
        """Give each parameter the path by which the program reaches it, while its module is
        alive.
        """
        if self.named_at == (self.memory.parameters_seen, len(self.modules)):
            return
        self.named_at = (self.memory.parameters_seen, len(self.modules))
        modules = [module for reference in self.modules if (module := reference()) is not None]
        inner = {id(child) for module in modules for child in module._modules.values()}
        roots = [(self._root(module), module) for module in modules if id(module) not in inner]
        for root, module in roots:
            for name, part in module.named_modules():
                self._parts[id(part)] = (weakref.ref(part), (root, *filter(None, name.split("."))))
        for parameter, path in _paths(roots):
            held = self.memory.held(parameter)
            held.path = held.path or path

    def stepper(self, thing: Any, cls: str = "") -> Stepper:
        """The record of an optimizer, scaler or scheduler; made where it is first seen."""
        entry = self.steppers.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        made = Stepper(cls or type(thing).__name__, nearest())
        self.steppers[id(thing)] = (weakref.ref(thing), made)
        return made


class _Pause:
    """Takes the recorder off the stack of modes where it is on top, and silences it where it is
    not.
    """

    __slots__ = ("_on_top", "_session", "_was")

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> _Pause:
        session = self._session
        session.depth += 1
        self._was = session.quiet
        self._on_top = top_mode() is session.recorder
        if self._on_top:
            pop_mode()
        else:
            session.quiet = True
        return self

    def __exit__(self, *_: object) -> None:
        session = self._session
        session.depth -= 1
        if self._on_top:
            enter_mode(session.recorder)
        session.quiet = self._was

    def lifted(self, function: Callable[..., Result]) -> Callable[..., Result]:
        """`function` with the recorder on: the closure that an optimizer calls in its step is the
        program's.
        """

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            self.__exit__()
            try:
                return function(*args, **kwargs)
            finally:
                self.__enter__()

        return call


def _paths(
    roots: Sequence[tuple[str, torch.nn.Module]],
) -> Iterator[tuple[torch.Tensor, tuple[str, ...]]]:
    for root, module in roots:
        for name, parameter in module.named_parameters():
            yield parameter, (root, *name.split("."))


def _variable(thing: object) -> str:
    """The name that a frame of the user's has for an object."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code):
            for name, value in frame.f_locals.items():
                if value is thing and name != "self":
                    return name
                held = getattr(value, "__dict__", None) if name == "self" else None
                if held is not None:
                    found = next((key for key, item in list(held.items()) if item is thing), "")
                    if found:
                        return found
        frame = frame.f_back
    return ""


def _in_distributions() -> bool:
    """Whether a distribution of torch's runs, called by the program: its `sample()` turns grad mode
    off for itself.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code):
        if _DISTRIBUTIONS in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _switch() -> Place:
    """Where grad mode was switched: the user's line, or the function that a decorator of torch's
    wraps.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "decorate_context" and code.co_filename.endswith("_contextlib.py"):
            wrapped = frame.f_locals.get("func")
            inner = getattr(wrapped, "__code__", None)
            return (
                (Frame(0, inner, -1), *nearest())
                if inner is not None and is_users(inner)
                else nearest()
            )
        if is_users(code):
            break
        frame = frame.f_back
    return nearest()
