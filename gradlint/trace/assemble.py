"""From the light records of a run to the tape that the rules read."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from gradlint import tape
from gradlint.finding import Span
from gradlint.library.effects import lookup
from gradlint.trace import bindings, branches, loops, source
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place
from gradlint.trace.gates import Condition, Way, asked
from gradlint.trace.records import Cell, Driven, Held, Note, Op
from gradlint.trace.rounds import Rounds, Turn
from gradlint.trace.session import Session, Stepper

NOWHERE = Span("<unknown>", 1, 1, 1, 1)
_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled", "enable_grad")
_ZERO_GRADIENT = "zero-gradient"
_BUSY = frozenset({"backward", "step"})
_Rounds = tuple[tuple[int, int], ...]  # loops with their rounds, outermost first
_DTYPES = {
    torch.float64: tape.DType.DOUBLE,
    torch.float16: tape.DType.HALF,
    torch.bfloat16: tape.DType.BFLOAT,
    torch.bool: tape.DType.BOOL,
}


def at(place: Place) -> Span:
    """Where a place is, as a report says it."""
    return source.span(place[0].code, place[0].instruction) if place else NOWHERE


def stack(place: Place) -> tuple[Span, ...]:
    """The calls that led to a place, outermost first."""
    return tuple(source.span(frame.code, frame.instruction) for frame in reversed(place[1:]))


def switched_at(place: Place) -> Span | None:
    """Where grad mode was switched: the statement, or the decorator."""
    if not place:
        return None
    return (
        source.decorator_span(place[0].code, _SWITCHES) if place[0].instruction < 0 else at(place)
    )


def _dtype(dtype: Any) -> tape.DType:
    if dtype is None:
        return tape.DType.UNKNOWN
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    return tape.DType.FLOAT if dtype.is_floating_point or dtype.is_complex else tape.DType.INTEGER


class Assembler:
    """Turns one session's records into a tape, in the order in which they were made."""

    def __init__(self, session: Session, entry: str, driven: Driven | None = None) -> None:
        self.session = session
        self.driven = driven
        self.tape = tape.Tape(entry, traced=True)
        self.rounds = Rounds()
        self.steps: dict[int, int] = {}
        self._values: dict[int, tape.Value] = {}
        self._storages: dict[int, tape.Storage] = {}
        self._parameters: dict[int, tape.Parameter] = {}
        self._held: dict[int, tape.Value] = {}
        self._modules: dict[tuple[str, ...], tape.Module] = {}
        self._steppers: dict[int, Any] = {}
        self._entered: list[tape.GradMode] = []
        # optimizers, by where they are made
        self._made: Counter[tuple[Span, tuple[Span, ...]]] = Counter()
        self._groups: dict[int, list[Held]] = {}  # what an optimizer was last seen to hold
        # the optimizers that were cleared, and no backward came since
        self._emptied: set[int] = set()
        self._keep: list[Any] = []
        # the serial number of each record, and the events before it
        self._orders: list[tuple[int, int]] = []
        # parameters, by their names
        self._alike: Counter[tuple[Span, tuple[Span, ...], tuple[str, ...]]] = Counter()
        self._gates: dict[source.Loop, dict[Way, None]] = {}
        self._taken: dict[source.Loop, set[branches.Branch]] = {}
        # by the user's call below which the loop stands
        self._batched: dict[tuple[int, int], source.Loop] = {}
        self._trained: set[tuple[int, int]] = set()  # the rounds in which a backward ran
        self._carries = False  # whether a round was seen to hand its graph to the next
        self._trained_at = 0  # the number of the last backward
        self._makers: dict[str, Callable[[Note], Iterable[tape.Event]]] = {
            name.removeprefix("_on_"): getattr(self, name)
            for name in dir(type(self))
            if name.startswith("_on_")
        }

    def run(self, raised: str = "") -> tape.Tape:
        """The whole tape."""
        session = self.session
        _fill_unseen(session)
        self._find_gates()
        things: list[Note | Op] = [*session.notes, *self._ops()]
        for thing in sorted(things, key=lambda thing: thing.serial):
            self._orders.append((thing.serial, len(self.tape.events)))
            if isinstance(thing, Note):
                self._note(thing)
            else:
                self._visit(thing.place)
                self.value(thing)
        self._turns(self.rounds.close(), session.step)
        last = session.notes[-1].place if session.notes else ()
        self._write(tape.End(at=at(last), raised=raised), session.step)
        return self.tape

    def _ops(self) -> list[Op]:
        roots = [op for note in self.session.notes for op in _mentioned(note)]
        found = list(lineage(roots))
        extra = [source for op in found for _, _, source, _ in op.saves]
        return list({id(op): op for op in lineage([*found, *extra])}.values())

    # --- places and rounds

    def _visit(self, place: Place, step: int = 0, busy: bool = False, once: bool = False) -> None:
        self._turns(self.rounds.visit(place, busy, once), step)

    def _deciding(
        self, place: Place
    ) -> Iterator[tuple[source.Loop, branches.Branch, tuple[Span, ...]]]:
        """The conditions between a place and the loop around it, through the calls in between,
        outermost first.

        Of every function that is running: a loop over callbacks stands between the step and the
        loop over batches.
        """
        for depth, frame in enumerate(place):
            below = self._batched.get((frame.activation, frame.instruction))
            around = self.rounds.around(frame) if below is None else (below,)
            # the loop below a call is inside all of it
            inside = depth + (below is None) if around else 0
            for inner in reversed(range(inside)):
                code, instruction = place[inner].code, place[inner].instruction
                for branch in branches.branches(code, instruction):
                    yield around[-1], branch, stack(place[inner:])

    def _on_batch(self, note: Note) -> Iterator[tape.Event]:
        """A round of a loop in a library's file begins, if it is one of several."""
        seen = self.session.batched
        if note.facts["loops"][-1] in seen:
            batches = tuple(each for each in note.facts["loops"] if each in seen)
            self._turns(self.rounds.fetched(note.place, batches), note.step)
        return iter(())

    def _find_gates(self) -> None:
        """The ways through conditions that lead, in a round of a loop, to the step of an
        optimizer.
        """
        for note in self.session.notes:
            if note.kind == "batch" and note.facts["loops"][-1] in self.session.batched:
                call = note.place[0]
                self._batched[call.activation, call.instruction] = loops.called(
                    call.code, call.instruction
                )
            for frame in note.place if note.kind in _BUSY else ():
                self.rounds.learning.update(loops.comprehensions(frame.code, frame.instruction))
        for note in self.session.notes:
            if note.kind == "step":
                ways = dict[source.Loop, list[Condition]]()
                for loop, branch, calls in self._deciding(note.place):
                    ways.setdefault(loop, []).append((branch, calls))
                for loop, way in ways.items():
                    self._gates.setdefault(loop, {})[tuple(way)] = None

    def _decide(self, turn: Turn, step: int) -> None:
        """At the end of a round with a backward, write down which way its conditions went: no step
        says so, too.
        """
        taken = self._taken.pop(turn.loop, set())
        if (turn.number, turn.round) not in self._trained:
            return
        answers: dict[branches.Branch, tuple[bool, tuple[Span, ...]]] = {}
        for way in self._gates.get(turn.loop, {}):
            for (branch, calls), goes_on in asked(way, taken):
                if not goes_on or branch not in answers:
                    answers[branch] = goes_on, calls
        for branch, (goes_on, calls) in answers.items():
            holds = branch.side if goes_on else not branch.side
            fact = tape.Fact(
                at=branch.at, what="branch", detail=str(holds).lower(), text=branch.text
            )
            around = self.rounds.now()
            own = (turn.number, turn.round)
            fact.stack, fact.iteration = calls, around if own in around else (*around, own)
            self._write(fact, step)

    def _turns(self, turns: Iterator[Turn], step: int) -> None:
        for turn in turns:
            if not turn.begins:
                self._decide(turn, step)
            loop = turn.loop
            where = source.span_of(loop.path, (loop.line, loop.column, loop.line, loop.column))
            event = tape.Iteration(
                at=where,
                loop=turn.number,
                round=turn.round,
                begins=turn.begins,
                over=loop.over,
                last=turn.last,
                text=loop.text,
                ends_early=loop.ends_early,
            )
            event.iteration = self.rounds.now()
            self._write(event, step)

    def _write(self, event: tape.Event, step: int) -> None:
        self.tape.write(event)
        self.steps[event.order] = step

    def _note(self, note: Note) -> None:
        self._visit(note.place, note.step, note.kind in _BUSY, note.facts.get("direct", False))
        maker = self._makers.get(note.kind)
        for event in maker(note) if maker else ():
            event.at = at(note.place) if event.at is NOWHERE else event.at
            event.stack, event.iteration = stack(note.place), self.rounds.now()
            if self.driven is not None and self.driven.does(note.place):
                event.assumed, event.text = True, self.driven.name
            event.text = event.text or (
                source.text(note.place[0].code, note.place[0].instruction) if note.place else ""
            )
            self._write(event, note.step)

    # --- values

    def value(self, op: Op) -> tape.Value:
        """The value that a record stands for, made once."""
        known = self._values.get(id(op))
        if known is not None:
            return known
        for current in _inputs_first(op, self._values):
            self._values[id(current)] = self._make(current)
            self._keep.append(current)
        return self._values[id(op)]

    def _make(self, op: Op) -> tape.Value:
        inputs = tuple(self._values[id(each)] for each in op.inputs if id(each) in self._values)
        made = tape.Value(
            op.name, op.kind, inputs, at(op.place), stack(op.place), op.requires_grad,
            op.kind is tape.Kind.UNKNOWN,
            op.cut, dtype=_dtype(op.dtype), in_torch=op.in_torch,
            checkpointed=op.checkpointed, autocast=op.autocast, inference=op.inference,
            missing_derivative=op.missing,
            order=len(self.tape.events), iteration=self.rounds.now(),
        )  # fmt: skip
        if op.place:
            made.text = source.text(op.place[0].code, op.place[0].instruction)
            made.name = bindings.name(op.place[0].code, op.place[0].instruction)
        if op.layer_made:
            made.layer_at = at(op.layer_made)
        if op.layer is not None and (layer := op.layer()) is not None:
            made.layer = ".".join(self.session.part(layer))
        if "returned" in op.flags:
            made.text = f"{op.name}()"
        made.zero_gradient = "zero-gradient" in op.flags
        made.arguments = tuple(
            (key, self._values.get(id(given)) if isinstance(given, Op) else given)
            for key, given in op.arguments
        )
        made.factor = next((each for _, each in op.arguments if type(each) in (int, float)), None)
        if op.inference:
            made.inference_at = switched_at(op.cut_place)
        if op.cut_place:
            made.cut_at, made.cut_stack = switched_at(op.cut_place), stack(op.cut_place)
        made.number = op.number if isinstance(op.number, (int, float)) else None
        made.flags |= op.flags & {"unseen", "quotient"}
        if "grad" in op.flags:
            made.flags |= {"gradient"}
            made.parameter = None if op.gradient_of is None else self.parameter(op.gradient_of)
        if op.held is not None:
            made.parameter, made.at, made.stack = (
                self.parameter(op.held),
                at(op.held.place),
                stack(op.held.place),
            )
            made.order = self._order(op.held.serial)
            made.name, made.text = ".".join(op.held.path) or _name(op.held) or "parameter", ""
            made.storage = self.storage(op.held.cell) if op.held.cell is not None else None
            made.flags |= self._flags(op.held)
            self._held.setdefault(id(op.held), made)
        elif op.cell is not None:
            made.storage = self.storage(op.cell)
        made.saves = tuple(self._saved(op, made, *saved) for saved in op.saves)
        return made

    def _saved(
        self, op: Op, made: tape.Value, role: str, cell: Cell, origin: Op, before: int | None
    ) -> tape.Saved:
        storage = self.storage(cell)
        value = made if origin is op else self._values.get(id(origin), made)
        return tape.Saved(
            value, storage, storage.version, len(storage.writes) if before is None else before, role
        )

    def storage(self, cell: Cell) -> tape.Storage:
        """The storage that a cell stands for."""
        self._keep.append(cell)
        return self._storages.setdefault(id(cell), tape.Storage())

    def parameter(self, held: Held) -> tape.Parameter:
        """The identity of a parameter, with the modules that it is part of."""
        known = self._parameters.get(id(held))
        if known is None:
            name = held.path[-1] if held.path else _name(held) or "parameter"
            alike = at(held.place), stack(held.place), tuple(map(str, held.path))
            known = tape.Parameter(name, self.module(held.path[:-1]), alike[0], stack=alike[1])
            known.number = self._alike[alike]
            self._alike[alike] += 1
            self._parameters[id(held)] = known
        return known

    def _flags(self, held: Held) -> frozenset[str]:
        moved = self.session.movement.moved.get(held)
        is_named = bool(held.path or _name(held))
        flags = {"loaded": held.is_loaded, "moved": moved is True, "still": moved is False}
        flags["unnamed"] = not is_named
        return frozenset(name for name, is_so in flags.items() if is_so)

    def _order(self, serial: int) -> int:
        """How many events were before what has this serial number."""
        index = bisect.bisect_left(self._orders, (serial, 0))
        return self._orders[index][1] if index < len(self._orders) else len(self.tape.events)

    def module(self, path: tuple[str, ...]) -> tape.Module | None:
        """The module at a path."""
        if not path:
            return None
        if path not in self._modules:
            self._modules[path] = tape.Module(path[-1], self.module(path[:-1]))
        return self._modules[path]

    def held(self, held: Held, frozen: bool = False) -> tape.Value:
        """The value of a parameter, also of one that no operation has used."""
        known = self._held.get(id(held))
        if known is None:
            known = tape.Value(
                "parameter", tape.Kind.PARAMETER, (), at(held.place), stack(held.place),
                requires_grad=not frozen, order=self._order(held.serial),
            )  # fmt: skip
            known.parameter, known.name = self.parameter(held), ".".join(held.path) or held.name
            known.storage = self.storage(held.cell) if held.cell is not None else None
            known.flags |= self._flags(held)
            if frozen:
                known.cut, known.cut_at = tape.Cut.FROZEN, at(held.frozen_at or held.place)
            self._held[id(held)] = known
        return known

    # --- optimizers, scalers, schedulers

    def optimizer(self, stepper: Stepper) -> tape.Optimizer:
        """An optimizer with all that it holds."""
        known = self._steppers.get(id(stepper))
        if known is None:
            place = stepper.place
            name = bindings.name(place[0].code, place[0].instruction) if place else ""
            known = tape.Optimizer(
                name or stepper.cls.lower(), stepper.cls, at(place), stack=stack(place)
            )
            known.unscales = stepper.unscales
            known.number = self._made[known.at, known.stack]
            self._made[known.at, known.stack] += 1
            self._steppers[id(stepper)] = known
        if len(known.parameters) != len(stepper.held):
            known.parameters[:] = [
                self.held(each, index in stepper.frozen) for index, each in enumerate(stepper.held)
            ]
        assert isinstance(known, tape.Optimizer)
        return known

    def _holds(self, optimizer: tape.Optimizer, note: Note) -> None:
        """Writes down what an optimizer held until now, where it is something else than before."""
        held: list[Held] = note.facts["held"]
        before = self._groups.get(id(optimizer), held)
        self._groups[id(optimizer)] = held
        if before is not held:
            optimizer.earlier.append((len(self.tape.events), [self.held(each) for each in before]))

    def scaler(self, stepper: Stepper | None) -> tape.Scaler | None:
        """A gradient scaler."""
        if stepper is None:
            return None
        if id(stepper) not in self._steppers:
            name = (
                bindings.name(stepper.place[0].code, stepper.place[0].instruction)
                if stepper.place
                else ""
            )
            self._steppers[id(stepper)] = tape.Scaler(
                name or "scaler", at(stepper.place), stepper.enabled
            )
        known: tape.Scaler = self._steppers[id(stepper)]
        return known

    # --- events

    def _on_backward(self, note: Note) -> Iterator[tape.Event]:
        ops: list[Op] = note.facts["ops"]
        if unseen := next(filter(None, (self._unseen_source(op, note) for op in ops)), ""):
            self.session.blind[f"{at(note.place)}: this loss carries no gradient, and {unseen}"] = (
                None
            )
            return
        if note.facts.get("broken") is False:
            symptom = (
                "this backward failed on a tensor that was overwritten, and which one was not seen"
            )
            self.session.blind[f"{at(note.place)}: {symptom}"] = None
        self._emptied.clear()
        self._trained_at = note.serial
        self._trained.update(self.rounds.now())
        values = [self.value(op) for op in ops]
        loss = (
            values[0] if len(values) == 1 else joined(values, at(note.place), len(self.tape.events))
        )
        handed = "" if note.facts["direct"] else _handed(note.place)
        for value in values:
            value.name = value.name or (_receiver(note.place) if note.facts["direct"] else handed)
        wanted = note.facts["inputs"]
        if note.facts["sink"] == "autograd.grad" and len(values) == len(wanted) == 1:
            self._name_arguments(note, *values, self.value(wanted[0]))
        yield tape.Backward(
            at=NOWHERE, value=loss, loss=handed, sink=note.facts["sink"],
            scaler=self.scaler(note.facts["scaler"]), autocast=note.facts["autocast"],
            retain_graph=note.facts["retain"], create_graph=note.facts["create"],
            inputs=None if wanted is None else tuple(self.value(op) for op in wanted),
        )  # fmt: skip
        if note.facts["retain"] and not self._carries:
            yield from self._carried(note, loss)

    def _name_arguments(self, note: Note, *values: tape.Value) -> None:
        """Tensors go by the names that a call has for them, where they were bound to none."""
        frame = note.place[0] if note.place else None
        for value, name in zip(
            values, bindings.arguments(frame.code, frame.instruction) if frame else (), strict=False
        ):
            value.name = value.name or name

    def _carried(self, note: Note, loss: tape.Value) -> Iterator[tape.Kept]:
        """What each round of a loop hands to the next with its graph, and with that of the round
        before.
        """
        now = self.rounds.now()
        handed = [
            (user, value)
            for user in tape.graph(loss)
            for value in user.inputs
            if value.records and _is_earlier(value.iteration, user.iteration, now)
        ]
        newest = next(
            (value for user, value in handed if not _is_earlier(user.iteration, now, now)), None
        )
        if newest is not None and any(_is_earlier(user.iteration, now, now) for user, _ in handed):
            self._carries = True
            calls = stack(note.place)
            is_below = newest.stack[: len(calls)] == calls
            yield tape.Kept(
                at=(*newest.stack, newest.at)[len(calls) if is_below else -1],
                value=newest,
                how="state",
            )

    def _unseen_source(self, op: Op, note: Note) -> str:
        """Why it is not known what keeps a loss from carrying a gradient, or ''."""
        opaque = next((each for each in lineage([op]) if "compiled" in each.flags), None)
        if not op.requires_grad and opaque is not None:
            return (
                f"comes out of compiled code, called at {at(opaque.place)}: --level record looks "
                "into it"
            )
        if not (_is_unexplained(op, note) or self._may_come_out_of_the_dark(op)):
            return ""
        dark = ", ".join(str(switched_at(place)) for place in self.session.left_dark.values())
        return (
            "how it was computed was not "
            f"seen{f'; grad mode was off, unseen, at {dark}' if dark else ''}"
        )

    def _may_come_out_of_the_dark(self, op: Op) -> bool:
        """Whether a loss without gradient hangs on something that a region may have made that was
        left alone.
        """
        if op.requires_grad or not self.session.left_dark:
            return False
        found = list(lineage([op]))
        return all(each.cut in (None, tape.Cut.CONSTANT) for each in found) and any(
            map(_is_unseen, found)
        )

    def _on_optimizer(self, note: Note) -> Iterator[tape.Event]:
        optimizer = self.optimizer(note.facts["stepper"])
        optimizer.order = len(self.tape.events)
        yield tape.OptimizerMade(at=NOWHERE, optimizer=optimizer)

    def _on_zero(self, note: Note) -> Iterator[tape.Event]:
        stepper = note.facts["stepper"]
        optimizer = None if stepper is None else self.optimizer(stepper)
        if stepper is not None:
            self._emptied.add(id(stepper))
        if optimizer is not None:
            self._holds(optimizer, note)
        cleared = [self.held(held) for held in note.facts["held"]]
        yield tape.ZeroGrad(at=NOWHERE, optimizer=optimizer, parameters=tuple(cleared))

    def _on_clip(self, note: Note) -> Iterator[tape.Event]:
        clipped = tuple(self.held(held) for held in note.facts["held"])
        yield tape.Clip(
            at=NOWHERE,
            parameters=clipped,
            reads_only=note.facts["reads"],
            exhausted=note.facts["exhausted"],
        )

    def _on_read(self, note: Note) -> Iterator[tape.Event]:
        read = tuple(self.value(op) for op in note.facts["ops"])
        yield tape.Clip(
            at=NOWHERE, parameters=read, reads_only=True, by_library=not note.facts["own"]
        )

    def _on_step(self, note: Note) -> Iterator[tape.Event]:
        optimizer = self.optimizer(note.facts["stepper"])
        self._holds(optimizer, note)
        scaler = self.scaler(note.facts["scaler"])
        for loop, branch, _ in self._deciding(note.place):
            self._taken.setdefault(loop, set()).add(branch)
        event = tape.OptimizerStep(
            at=NOWHERE, optimizer=optimizer, scaler=scaler, closure=note.facts["closure"]
        )
        if _was_taken(note):
            event.starved = len(note.facts["starved"]) == len(note.facts["held"])
            self._overwrite(note)
            yield from self._given(note)
        yield event

    def _given(self, note: Note) -> Iterator[tape.Event]:
        """Gradients that are there after a clearing without any backward: `parameter.grad = …`,
        which nothing shows.

        Where a backward came, which of them the code has set is not known: one stands for them.
        """
        held: list[Held] = note.facts["held"]
        filled = [each for index, each in enumerate(held) if index not in note.facts["starved"]]
        if id(note.facts["stepper"]) not in self._emptied:
            filled = [] if self.session.given.isdisjoint(held) else filled[:1]
        for each in filled:
            yield tape.Fact(at=NOWHERE, what="gradient-set", value=self.held(each))

    def _overwrite(self, note: Note) -> None:
        """A step writes the parameters: those that a failing backward found changed show it."""
        for held in note.facts["held"]:
            if held.cell is not None:
                storage = self.storage(held.cell)
                storage.version += 1
                write = tape.Write(
                    "torch.optim.Optimizer.step",
                    at(note.place),
                    stack(note.place),
                    storage.version,
                    True,
                    len(self.tape.events),
                )
                storage.writes.append(write)

    def _on_unscale(self, note: Note) -> Iterator[tape.Event]:
        scaler = self.scaler(note.facts["scaler"])
        assert scaler is not None
        yield tape.Unscale(
            at=NOWHERE, scaler=scaler, optimizer=self.optimizer(note.facts["stepper"])
        )

    def _on_update(self, note: Note) -> Iterator[tape.Event]:
        scaler = self.scaler(note.facts["scaler"])
        assert scaler is not None
        yield tape.ScalerUpdate(at=NOWHERE, scaler=scaler)

    def _on_scheduler(self, note: Note) -> Iterator[tape.Event]:
        stepper: Stepper = note.facts["stepper"]
        if id(stepper) not in self._steppers:
            steered = None if stepper.optimizer is None else self.optimizer(stepper.optimizer)
            name = (
                bindings.name(stepper.place[0].code, stepper.place[0].instruction)
                if stepper.place
                else ""
            )
            self._steppers[id(stepper)] = tape.Scheduler(
                name or stepper.cls, at(stepper.place), steered
            )
        yield tape.SchedulerStep(at=NOWHERE, scheduler=self._steppers[id(stepper)])

    def _on_gradmode(self, note: Note) -> Iterator[tape.Event]:
        place = note.place
        by_call = bool(place) and source.context(place[0].code, place[0].instruction) == ""
        entered = not note.facts["enabled"] if not by_call else True
        where = switched_at(place) or NOWHERE
        event = tape.GradMode(
            at=where,
            enabled=note.facts["enabled"],
            by_call=by_call,
            inference=note.facts["inference"],
            entered=entered,
        )
        method = place[0].code.co_name if place else ""
        if method == "__enter__":
            self._entered.append(event)
        elif method == "__exit__" and event.enabled and self._entered:
            self._entered.pop().by_call = False  # a context of the program restores it
        yield event

    def _on_autocast(self, note: Note) -> Iterator[tape.Event]:
        where = (
            source.decorator_span(note.place[0].code, ("autocast",))
            if note.place and note.place[0].instruction < 0
            else NOWHERE
        )
        yield tape.Autocast(
            at=where,
            device=note.facts["device"],
            enabled=note.facts["enabled"],
            entered=note.facts["entered"],
        )

    def _on_train(self, note: Note) -> Iterator[tape.Event]:
        yield tape.TrainMode(
            at=NOWHERE,
            module=self.module(note.facts["module"]),
            training=note.facts["training"],
            matters=note.facts["matters"],
        )

    def _on_module(self, note: Note) -> Iterator[tape.Event]:
        module = self._module_of(note)
        assert module is not None
        if note.facts["woken"]:
            yield tape.TrainMode(at=NOWHERE, module=module, training=True)
        methods = self._methods(note.place, note.facts["owners"])
        yield tape.ModuleCall(
            at=NOWHERE, module=module, result=self.value(note.facts["op"]), within=methods
        )

    def _methods(
        self, place: Place, owners: Sequence[tuple[Held, int] | None]
    ) -> tuple[tuple[Span, tape.Module], ...]:
        """The calls of modules' methods that led to a place, outermost first."""
        called = zip(stack(place), reversed(owners[: len(place) - 1]), strict=False)
        found = ((at, self.module(_path(first))) for at, first in called)
        return tuple((at, module) for at, module in found if module is not None)

    def _module_of(self, note: Note) -> tape.Module | None:
        """The module that a note is about: by the name of a parameter of its, which all notes
        share.
        """
        return self.module(_path(note.facts.get("first")) or note.facts.get("path", ()))

    def _on_inplace(self, note: Note) -> Iterator[tape.Event]:
        written = note.facts["written"]
        after: Op = note.facts["after"]
        cell = after.cell or Cell()
        storage = self.storage(cell)
        storage.version += written.counted
        by = tuple(self.value(source) for source in note.facts["by"])
        effect = lookup(written.name)
        write = tape.Write(
            written.name, at(note.place), stack(note.place), storage.version, written.counted,
            len(self.tape.events), by, effect is not None and effect.maps_input,
        )  # fmt: skip
        storage.writes.append(write)
        yield tape.InPlace(
            at=NOWHERE,
            before=self.value(note.facts["before"]),
            after=self.value(after),
            write=write,
            raises=note.facts.get("raises", ""),
        )

    def _on_inference(self, note: Note) -> Iterator[tape.Event]:
        after: Op = note.facts["after"]
        yield tape.Fact(
            at=NOWHERE,
            what="inference-tensor-used",
            value=self.value(note.facts["before"]),
            detail=after.name,
        )

    def _on_fact(self, note: Note) -> Iterator[tape.Event]:
        held = note.facts.get("held")
        op = note.facts.get("op")
        value = self.held(held) if held is not None else self.value(op) if op is not None else None
        source, beside = note.facts.get("source"), note.facts.get("beside")
        yield tape.Fact(
            at=note.facts.get("at", NOWHERE),
            what=note.facts["what"],
            value=value,
            source=self.value(source)
            if source is not None
            else self.held(beside)
            if beside is not None
            else None,
            module=self._module_of(note),
            detail=note.facts["detail"],
        )

    def _on_frozen(self, note: Note) -> Iterator[tape.Event]:
        for held in note.facts["held"]:
            yield tape.Fact(at=NOWHERE, what=note.kind, value=self.held(held))

    _on_thawed = _on_frozen

    def _on_kept(self, note: Note) -> Iterator[tape.Event]:
        total, kept, now = note.facts.get("total"), self.value(note.facts["op"]), self.rounds.now()
        if total is not None and (
            self.value(total).iteration == now or total.serial > self._trained_at
        ):
            return  # a sum within one round, or within what one backward comes after
        if total is not None and ("unseen" in kept.flags or _is_older(kept, now)):
            return  # the term was there before the loop, or nobody saw when it was made
        yield tape.Kept(at=note.facts.get("at", NOWHERE), value=kept, how=note.facts["how"])


