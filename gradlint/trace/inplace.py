"""Writes in place: what they replace, what they spoil, and those that torch refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from gradlint.tape import COMPUTED_ANEW, Kind
from gradlint.trace import escapes
from gradlint.trace.extents import extent, part
from gradlint.trace.frames import Place, here
from gradlint.trace.memory import tensors
from gradlint.trace.operations import Spec
from gradlint.trace.records import Cell, Op, Written, serial
from gradlint.trace.source import is_for_itself, is_property

if TYPE_CHECKING:
    from gradlint.trace.recorder import Recorder

Tensor = torch.Tensor
_LEAF = "a leaf Variable that requires grad"
_LEAF_VIEW = "a view of a leaf Variable that requires grad"
_GETITEM = "torch.Tensor.__getitem__"
_INFERENCE = ("Inference tensors cannot", "Inplace update to inference tensor")
_VIEWS = "is being modified inplace. This view is the output of a function that returns multiple"
_OUT = "functions with out=... arguments don't support"


class Writes:
    """Writes down what writes in place."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.session = recorder, recorder.session
        self.memory = recorder.memory

    def wrote(self, judged: Spec, target: Tensor, given: Sequence[Any], before: int) -> None:
        place = here()
        previous = self.memory.known(target) or self.memory.of(target, place)
        counted = "data" not in previous.flags
        inputs = (
            previous,
            *(self.memory.of(other, place) for other in tensors(given) if other is not target),
        )
        inputs += escapes.linked(self.memory, given, place)
        if previous.held is None and not self._stays(target, inputs):
            after = self.recorder.op(judged, inputs, target, place, before)
            after.cell = cell = self._log(target, judged, place, counted, given)
            after.arguments = self.recorder.arguments(
                (None, *given) if judged.name == "setitem" else given, {}
            )
            if not after.requires_grad and after.cut is None and after.kind is not Kind.OPERATION:
                after.kind = Kind.OPERATION
            after.flags |= previous.flags & {"data", "grad", COMPUTED_ANEW}
            after.gradient_of = previous.gradient_of
            self.memory.remember(target, after)
            self.memory.wrote(target, after)
            self.recorder.sums.judge(judged, after)
        else:
            after = previous
            after.cell = cell = self._log(target, judged, place, counted, given)
            if previous.held is not None:
                previous.held.cell = cell
        if self._is_lost(target, previous, place):
            self.session.note("fact", place, what="lost-write", op=previous, detail="")
        previous.cell = cell
        if previous.held is not None and not self.session.steppers:
            return  # initialisation
        self.session.note(
            "inplace", place, before=previous, after=after, by=inputs[1:], written=cell.writes[-1]
        )

    def _is_lost(self, target: Tensor, previous: Op, place: Place) -> bool:
        """Whether a statement writes into a copy that was made for it: of rows, or of what an
        attribute computes.
        """
        if (
            not place
            or previous.kind is not Kind.OPERATION
            or "data" in previous.flags
            or target._is_view()
        ):
            return False
        is_anew = COMPUTED_ANEW in previous.flags  # by code of the program, maybe, however deep
        way = previous.place if is_anew else previous.place[:2]
        own = [each for each in way if each.activation == place[0].activation]
        if not own or not is_for_itself(place[0].code, own[0].instruction, place[0].instruction):
            return False
        first = previous.place[0]
        is_own = own[0] is first
        is_copy = is_anew or (is_own and previous.name == _GETITEM)
        return is_copy or (not is_own and is_property(first.code, first.instruction))

    def _stays(self, target: Tensor, inputs: tuple[Op, ...]) -> bool:
        """Whether one record does for a value before and after a write: that of a counter, say."""
        carries = target.requires_grad or inputs[0].requires_grad
        return not self.session.recording and not carries and len(inputs) == 1

    def _log(
        self,
        target: Tensor,
        judged: Spec,
        place: Place,
        counted: bool,
        given: Sequence[Any] = (),
    ) -> Cell:
        cell = self.memory.cell(target)
        version = 0 if target.is_inference() else target._version
        written = Written(judged.title, place, counted, next(serial), version)
        if not counted:
            is_part = judged.name == "setitem" and len(given) > 1
            written.extent = part(target, given[0]) if is_part else extent(target)
        cell.writes.append(written)
        return cell

    def refused(
        self, judged: Spec, args: Sequence[Any], kwargs: dict[str, Any], error: RuntimeError
    ) -> None:
        """torch refused a call: a leaf, one of several views or an inference tensor in place, or
        `out=` with a gradient.
        """
        text = str(error)
        reason = (
            "leaf"
            if _LEAF in text or _LEAF_VIEW in text
            else "views"
            if _VIEWS in text
            else "inference"
            if text.startswith(_INFERENCE)
            else "out"
            if _OUT in text
            else ""
        )
        given = tensors((*args, *kwargs.values()))
        if not reason or not given:
            return
        place = here()
        target = given[0]
        if reason == "inference":
            target = next((tensor for tensor in given if tensor.is_inference()), target)
        previous = self.memory.of(target, place)
        if reason == "inference":
            _made_in_inference(previous)
        others = tuple(self.memory.of(other, place) for other in given if other is not target)
        after = Op(
            judged.title,
            Kind.OPERATION,
            (previous, *others),
            place,
            next(serial),
            self.session.step,
            True,
            target.dtype,
        )
        after.cell = cell = self._log(target, judged, place, True)
        kind = "inference" if "saved for backward" in text else "inplace"
        written = cell.writes[-1]
        self.session.note(
            kind, place, before=previous, after=after, by=others, written=written, raises=reason
        )


def _made_in_inference(op: Op) -> None:
    """Say of an inference tensor that was seen outside of `inference_mode`, a view of one, where
    that mode began.
    """
    source = op
    while not source.inference and source.inputs:
        source = source.inputs[0]  # what a view is of
    if source.inference:
        op.inference, op.cut_place = True, source.cut_place
