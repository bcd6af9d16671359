"""The recorder: sees every call of a torch function and writes down what each result was computed
from, and where.

It is a `TorchFunctionMode`, which torch takes off while it handles a call, so nothing below a call
is seen twice. In *record* every operation is written down; in *watch* only those whose result
carries no gradient (that is where routes end) and those that write in place. The mode is off inside
backward passes and optimizer steps.
"""

from __future__ import annotations

import inspect
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.tape import COMPUTED_ANEW, Cut, Kind
from gradlint.trace import escapes
from gradlint.trace.bindings import loss_name
from gradlint.trace.capture import is_captured
from gradlint.trace.frames import Place, here, is_torchs, is_users, local, nearest
from gradlint.trace.memory import storage_key
from gradlint.trace.operations import Spec, spec
from gradlint.trace.private import sequence_number
from gradlint.trace.records import ROW_OF_NOTHING, Cell, Op, Written, serial
from gradlint.trace.source import context, is_for_itself, is_property

if TYPE_CHECKING:
    from gradlint.trace.session import Session

Tensor = torch.Tensor
_LEAF = "a leaf Variable that requires grad"
_LEAF_VIEW = "a view of a leaf Variable that requires grad"
# each result is a view of the argument in its place
_PAIRED = frozenset({"broadcast_tensors", "meshgrid"})
_SUMS = frozenset({"add", "add_", "radd", "iadd"})
# types of arguments that a record keeps as they are
_KEPT = frozenset({int, float, str, bool, slice})
_GETITEM = "torch.Tensor.__getitem__"
_MOST_SUMS = 200
_INFERENCE = ("Inference tensors cannot", "Inplace update to inference tensor")
_OUT = "functions with out=... arguments don't support"
_SEQUENTIAL = torch.nn.Sequential.forward.__code__
_MODULES = os.path.join(os.path.dirname(torch.nn.modules.__file__), "")


def tensors(things: Iterable[Any], depth: int = 3) -> list[Tensor]:
    """The tensors among arguments, also those in lists, tuples and dicts."""
    found: list[Tensor] = []
    for thing in things:
        if isinstance(thing, Tensor):
            found.append(thing)
        elif depth and isinstance(thing, (list, tuple)):
            found += tensors(thing, depth - 1)
        elif depth and isinstance(thing, dict):
            found += tensors(thing.values(), depth - 1)
    return found