def _name(held: Held) -> str:
    """What a parameter is called: by its module, else by what `nn.Parameter(…)` is bound to."""
    if held.name or not held.is_seen or not held.place:
        return held.name
    return bindings.name(held.place[0].code, held.place[0].instruction)


def _path(first: tuple[Held, int] | None) -> tuple[str, ...]:
    """Where the module is that has a parameter so deep in it."""
    return first[0].path[: -first[1]] if first is not None else ()


def _is_earlier(rounds: _Rounds, others: _Rounds, loops: _Rounds) -> bool:
    """Whether some rounds of these loops were before others."""
    first, second = dict(rounds), dict(others)
    shared = [loop for loop, _ in loops if loop in first and loop in second]
    return [first[loop] for loop in shared] < [second[loop] for loop in shared]


def _is_older(value: tape.Value, now: tuple[tuple[int, int], ...]) -> bool:
    """Whether a value was made before the innermost loop began that is run now."""
    return bool(now) and now[-1][0] not in dict(value.iteration)


def _was_taken(note: Note) -> bool:
    """Whether an optimizer stepped: a scaler leaves a step out, or refuses it, before gradients are
    looked at.
    """
    return "starved" in note.facts


def _is_unexplained(op: Op, note: Note) -> bool:
    """Whether nothing is known of a loss without gradient but that it was back-propagated."""
    return (
        op.kind is tape.Kind.DATA
        and not op.requires_grad
        and not op.inputs
        and op.place == note.place
    )


