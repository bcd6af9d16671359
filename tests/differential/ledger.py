"""What becomes of each gradient in a run of a training loop, seen by torch: used, used again, or
lost.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


@dataclass
class Ledger:
    """The gradients of one run. Each is one backward; `sizes` says how many new ones each step
    found.
    """

    raised: str = ""
    sizes: list[int] = field(default_factory=list)
    lost: int = 0  # cleared before a step used them, or left over at the end
    stacked: bool = False  # a step found new ones on top of such that a step had used
    _used: list[bool] = field(default_factory=list)  # of those that lie in the parameters now
    _parameters: list[torch.Tensor] = field(default_factory=list)

    def backward(self) -> None:
        self._look()
        self._used.append(False)

    def step(self) -> None:
        self._look()
        self.stacked = self.stacked or (any(self._used) and not all(self._used))
        self.sizes.append(self._used.count(False))
        self._used = [True] * len(self._used)

    def holds(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters

    def end(self) -> None:
        self._look()
        self.lost += self._used.count(False)

    def _look(self) -> None:
        """Whether the gradients were cleared since the last look."""
        if all(each.grad is None or not each.grad.any() for each in self._parameters):
            self.lost += self._used.count(False)
            self._used = []


def kept(text: str) -> Ledger:
    """Runs a program, and keeps the ledger of its one optimizer."""
    ledger = Ledger()
    with _watched(ledger), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
        except Exception as error:
            ledger.raised = f"{type(error).__name__}: {error}"
    ledger.end()
    return ledger


@contextlib.contextmanager
def _watched(ledger: Ledger) -> Iterator[None]:
    backward: Callable[..., None] = torch.Tensor.backward
    initialise = torch.optim.Optimizer.__init__

    def noted(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        ledger.backward()
        backward(self, *args, **kwargs)

    def initialised(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        ledger.holds([each for group in self.param_groups for each in group["params"]])

    hook = register_optimizer_step_pre_hook(lambda *_: ledger.step())
    try:
        with (
            mock.patch.object(torch.Tensor, "backward", noted),
            mock.patch.object(torch.optim.Optimizer, "__init__", initialised),
        ):
            yield
    finally:
        hook.remove()
