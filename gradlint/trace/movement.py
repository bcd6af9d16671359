"""Which parameters have moved: some numbers of each are kept from before its first step, and
compared at the end.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch

from gradlint.trace.capture import is_captured
from gradlint.trace.records import Held

_KEPT = 64  # numbers of each parameter
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Movement:
    """The numbers of parameters as they were before the first step of an optimizer that holds
    them.
    """

    def __init__(self) -> None:
        self._before: dict[Held, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
        self.moved: dict[Held, bool] = {}
        self.is_broken = False  # what was finite is not any more
        self.is_fed = False  # a step has had a gradient other than zero
        self.zeros = 0  # the steps before that which had gradients, all of them zero

    def keep(self, parameters: Iterable[tuple[Held, torch.Tensor]]) -> None:
        """Take down the numbers of those that are new."""
        for held, parameter in parameters:
            if held not in self._before and _is_readable(parameter):
                self._before[held] = weakref.ref(parameter), _numbers(parameter)

    def compare(self) -> None:
        """At the end: tell of each that is still alive whether it has moved."""
        for held, (reference, before) in self._before.items():
            parameter = reference()
            if parameter is not None and _is_readable(parameter):
                # the program may have taken it to another device since
                now = _numbers(parameter).to(before)
                self.moved[held] = not torch.equal(before, now)
                self.is_broken |= bool(before.isfinite().all()) and not now.isfinite().all()

    def feed(self, gradients: Iterable[torch.Tensor | None]) -> None:
        """Before a step: whether one of its gradients is other than zero, until one was. What
        cannot be looked at is taken to be.
        """
        known = [] if self.is_fed else [each for each in gradients if each is not None]
        self.is_fed = self.is_fed or any(map(_is_other_than_zero, known))
        self.zeros += bool(known) and not self.is_fed

    @property
    def has_only_zeros(self) -> bool:
        """Whether each of several steps had gradients, and all of them were zero."""
        return self.zeros > 1 and not self.is_fed

    @property
    def is_still(self) -> bool:
        """Whether something could have moved, and nothing has."""
        return bool(self.moved) and not any(self.moved.values())


def _is_readable(parameter: torch.Tensor) -> bool:
    is_plain = (
        type(parameter) in _PLAIN and parameter.layout is torch.strided and parameter.requires_grad
    )
    return (
        is_plain and parameter.numel() > 0 and not parameter.is_meta and not is_captured(parameter)
    )


def _is_other_than_zero(gradient: torch.Tensor) -> bool:
    is_plain = type(gradient) is torch.Tensor and gradient.layout is torch.strided
    if not is_plain or gradient.is_meta or is_captured(gradient):
        return True
    return bool(gradient.any())


def _numbers(parameter: torch.Tensor) -> torch.Tensor:
    flat = parameter.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _KEPT)][:_KEPT].clone()