def _is_unseen(op: Op) -> bool:
    """Whether it was not seen how a tensor was made."""
    return op.kind is tape.Kind.DATA and op.name == "tensor"


def _receiver(place: Place) -> str:
    """`loss`, where `loss.backward()` is running."""
    text = source.text(place[0].code, place[0].instruction) if place else ""
    name, dot, _ = text.partition(".backward(")
    return name if dot and name.replace(".", "").isidentifier() else ""


def _handed(place: Place) -> str:
    """`loss`, where `accelerator.backward(loss)` is running; of a trainer's call nothing is
    known.
    """
    text = source.text(place[0].code, place[0].instruction) if place else ""
    given = bindings.arguments(place[0].code, place[0].instruction) if "backward(" in text else ()
    return given[0] if given else ""


def _mentioned(note: Note) -> Iterator[Op]:
    for fact in note.facts.values():
        for thing in fact if isinstance(fact, (list, tuple)) else (fact,):
            if isinstance(thing, Op):
                yield thing


def _inputs_first(op: Op, made: dict[int, Any]) -> Iterator[Op]:
    """`op` and what it was computed from and is not made yet, inputs before results."""
    pending, seen = [(op, False)], set()
    while pending:
        current, ready = pending.pop()
        if ready:
            yield current
        elif id(current) not in seen and id(current) not in made:
            seen.add(id(current))
            pending.append((current, True))
            pending += [(each, False) for each in current.inputs]


