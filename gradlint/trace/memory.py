"""Which record stands for which tensor: a weak map, so that watching keeps nothing alive."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradlint.tape import Cut, Kind
from gradlint.trace.frames import Place
from gradlint.trace.records import Cell, Held, Op, serial

HORIZON = 3  # optimizer steps: what is older is remembered without what it was computed from
_SWEEP = 20_000
_TRIM = 16  # optimizer steps
_SHORT = 64
COMMON = frozenset({0.0, 1.0, -1.0, 0.5, 2.0})  # numbers that come up everywhere


class Memory:
    """The records of the tensors, arrays and numbers that the program holds at this moment."""

    def __init__(self) -> None:
        self.step = 0
        self._known: dict[int, tuple[weakref.ref[Any], Op]] = {}
        self._held: dict[int, tuple[weakref.ref[Any], Held]] = {}
        self.parameters_seen = 0
        self._sweep_at = _SWEEP
        self.escapes: deque[tuple[Any, Op]] = deque(maxlen=512)
        self.cells: dict[int, Cell] = {}
        # of the memories in `cells`: as long as one is referred to, no other gets its number
        self._referred: dict[int, StorageWeakRef] = {}
        self.last_written: dict[int, Op] = {}

    def remember(self, thing: Any, op: Op) -> None:
        """Let `op` stand for a tensor or array from now on."""
        self._known[id(thing)] = (weakref.ref(thing), op)
        if len(self._known) > self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        self._known = {key: entry for key, entry in self._known.items() if entry[0]() is not None}
        self._sweep_at = max(_SWEEP, 2 * len(self._known))

    def known(self, thing: Any) -> Op | None:
        """The record of a tensor or array, if there is one."""
        entry = self._known.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def of(self, tensor: torch.Tensor, place: Place) -> Op:
        """The record of `tensor`; one that was not seen being made gets a leaf that says so."""
        entry = self._known.get(id(tensor))
        if entry is not None and entry[0]() is tensor:
            op = entry[1]
            if op.requires_grad == tensor.requires_grad or "dead-view" in op.flags:
                return (
                    op
                    if op.kind is not Kind.OPERATION or op.step >= self.step - HORIZON
                    else self._age(tensor, op)
                )
        op = self._adopt(tensor, place)
        self.remember(tensor, op)
        return op

    def _age(self, tensor: torch.Tensor, op: Op) -> Op:
        old = op.without_past()
        self.remember(tensor, old)
        return old

    def results(self) -> Iterator[tuple[torch.Tensor, Op]]:
        """Every tensor that is alive and has a graph, of those seen being made, with its record."""
        for reference, op in list(self._known.values()):
            tensor = reference() if op.kind is Kind.OPERATION and op.requires_grad else None
            if isinstance(tensor, torch.Tensor):
                yield tensor, op

    def held(self, parameter: torch.Tensor, place: Place = ()) -> Held:
        """The identity of a parameter, made when it is first seen."""
        entry = self._held.get(id(parameter))
        if entry is not None and entry[0]() is parameter:
            return entry[1]
        held = Held(place)
        self.parameters_seen += 1
        self._held[id(parameter)] = (weakref.ref(parameter), held)
        return held

    def share(self, tensor: torch.Tensor, held: Held) -> None:
        """Let a tensor be one more that has the identity of a parameter."""
        self._held[id(tensor)] = (weakref.ref(tensor), held)

    def parameters(self) -> Iterator[tuple[torch.Tensor, Held]]:
        """Every parameter that is alive, with its identity."""
        for reference, held in list(self._held.values()):
            parameter = reference()
            if parameter is not None:
                yield parameter, held

    def _adopt(self, tensor: torch.Tensor, place: Place) -> Op:
        grad = tensor.requires_grad
        op = Op("tensor", Kind.DATA, (), place, next(serial), self.step, grad, tensor.dtype)
        if isinstance(tensor, torch.nn.Parameter):
            op.kind, op.held, op.name = Kind.PARAMETER, self.held(tensor, place), "parameter"
            if not grad:
                op.cut, op.cut_place = Cut.FROZEN, op.held.frozen_at or op.held.place
        elif grad and _is_leaf(tensor):
            op.kind = Kind.LEAF
        elif grad:
            op.kind, op.name = Kind.UNKNOWN, "tensor"
            self._join_written(tensor, op)
        elif self.escapes and _is_short(tensor):
            self._join_numbers(tensor, op)
        op.inference = tensor.is_inference()
        return op

    def _join_written(self, tensor: torch.Tensor, op: Op) -> None:
        """A tensor that gained its gradient by a write to a view of it comes from what was
        written.
        """
        written = self.last_written.get(storage_key(tensor)) if self.last_written else None
        if written is not None and written.requires_grad:
            op.kind, op.inputs, op.name, op.place = (
                Kind.OPERATION,
                (written,),
                written.name,
                written.place,
            )

    def _join_numbers(self, tensor: torch.Tensor, op: Op) -> None:
        """`torch.FloatTensor(…)` is no torch function: what holds only numbers that left torch was
        made from them.
        """
        left = {number: came for value, came in self.escapes for number in _floats(value)}
        held = {number for number in tensor.detach().flatten().tolist() if number not in COMMON}
        if held and held <= left.keys():
            op.kind, op.inputs = (
                Kind.OPERATION,
                tuple({id(left[number]): left[number] for number in held}.values()),
            )

    def cell(self, tensor: torch.Tensor) -> Cell:
        """The memory under `tensor`, shared with every tensor that aliases it."""
        key = storage_key(tensor)
        if key not in self.cells:
            self.cells[key] = Cell()
            if key:
                storage = tensor.untyped_storage()
                self._referred[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        return self.cells[key]

    def wrote(self, tensor: torch.Tensor, op: Op) -> None:
        """A write in place left `op` in the memory under `tensor`."""
        self.cell(tensor)  # which keeps its number from being given to another memory
        self.last_written[storage_key(tensor)] = op

    def escaped(self, value: Any, op: Op) -> None:
        """A Python number or list left torch; what is made of it later may be linked to it."""
        self.escapes.append((value, op))

    def forget_step(self) -> None:
        """Called after an optimizer step: addresses may be used again, and old numbers no longer
        matter.
        """
        self.step += 1
        self.cells.clear()
        self._referred.clear()
        self.last_written.clear()
        while self.escapes and self.escapes[0][1].step < self.step - 1:
            self.escapes.popleft()
        if self.step % _TRIM == 0:
            self._forget_past()

    def _forget_past(self) -> None:
        """Cut what is remembered off from what is older than the horizon: a moving average would
        keep all of it.
        """
        self._sweep()
        oldest = self.step - HORIZON
        pending = [op for _, op in self._known.values() if op.step >= oldest]
        seen = {id(op) for op in pending}
        for op in pending:
            cut = {
                id(source): source.without_past()
                for source in op.inputs
                if source.inputs and source.step < oldest
            }
            if cut:
                op.inputs = tuple(cut.get(id(source), source) for source in op.inputs)
                op.arguments = tuple(
                    (key, cut.get(id(given), given)) for key, given in op.arguments
                )
            new = [
                source for source in op.inputs if source.step >= oldest and id(source) not in seen
            ]
            seen.update(map(id, new))
            pending += new


def _is_leaf(tensor: torch.Tensor) -> bool:
    """Whether it is a leaf; torch does not tell it of a view from under `no_grad` whose base was
    written since.
    """
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False


def _is_short(tensor: torch.Tensor) -> bool:
    """Whether a look at the numbers of a tensor costs next to nothing, and can be had."""
    if (
        type(tensor) is not torch.Tensor
        or tensor.device.type != "cpu"
        or not tensor.is_floating_point()
    ):
        return False
    return tensor.layout is torch.strided and tensor.numel() <= _SHORT and storage_key(tensor) != 0


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, list):
        for each in value[:_SHORT]:
            yield from _floats(each)


def storage_key(tensor: torch.Tensor) -> int:
    """A number for the memory under a tensor, equal for aliases; 0 where torch gives none."""
    try:
        storage = tensor.untyped_storage()
        return int(getattr(storage, "_cdata", None) or storage.data_ptr())
    except (NotImplementedError, RuntimeError):
        return 0


def tensors(things: Iterable[Any], depth: int = 3) -> list[torch.Tensor]:
    """The tensors among arguments, also those in lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    for thing in things:
        if isinstance(thing, torch.Tensor):
            found.append(thing)
        elif depth and isinstance(thing, (list, tuple)):
            found += tensors(thing, depth - 1)
        elif depth and isinstance(thing, dict):
            found += tensors(thing.values(), depth - 1)
    return found