class Recorder(TorchFunctionMode):
    """Writes an `Op` for what torch functions return."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.memory = session.memory
        # what the lines that set a gradient did last: did it clear?
        self._clearing: dict[object, bool] = {}
        self._has_begun = False  # what may become a total over the steps
        self._specials: dict[str, Callable[..., Any]] = {
            "requires_grad_": self._requires_grad_,
            "set_requires_grad": self._set_requires_grad,
            "set_grad": self._set_grad,
            "get_grad": self._get_grad,
            "get_data": self._get_data,
            "set_data": self._set_data,
            "detach_": self._detach_,
            "grad_mode": self._grad_mode,
            "tap": self._tap,
            "hook": self._hook,
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        session = self.session
        judged = spec(func)
        kwargs = kwargs or {}
        if judged.ignored or session.quiet:
            return func(*args, **kwargs)
        if judged.special:
            return self._specials[judged.special](func, args, kwargs)
        before = sequence_number()
        try:
            out = func(*args, **kwargs)
        except RuntimeError as error:
            session.guarded(self._refused, judged, args, kwargs, error)
            raise
        if not session.recording and _goes_well(judged, args, out):
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
            self._wrote(judged, args[0], args[1:], before)
        elif isinstance(out, Tensor):
            written = self._written(judged, args, kwargs, out)
            if written:
                self._wrote(judged, out, (*args, *kwargs.values()), before)
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
                made.arguments = self._arguments(args[::-1] if judged.reflected else args, kwargs)
                if kwargs.get("rounding_mode"):
                    made.flags |= {"zero-gradient"}
                self.memory.remember(out, made)
                self._judge(judged, made)
                if judged.is_softmax and given and _has_row_of_nothing(given[0], out, args, kwargs):
                    made.flags |= {ROW_OF_NOTHING}
                if judged.is_loss or (out.requires_grad and not out.dim()):
                    for each in self.session.on_loss_made:
                        each(out, made)

    def _arguments(
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

    def _judge(self, judged: Spec, made: Op) -> None:
        """Write down a sum of losses, and a value that is a loss by what computed it or by its
        name.
        """
        if judged.name in _SUMS:
            self._summed(made)
        if made.requires_grad and made.kind is Kind.OPERATION and made.place:
            name = loss_name(made.place)
            for detail in [""] * judged.is_loss + [name] * bool(name):
                self.session.note("fact", made.place, what="loss", op=made, detail=detail)

    def _summed(self, made: Op) -> None:
        """A total, computed where what it is computed from was computed, keeps the graphs of all
        its terms.
        """
        if not made.place or self.session.sums > _MOST_SUMS:
            return
        terms = [
            each for each in _terms(made) if each.requires_grad and each.kind is Kind.OPERATION
        ]
        total = next((each for each in terms if _grows_into(each, made)), None)
        if total is None:
            self._perhaps_first(made, terms)
            return
        self.session.sums += 1
        for term in made.inputs:
            if term is not total and total not in term.inputs and term.requires_grad:
                self.session.note("kept", made.place, op=term, how="sum", total=total)

    def _perhaps_first(self, made: Op, terms: list[Op]) -> None:
        """A sum with what an earlier step computed is perhaps the first of a total: the next one is
        looked at, too.
        """
        if not self._has_begun and any(each.step < made.step for each in terms):
            self._has_begun = True
            self.session.look_again()

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
            self._explain(made, judged, out)
            if dead and out.requires_grad:
                made.flags, made.cut = made.flags | {"dead-view"}, None
        elif not judged.writes and out.is_leaf:
            self._leaf(made)
        elif judged.missing:
            made.missing = True
        if judged.zero_gradient:
            made.flags |= {"zero-gradient"}
        made.autocast = self.session.autocast
        layer = local(_SEQUENTIAL, "module")
        if layer is not None:
            made.layer_made, made.layer = self.session.made_at(layer), weakref.ref(layer)
        made.inference = torch.is_inference_mode_enabled() and out.is_inference()
        if made.inference:
            made.cut_place = self.session.inference_at
        return made

    def _leaf(self, made: Op) -> None:
        """A new leaf; a view made with grad mode off says that it requires grad, too, but nothing
        leads on from it.
        """
        if torch.is_grad_enabled() or not any(source.requires_grad for source in made.inputs):
            made.kind = Kind.LEAF
            self.session.came_late(made.place)
        else:
            made.requires_grad, made.flags = False, frozenset({"dead-view"})
            self._cut_by_mode(made)

    def _explain(self, made: Op, judged: Spec, out: Tensor) -> None:
        """Say why a result carries no gradient."""
        if not any(source.requires_grad for source in made.inputs):
            if judged.constant and not made.inputs and (out.numel() == 1 or not judged.copies):
                made.kind, made.cut = Kind.CONSTANT, Cut.CONSTANT
                is_shown = out.numel() == 1 and out.device.type == "cpu" and judged.copies
                made.number = out.item() if is_shown else judged.fill
            elif not made.inputs:
                made.kind = Kind.DATA
            return
        if judged.name == "detach":
            made.cut = Cut.DETACH
        elif torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
            self._cut_by_mode(made)
        elif judged.copies:
            made.cut = Cut.COPY
        else:
            made.cut = Cut.NON_DIFFERENTIABLE

    def _cut_by_mode(self, made: Op) -> None:
        """Grad mode is off: by the program, or by what a distribution's `sample()` does for
        itself.
        """
        session = self.session
        made.cut = Cut.NON_DIFFERENTIABLE if session.samples else Cut.GRAD_MODE
        if not session.samples:
            made.cut_place = (
                session.inference_at if torch.is_inference_mode_enabled() else session.grad_off
            )

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

    # --- in place

    def _wrote(self, judged: Spec, target: Tensor, given: Sequence[Any], before: int) -> None:
        place = here()
        previous = self.memory.known(target) or self.memory.of(target, place)
        counted = "data" not in previous.flags
        inputs = (
            previous,
            *(self.memory.of(other, place) for other in tensors(given) if other is not target),
        )
        inputs += escapes.linked(self.memory, given, place)
        if previous.held is None and not self._stays(target, inputs):
            after = self.op(judged, inputs, target, place, before)
            after.cell = cell = self._log(target, judged, place, counted)
            after.arguments = self._arguments(
                (None, *given) if judged.name == "setitem" else given, {}
            )
            if not after.requires_grad and after.cut is None and after.kind is not Kind.OPERATION:
                after.kind = Kind.OPERATION
            after.flags |= previous.flags & {"data", "grad"}
            after.gradient_of = previous.gradient_of
            self.memory.remember(target, after)
            self.memory.last_written[storage_key(target)] = after
            self._judge(judged, after)
        else:
            after = previous
            after.cell = cell = self._log(target, judged, place, counted)
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
        own = [each for each in previous.place[:2] if each.activation == place[0].activation]
        if not own or not is_for_itself(place[0].code, own[0].instruction, place[0].instruction):
            return False
        first = previous.place[0]
        is_own = own[0] is first
        is_copy = is_own and (COMPUTED_ANEW in previous.flags or previous.name == _GETITEM)
        return is_copy or (not is_own and is_property(first.code, first.instruction))

    def _stays(self, target: Tensor, inputs: tuple[Op, ...]) -> bool:
        """Whether one record does for a value before and after a write: that of a counter, say."""
        carries = target.requires_grad or inputs[0].requires_grad
        return not self.session.recording and not carries and len(inputs) == 1

    def _log(self, target: Tensor, judged: Spec, place: Place, counted: bool) -> Cell:
        cell = self.memory.cell(target)
        version = 0 if target.is_inference() else target._version
        cell.writes.append(Written(judged.title, place, counted, next(serial), version))
        return cell

    def _refused(
        self, judged: Spec, args: Sequence[Any], kwargs: dict[str, Any], error: RuntimeError
    ) -> None:
        """torch refused a call: a leaf or an inference tensor in place, or `out=` with a
        gradient.
        """
        text = str(error)
        reason = (
            "leaf"
            if _LEAF in text or _LEAF_VIEW in text
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

    # --- attributes and flags

    def _requires_grad_(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        had = args[0].requires_grad
        out = self._set_flag(func, args, kwargs)
        if out.requires_grad != had:
            self.session.guarded(self.became_leaf, out, "requires_grad_")
        return out

    def _set_flag(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Set `requires_grad`, which torch refuses for an inference tensor."""
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            if "inference tensor" in str(error):
                self.session.guarded(self._refused_flag, args[0], "inference-tensor-used")
            elif "flags of leaf variables" in str(error):
                self.session.guarded(self._refused_flag, args[0], "flag-refused")
            elif "being transformed" in str(error):
                self.session.guarded(self._refused_flag, args[0], "autograd-in-transform")
            raise

    def _refused_flag(self, tensor: Tensor, what: str) -> None:
        place = here()
        op = self.memory.of(tensor, place)
        self.session.note("fact", place, what=what, op=op, detail="requires_grad_")

    def _set_requires_grad(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        had = args[0].requires_grad
        out = self._set_flag(func, args, kwargs)
        if args[0].requires_grad != had:
            self.session.guarded(self.became_leaf, args[0], "requires_grad")
        return out

    def became_leaf(self, tensor: Tensor, how: str) -> None:
        """`requires_grad` was switched on or off for a leaf."""
        place = here()
        if isinstance(tensor, torch.nn.Parameter):
            held = self.memory.held(tensor, place)
            held.frozen_at = () if tensor.requires_grad else place
            self.memory.of(tensor, place)
            self.session.flag_set(held, "thawed" if tensor.requires_grad else "frozen", place)
            return
        previous = self.memory.known(tensor)
        inputs = () if previous is None else (previous,)
        kind = Kind.LEAF if tensor.requires_grad else Kind.OPERATION
        made = Op(
            f"torch.Tensor.{how}",
            kind,
            inputs,
            place,
            next(serial),
            self.session.step,
            tensor.requires_grad,
            tensor.dtype,
        )
        if not tensor.requires_grad:
            made.cut, made.cut_place = Cut.FROZEN, place
        self.memory.remember(tensor, made)

    def _set_grad(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        # `del p.grad` gives none
        had, given = (args[0].grad is not None, args[1] if len(args) > 1 else None)
        out = func(*args, **kwargs)
        is_cleared = had and (given is None or self._is_zero(given))
        if is_cleared:
            self.session.guarded(self.session.gradient_dropped, args[0])
        if given is not None and (
            not is_cleared or is_torchs(sys._getframe(2).f_code)
        ):  # FSDP hands its own on
            self.session.guarded(self.session.gradient_given, args[0])
        return out

    def _is_zero(self, gradient: Tensor) -> bool:
        """Whether what is set for a gradient clears it.

        To ask waits for a device that is not the CPU: once the run is only watched, the line does
        what it did before.
        """
        if (
            type(gradient) is not Tensor
            or gradient.layout is not torch.strided
            or is_captured(gradient)
        ):
            return False
        if gradient.device.type == "cpu":
            return not bool(gradient.detach().any())
        frame = next(iter(nearest()), None)
        line = (frame.code, frame.instruction) if frame is not None else None
        if self.session.recording or line not in self._clearing:
            self._clearing[line] = not bool(gradient.detach().any())
        return self._clearing[line]

    def _get_grad(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        out = func(*args, **kwargs)
        if self.session.in_apply:  # `module.to(device)` moves the gradients along: no use of them
            return out
        if out is not None:
            self.session.guarded(self._gradient_read, args[0], out)
        elif args[0].requires_grad and not args[0].is_leaf and not args[0].retains_grad:
            self.session.guarded(self._no_gradient_read, args[0])
        return out

    def _no_gradient_read(self, owner: Tensor) -> None:
        """`.grad` of what is no leaf stays None."""
        op = self.memory.known(owner)
        if op is not None:
            self.session.note("fact", here(), what="non-leaf-grad", op=op, detail="")

    def _gradient_read(self, owner: Tensor, gradient: Tensor) -> None:
        place, known = here(), self.memory.known(gradient)
        is_used = not place or context(place[0].code, place[0].instruction) != "glance"
        if known is not None:
            if "grad" in known.flags and is_used:
                self.session.gradient_read(self.memory.of(owner, place), place)
            return
        made = Op(
            "torch.Tensor.grad",
            Kind.DATA,
            (),
            place,
            next(serial),
            self.session.step,
            gradient.requires_grad,
            gradient.dtype,
        )
        read = self.memory.of(owner, place)
        made.flags, made.gradient_of = frozenset({"grad"}), read.held
        self.memory.remember(gradient, made)
        if is_used:
            self.session.gradient_read(read, place)

    def _get_data(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        out = func(*args, **kwargs)
        self.session.guarded(self._data_read, args[0], out)
        return out

    def _data_read(self, owner: Tensor, alias: Tensor) -> None:
        if torch.nn.parameter.is_lazy(owner):
            return
        place = here()
        origin = self.memory.of(owner, place)
        made = Op(
            "torch.Tensor.data",
            Kind.OPERATION,
            (origin,),
            place,
            next(serial),
            self.session.step,
            False,
            alias.dtype,
        )
        made.cut = Cut.DETACH if origin.requires_grad else None
        made.flags = frozenset({"data"}) | (origin.flags & {"grad"})  # `p.grad.data.zero_()` clears
        made.gradient_of = origin.gradient_of
        self.memory.remember(alias, made)

    def _set_data(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        out = func(*args, **kwargs)
        # which moves it, or gathers its shards
        by_torch = self.session.in_apply or is_torchs(sys._getframe(2).f_code)
        if isinstance(args[0], torch.nn.Parameter) and self.session.steppers and not by_torch:
            self.session.guarded(self._data_set, args[0], args[1])
        return out

    def _data_set(self, parameter: Tensor, new: Tensor) -> None:
        place = here()
        held, source = self.memory.held(parameter, place), self.memory.of(new, place)
        self.session.note(
            "fact", place, what="data-set", held=held, source=source, detail="torch.Tensor.data"
        )

    def _detach_(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        had = args[0].requires_grad
        origin = self.session.guarded(self.memory.of, args[0], here()) if had else None
        out = func(*args, **kwargs)
        if had and origin is not None:
            made = Op(
                "torch.Tensor.detach_",
                Kind.OPERATION,
                (origin,),
                here(),
                next(serial),
                self.session.step,
                False,
                out.dtype,
                Cut.DETACH,
            )
            self.memory.remember(out, made)
        return out

    def _grad_mode(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        had = torch.is_grad_enabled()
        out = func(*args, **kwargs)
        if torch.is_grad_enabled() != had:
            self.session.guarded(self.session.grad_mode_switched, not had, sys._getframe(2))
        return out

    def _tap(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if not isinstance(
            args[0], torch.nn.Parameter
        ):  # whose hooks are seen when its gradient is cleared
            self.session.guarded(self.session.tapped)
        return func(*args, **kwargs)

    def _hook(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        self.session.guarded(self._hooked, args[0], kwargs.get("hook", args[-1]))
        return out

    def _hooked(self, tensor: Tensor, hook: Any) -> None:
        code, is_method = getattr(inspect.unwrap(hook), "__code__", None), inspect.ismethod(hook)
        if code is not None and is_users(code):
            op = self.memory.of(tensor, here())
            self.session.hooks.setdefault(code, (self.session.moment(), here(), op, is_method))


def _has_row_of_nothing(
    logits: Tensor, out: Tensor, args: Sequence[Any], kwargs: dict[str, Any]
) -> bool:
    """Whether all that a softmax is taken of is minus infinity somewhere; asked only where a
    gradient comes back.
    """
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if (
        not isinstance(dim, int)
        or not out.requires_grad
        or is_captured(logits)
        or not logits.numel()
    ):
        return False
    return bool(logits.detach().isneginf().all(dim).any())


def _made_in_inference(op: Op) -> None:
    """Say of an inference tensor that was seen outside of `inference_mode`, a view of one, where
    that mode began.
    """
    source = op
    while not source.inference and source.inputs:
        source = source.inputs[0]  # what a view is of
    if source.inference:
        op.inference, op.cut_place = True, source.cut_place


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
    return type(out) is tuple and all(
        part is None or (isinstance(part, Tensor) and part.requires_grad) for part in out
    )


def _terms(made: Op) -> tuple[Op, ...]:
    """What a sum is made of, and what carries a gradient there is scaled from:
    `decay * total + (1 - decay) * loss`.
    """
    return (
        *made.inputs,
        *(source for term in made.inputs if term.requires_grad for source in term.inputs),
    )


def _grows_into(total: Op, made: Op) -> bool:
    """Whether one statement computed both, in one call of its function or in those of two steps."""
    if not total.place:
        return False
    old, new = total.place[0], made.place[0]
    return old == new or (
        old.code is new.code and old.instruction == new.instruction and total.step < made.step
    )