def joined(values: list[tape.Value], where: Span, order: int) -> tape.Value:
    """Several losses that one call back-propagates."""
    grad = any(value.requires_grad for value in values)
    return tape.Value(
        "torch.autograd.backward",
        tape.Kind.OPERATION,
        tuple(values),
        where,
        requires_grad=grad,
        order=order,
    )


def _fill_unseen(session: Session) -> None:
    """A loss of a step that was only watched reaches what had a gradient at the step after it, not
    set by hand.

    Where no step comes any more, it reaches what one of the same place reached before. What that
    reached by a gradient of zero alone has one here, too, and is not reached.
    """
    pending: list[tuple[Note, Op]] = []
    reached: dict[tuple[object, ...], tuple[Op, ...]] = {}
    in_vain: dict[tuple[object, ...], set[Held]] = {}
    for note in session.notes:
        if note.kind == "backward":
            graph = _graph(note.facts["ops"])
            trained = tuple(op for op in graph if op.kind in (tape.Kind.PARAMETER, tape.Kind.LEAF))
            if trained:
                reached[_line(note)] = trained
                in_vain[_line(note)] = _reached_in_vain(note.facts["ops"], graph)
            else:
                pending += [
                    (note, op) for op in graph if op.kind is tape.Kind.UNKNOWN and not op.inputs
                ]
        elif note.kind == "step" and pending and _was_taken(note):
            starved = note.facts["starved"]
            held = [each for index, each in enumerate(note.facts["held"]) if index not in starved]
            found = tuple(session.leaf(each) for each in held if each not in session.given)
            for sink, op in pending if found or not held else ():
                vain = in_vain.get(_line(sink), ())
                _fill(op, tuple(each for each in found if each.held not in vain) or found)
                reached[_line(sink)] = op.inputs
            pending = []
    for sink, op in pending:
        if _line(sink) in reached:
            _fill(op, reached[_line(sink)])


def _reached_in_vain(losses: Iterable[Op], graph: Iterable[Op]) -> set[Held]:
    """The parameters that a backward reaches only through what has a gradient of zero."""
    live = {id(op) for op in _graph(losses, stops=_ZERO_GRADIENT)}
    return {op.held for op in graph if op.held is not None and id(op) not in live}


def _fill(op: Op, reached: tuple[Op, ...]) -> None:
    op.kind, op.inputs, op.flags = tape.Kind.OPERATION, reached, op.flags | {"unseen"}


def _graph(losses: Iterable[Op], stops: str = "") -> list[Op]:
    """What a backward of these losses runs through, as far as it was seen; not beyond what is
    flagged `stops`.
    """
    found = [op for op in losses if op.requires_grad]
    seen = set(map(id, found))
    for op in found:
        if stops in op.flags:
            continue
        new = [source for source in op.inputs if source.requires_grad and id(source) not in seen]
        seen.update(map(id, new))
        found += new
    return found


def _line(note: Note) -> tuple[object, ...]:
    """Where in the source something was noted, and the calls that led there."""
    return tuple((frame.code, frame.instruction) for frame in note.place)
