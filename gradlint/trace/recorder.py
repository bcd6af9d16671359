"""The recorder: sees every call of a torch function and writes down what each result was computed
from, and where.

It is a `TorchFunctionMode`, which torch takes off while it handles a call, so nothing below a call
is seen twice. In *record* every operation is written down; in *watch* only those whose result
carries no gradient (that is where routes end) and those that write in place. The mode is off inside
backward passes and optimizer steps.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.tape import Cut, Kind
from gradlint.trace import escapes
from gradlint.trace.attributes import Attributes
from gradlint.trace.causes import explain, leaf
from gradlint.trace.frames import Place, here, local
from gradlint.trace.inplace import Writes
from gradlint.trace.masked import has_row_of_nothing
from gradlint.trace.memory import tensors
from gradlint.trace.operations import Spec, known_specs, spec
from gradlint.trace.private import sequence_number
from gradlint.trace.records import ROW_OF_NOTHING, Op, serial
from gradlint.trace.selections import FILLED, is_filled
from gradlint.trace.sums import Sums

if TYPE_CHECKING:
    from gradlint.trace.session import Session

Tensor = torch.Tensor
# each result is a view of the argument in its place
_PAIRED = frozenset({"broadcast_tensors", "meshgrid"})
# types of arguments that a record keeps as they are
_KEPT = frozenset({int, float, str, bool, slice})
_SEQUENTIAL = torch.nn.Sequential.forward.__code__
_MODULES = os.path.join(os.path.dirname(torch.nn.modules.__file__), "")


class Recorder(TorchFunctionMode):
    """Writes an `Op` for what torch functions return."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.memory = session.memory
        self.attributes = Attributes(session)
        self.sums = Sums(session)
        self.writes = Writes(self)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        session = self.session
        judged = known_specs.get(func) or spec(func)
        kwargs = kwargs or {}
        if judged.ignored or session.quiet:
            return func(*args, **kwargs)
        if judged.special:
            return self.attributes.by_word[judged.special](func, args, kwargs)
        before = sequence_number()
        try:
            out = func(*args, **kwargs)
        except RuntimeError as error:
            session.guarded(self.writes.refused, judged, args, kwargs, error)
            raise
        if not session.recording and (
            (judged.passes and type(out) is Tensor and out.requires_grad)
            or _goes_well(judged, args, out)
        ):
            return out
        session.guarded(self.saw, judged, args, kwargs, out, before)
        return out

    def saw(
        self, judged: Spec, args: Sequence[Any], kwargs: dict[str, Any], out: Any, before: int
    ) -> None:
        """Write down one call that returned."""
        if judged.escapes:
            self._escaped(judged, args, out)
        elif judged.name == "bool" and isinstance(out, bool):
            self._read_out(args[0])
        elif judged.name == "setitem":
            self.writes.wrote(judged, args[0], args[1:], before)
        elif isinstance(out, Tensor):
            written = self._written(judged, args, kwargs, out)
            if written:
                self.writes.wrote(judged, out, (*args, *kwargs.values()), before)
            else:
                self._returned(judged, args, kwargs, (out,), before)
        elif isinstance(out, (tuple, list)):
            self._returned(judged, args, kwargs, tensors(out), before)

    def _written(
        self, judged: Spec, args: Sequence[Any], kwargs: dict[str, Any], out: Tensor
    ) -> bool:
        if judged.writes or "out" in kwargs:
            return True
        return (
            judged.functional
            and bool(args)
            and out is args[0]
            and (True in args[1:] or bool(kwargs.get("inplace")))
        )

    def _returned(
        self,
        judged: Spec,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        outs: Sequence[Tensor],
        before: int,
    ) -> None:
        place = here()
        given = tensors((*args, *kwargs.values()))
        shown = tensors(args[:1]) if judged.shaped else given
        if judged.name == "new_tensor":
            shown = tensors((*args[1:], *kwargs.values()))
        inputs = (
            () if judged.patterned else tuple(self.memory.of(tensor, place) for tensor in shown)
        )
        if judged.copies or (not shown) or any(isinstance(arg, float) for arg in args):
            inputs += escapes.linked(self.memory, (*args, *kwargs.values()), place)
        elif kwargs:
            inputs += escapes.handed_on(self.memory, kwargs.values())
        is_paired = judged.name in _PAIRED and len(inputs) == len(outs)
        if len(outs) > 1 and not is_paired and any(out.requires_grad for out in outs):
            inputs = (self._call(judged, inputs, place, before),)
        for position, out in enumerate(outs):
            if not any(out is tensor for tensor in given):
                made = self.op(
                    judged,
                    inputs[position : position + 1] if is_paired else inputs,
                    out,
                    place,
                    before,
                )
                made.arguments = self.arguments(args[::-1] if judged.reflected else args, kwargs)
                if kwargs.get("rounding_mode"):
                    made.flags |= {"zero-gradient"}
                if any("data" in each.flags for each in inputs) and _is_part(out, given):
                    made.flags |= {"data"}  # writes there are not counted either
                if is_filled(judged.name, out):
                    made.flags |= {FILLED}
                self.memory.remember(out, made)
                self.sums.judge(judged, made)
                if has_row_of_nothing(judged, args, kwargs, out):
                    made.flags |= {ROW_OF_NOTHING}
                if judged.is_loss or (out.requires_grad and not out.dim()):
                    for each in self.session.on_loss_made:
                        each(out, made)

    def arguments(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[int | str, object], ...]:
        """The numbers, words, flags and slices among arguments, and the records of the tensors, by
        position or name.
        """
        found: list[tuple[int | str, object]] = []
        given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        for key, each in given:
            if type(each) in _KEPT:
                found.append((key, each))
            elif isinstance(each, Tensor) and (known := self.memory.known(each)) is not None:
                found.append((key, known))
        return tuple(found)

    def _call(self, judged: Spec, inputs: tuple[Op, ...], place: Place, before: int) -> Op:
        """The record of a call that gave several tensors: what they have in common, and what it
        saved.
        """
        made = Op(
            judged.title, Kind.OPERATION, inputs, place, next(serial), self.session.step, True
        )
        made.sequence = (before, sequence_number())
        made.autocast = self.session.autocast
        return made

    def op(
        self, judged: Spec, inputs: tuple[Op, ...], out: Tensor, place: Place, before: int
    ) -> Op:
        """The record of `out`, computed by `judged` from `inputs`."""
        dead = any("dead-view" in source.flags for source in inputs)
        grad = out.requires_grad and not (
            dead and not any(source.requires_grad for source in inputs)
        )
        made = Op(
            judged.title,
            Kind.OPERATION,
            inputs,
            place,
            next(serial),
            self.session.step,
            grad,
            out.dtype,
        )
        made.sequence = (before, sequence_number()) if grad else (0, 0)
        if not grad:
            explain(self.session, made, judged, out)
            if dead and out.requires_grad:
                made.flags, made.cut = made.flags | {"dead-view"}, None
        elif not judged.writes and out.is_leaf:
            leaf(self.session, made)
        elif judged.missing:
            made.missing = True
        if judged.zero_gradient:
            made.flags |= {"zero-gradient"}
        made.autocast = self.session.autocast
        layer = local(_SEQUENTIAL, "module")
        if layer is not None:
            made.layer_made, made.layer = self.session.names.made_at(layer), weakref.ref(layer)
        made.inference = torch.is_inference_mode_enabled() and out.is_inference()
        if made.inference:
            made.cut_place = self.session.gradmode.inference
        return made

    def _escaped(self, judged: Spec, args: Sequence[Any], out: Any) -> None:
        source = args[0]
        place = here()
        origin = self.memory.of(source, place)
        made = Op(
            judged.title,
            Kind.OPERATION,
            (origin,),
            place,
            next(serial),
            self.session.step,
            False,
            in_torch=False,
        )
        made.cut = Cut.COPY if origin.requires_grad else None
        if not source.is_floating_point():
            self._read_out(source)
        if judged.name in ("numpy", "array"):
            self.memory.remember(out, made)
        self.memory.escaped(out, made)

    def _read_out(self, source: Tensor) -> None:
        """The program asks a tensor for its truth, or takes a whole number out of it:
        `if mask.any():`.
        """
        place = here()
        self.session.note(
            "fact", place, what="read-out", op=self.memory.of(source, place), detail=""
        )


def _goes_well(judged: Spec, args: Sequence[Any], out: Any) -> bool:
    """Whether a watched call needs no record: all that it returns carries a gradient on, and it
    wrote over nothing.

    Attention gives None in the place of weights that nobody asked for.
    """
    if judged.writes:
        # batch norm counts its batches
        return sys._getframe(2).f_code.co_filename.startswith(_MODULES)
    if judged.functional and args and out is args[0]:
        return False
    if isinstance(out, Tensor):
        return out.requires_grad and not (judged.constant or judged.data)  # those make a leaf
    if type(out) is not tuple:
        return False
    for part in out:
        if part is not None and not (isinstance(part, Tensor) and part.requires_grad):
            return False
    return True


def _is_part(out: Tensor, given: Sequence[Tensor]) -> bool:
    """Whether it is a view of one of these."""
    return out._is_view() and any(out._base is each or out._base is each._base for each in given)
