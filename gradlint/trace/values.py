"""The values of a tape: what the records of tensors, parameters and modules stand for."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradlint import tape
from gradlint.finding import Span
from gradlint.trace import bindings, source
from gradlint.trace.places import at, stack, switched_at
from gradlint.trace.records import Cell, Held, Op
from gradlint.trace.session import Session

_DTYPES = {
    torch.float64: tape.DType.DOUBLE,
    torch.float16: tape.DType.HALF,
    torch.bfloat16: tape.DType.BFLOAT,
    torch.bool: tape.DType.BOOL,
}


class Values:
    """The values, parameters and modules of one tape, each made once."""

    def __init__(
        self, session: Session, written: tape.Tape, now: Callable[[], tuple[tuple[int, int], ...]]
    ) -> None:
        self.session, self.tape = session, written
        # the serial number of each record, and the events before it
        self.orders: list[tuple[int, int]] = []
        self._now = now  # the rounds that the run is in
        self._values: dict[int, tape.Value] = {}
        self._storages: dict[int, tape.Storage] = {}
        self._parameters: dict[int, tape.Parameter] = {}
        self._held: dict[int, tape.Value] = {}
        self._modules: dict[tuple[str, ...], tape.Module] = {}
        self._keep: list[Any] = []
        # parameters, by their names
        self._alike: Counter[tuple[Span, tuple[Span, ...], tuple[str, ...]]] = Counter()

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
            order=len(self.tape.events), iteration=self._now(),
        )  # fmt: skip
        if op.place:
            made.text = source.text(op.place[0].code, op.place[0].instruction)
            made.name = bindings.name(op.place[0].code, op.place[0].instruction)
        if op.layer_made:
            made.layer_at = at(op.layer_made)
        if op.layer is not None and (layer := op.layer()) is not None:
            made.layer = ".".join(self.session.names.part(layer))
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
        index = bisect.bisect_left(self.orders, (serial, 0))
        return self.orders[index][1] if index < len(self.orders) else len(self.tape.events)

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
            known.number = 0 if held.is_zero else None
            if frozen:
                known.cut, known.cut_at = tape.Cut.FROZEN, at(held.frozen_at or held.place)
            self._held[id(held)] = known
        return known


def _dtype(dtype: Any) -> tape.DType:
    if dtype is None:
        return tape.DType.UNKNOWN
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    return tape.DType.FLOAT if dtype.is_floating_point or dtype.is_complex else tape.DType.INTEGER


def _name(held: Held) -> str:
    """What a parameter is called: by its module, else by what `nn.Parameter(…)` is bound to."""
    if held.name or not held.is_seen or not held.place:
        return held.name
    return bindings.name(held.place[0].code, held.place[0].instruction)


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
