"""Attributes of tensors that the program reads or sets: `requires_grad`, `.grad`, `.data`, hooks;
and grad mode.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace.capture import is_captured
from gradlint.trace.frames import here, is_torchs, is_users, nearest
from gradlint.trace.records import Op, serial
from gradlint.trace.source import context

if TYPE_CHECKING:
    from gradlint.trace.session import Session

Tensor = torch.Tensor


class Attributes:
    """Calls what reads or sets an attribute, and writes down what that means for gradients."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.memory = session.memory
        # what the lines that set a gradient did last: did it clear?
        self._clearing: dict[object, bool] = {}
        # by the word of `operations.py` for what is done
        self.by_word: dict[str, Callable[..., Any]] = {
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
            if not (self.session.step or is_captured(tensor)):  # to ask waits for a device
                held.is_zero = not tensor.requires_grad and _is_zero(tensor)
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
            self.session.guarded(self.session.gradmode.switched, not had, sys._getframe(2))
        return out

    def _tap(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if not isinstance(
            args[0], torch.nn.Parameter
        ):  # whose hooks are seen when its gradient is cleared
            self.session.guarded(self.session.tapped)
        return func(*args, **kwargs)

    def _hook(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """`p.register_post_accumulate_grad_hook(hook)`: a hook is watched that is not torch's."""
        tensor, *given = (*args, *kwargs.values())
        out = func(tensor, *map(self._watched, given))
        self.session.guarded(self._hooked, tensor, given[-1])
        return out

    def _watched(self, hook: Any) -> Any:
        def call(*args: Any) -> Any:
            running = self.session.differentiation
            if running is None or self.session.stepping or torch.compiler.is_compiling():
                return hook(*args)
            return running.run(hook, *args)

        code, _ = _code_of(hook)
        if not callable(hook) or (code is not None and is_torchs(code)):
            return hook
        return functools.wraps(hook, updated=())(call)

    def _hooked(self, tensor: Tensor, hook: Any) -> None:
        code, given = _code_of(hook)
        if code is not None and is_users(code):
            op = self.memory.of(tensor, here())
            self.session.hooks.setdefault(code, (self.session.moment(), here(), op, given))


def _code_of(hook: Any) -> tuple[CodeType | None, int]:
    """The code of a hook, below decorators and partials, and how many arguments it is given before
    its own.
    """
    given = 0
    while isinstance(hook, functools.partial):
        hook, given = hook.func, given + len(hook.args)
    below = inspect.unwrap(hook) if callable(hook) else hook  # its decorators
    given += inspect.ismethod(hook) or inspect.ismethod(below)
    return getattr(below, "__code__", None), given


def _is_zero(tensor: Tensor) -> bool:
    """Whether a tensor whose numbers can be read holds nothing but zeros."""
    return not tensor.is_meta and not bool(tensor.detach().any())
