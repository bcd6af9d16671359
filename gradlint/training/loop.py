"""The reference training loop. Each optimizer step is the one that a single large batch would have
made.

A *window* is what makes one step: up to `accumulate` micro-batches, and in the last window of an
epoch what is left.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from gradlint.training.bar import progress_bar
from gradlint.training.precision import Wish, choose_precision
from gradlint.training.randomness import (
    State,
    loader_generators,
    random_state,
    samplers,
    set_random_state,
)
from gradlint.training.ranks import Ranks
from gradlint.training.told import warn

Batch = TypeVar("Batch")


class SkippedBatch(UserWarning):
    """A micro-batch, or a whole window, that trained nothing."""


class TrainingStalledError(RuntimeError):
    """More windows in a row than tolerated made no step."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one window came to. `loss` is the mean over the window and all ranks of what has a
    gradient.
    """

    number: int
    loss: float
    gradient_norm: float
    taken: bool


@dataclass(slots=True)
class Progress:
    """How far the training is; `batches` are the micro-batches done in the present epoch."""

    epoch: int = 0
    batches: int = 0
    steps: int = 0
    skipped_batches: int = 0
    skipped_steps: int = 0
    skipped_in_a_row: int = 0


# in the first windows, how the scaler finds its scale
_OVERFLOW = "the scaled gradients exceed float16"


def _alike(_batch: object) -> float:
    return 1.0


def _warn(message: str) -> None:
    warn(message, SkippedBatch)


def _with_entries(parameter: Tensor) -> Tensor:
    """A tensor that has the entries of a parameter's gradient for its own: of a sparse one, those
    that are there.
    """
    if parameter.grad is None or not parameter.grad.is_sparse:
        return parameter
    parameter.grad = parameter.grad.coalesce()
    part = torch.empty_like(parameter.grad.values())
    part.grad = parameter.grad.values()
    return part


class Trainer(Generic[Batch]):
    """Trains `model` on `loader`; `loss(model, batch)` gives the mean loss of a micro-batch.

    `weight(batch)` says how much a micro-batch counts within its window: 1 gives the mean of the
    micro-batches, their number of samples or of tokens gives the mean over all samples or tokens.
    The scheduler, if any, is stepped once for each optimizer step. With `tolerate` windows in a row
    that made no step, training goes on; with one more it stops.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loader: Iterable[Batch],
        loss: Callable[[nn.Module, Batch], Tensor],
        *,
        accumulate: int = 1,
        weight: Callable[[Batch], float | Tensor] = _alike,
        clip_norm: float = math.inf,
        precision: Wish = "float32",
        scheduler: LRScheduler | None = None,
        tolerate: int = 20,
        show_progress: bool = True,
    ) -> None:
        if accumulate < 1:
            raise ValueError(
                f"accumulate is {accumulate}, and a window needs at least 1 micro-batch"
            )
        self.model, self.optimizer, self.loader, self.loss = model, optimizer, loader, loss
        self.accumulate, self.weight, self.clip_norm = accumulate, weight, clip_norm
        self.scheduler, self.tolerate = scheduler, tolerate
        self.precision = choose_precision(precision, next(model.parameters()).device)
        self.scaler = self.precision.scaler()
        self.ranks = Ranks(model)
        self.progress = Progress()
        self.show_progress = show_progress and self.ranks.is_first
        # What is in evaluation mode within a model that trains (a BatchNorm that is frozen) is
        # meant to be.
        self._asleep = (
            [part for part in model.modules() if not part.training] if model.training else []
        )
        self._generators = loader_generators(loader)
        self._epoch_start: State | None = None
        self._resume_at: State | None = None
        if self.show_progress:
            print(self.effective_batch(), file=sys.stderr)

    def epoch(self, after_step: Callable[[Step], object] | None = None) -> None:
        """Trains one epoch, or the rest of an interrupted one; `after_step` is called after each
        window.
        """
        batches = self._batches()
        done = self.progress.batches // self.accumulate
        with progress_bar(
            f"epoch {self.progress.epoch}", self._length(), done, shown=self.show_progress
        ) as show:
            for window, total in self._windows(batches):
                step = self._train(window, total)
                show(f"loss {step.loss:.4g}")
                if after_step is not None:
                    after_step(step)
        if self.progress.batches == 0:
            raise ValueError(
                "the loader gave no batch: it is empty, or an iterator that an earlier epoch "
                "has consumed"
            )
        self.progress.epoch += 1
        self.progress.batches = 0

    def effective_batch(self) -> str:
        """The size of a full window in words, with the precision."""
        size = getattr(self.loader, "batch_size", None)
        total = (
            f"{(size or 1) * self.accumulate * self.ranks.count} {'samples' if size else 'batches'}"
        )
        samples = f"{size} samples x " if size else ""
        return (f"effective batch: {total} = {samples}{self.accumulate} micro-batches x "
            f"{self.ranks.count} processes; "
                f"{self.precision}")  # fmt: skip

    def _windows(
        self, batches: Iterator[Batch]
    ) -> Iterator[tuple[list[tuple[Batch, float]], float]]:
        """Windows of micro-batches with their weights, and what these are divided by before the
        backward.

        That is their sum over all ranks, or up to twice that: the share of the mean weight is a
        power of two, which no format rounds.
        """
        while True:
            window = [
                (batch, float(self.weight(batch))) for batch in islice(batches, self.accumulate)
            ]
            weights = [weight for _, weight in window]
            total, count, ranks = self.ranks.total(
                sum(weights), float(len(window)), float(bool(window))
            )
            if ranks < self.ranks.count:  # a rank that goes on alone would wait for ever
                if window:
                    _warn(f"{len(window)} batches are left out: another process has none left")
                return
            yield window, total / count * 2 ** (int(count) - 1).bit_length()

    def _train(self, window: list[tuple[Batch, float]], total: float) -> Step:
        """One window: clear, accumulate, and step on the mean gradient."""
        self.model.train()
        for part in self._asleep:
            part.training = False
        self.optimizer.zero_grad(set_to_none=True)
        losses: dict[int, Tensor] = {}
        used = 0.0
        for number, (batch, weight) in enumerate(window, start=self.progress.batches):
            last = number + 1 == self.progress.batches + len(window)
            with self.ranks.between(last=last):
                with self.precision.autocast():
                    loss = self.loss(self.model, batch)
                if loss.grad_fn is None or weight <= 0:
                    self._skip_batch(
                        number,
                        "has weight 0" if weight <= 0 else "gave a loss without gradient",
                        last=last,
                    )
                    continue
                # a sum of float16 soon is infinite
                loss = loss.to(torch.promote_types(loss.dtype, torch.float32))
                # The number of ranks undoes the mean that DDP takes over them; `_update` divides by
                # what is left.
                scaled = self.scaler.scale(loss * (weight / total * self.ranks.count))
                scaled.backward()  # type: ignore[no-untyped-call]
            losses[number] = weight * loss.detach()
            used += weight
        self.progress.batches += len(window)
        used, loss_sum = self.ranks.total(used, float(sum(losses.values())))
        norm = self._update(total / used) if used else None
        taken = self._count(norm, losses)
        return Step(self.progress.steps, loss_sum / used if used else math.nan, norm or 0.0, taken)

    def _update(self, correction: float) -> float | None:
        """Steps if every gradient is finite; gives their norm before clipping, or None if there is
        no gradient.
        """
        parameters = [
            p
            for group in self.optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        if not parameters:
            return None
        self.scaler.unscale_(self.optimizer)
        held = [_with_entries(parameter) for parameter in parameters]
        if correction != 1:  # to the mean over what was not skipped
            for part in held:
                assert part.grad is not None
                part.grad.mul_(correction)
        norm = float(nn.utils.clip_grad_norm_(held, self.clip_norm))
        if math.isfinite(norm):
            self.scaler.step(self.optimizer)
            if self.scheduler is not None:
                self.scheduler.step()
        self.scaler.update()
        return norm

    def _skip_batch(self, number: int, why: str, *, last: bool) -> None:
        self.progress.skipped_batches += 1
        _warn(f"epoch {self.progress.epoch}, batch {number} {why}: skipped")
        if last:
            self.ranks.contribute_zero()

    def _count(self, norm: float | None, losses: dict[int, Tensor]) -> bool:
        """Whether a step was made; counts and tells why where none was."""
        if norm is not None and math.isfinite(norm):
            self.progress.steps += 1
            self.progress.skipped_in_a_row = 0
            return True
        self.progress.skipped_steps += 1
        self.progress.skipped_in_a_row += 1
        why = self._obstacle(norm, losses)
        message = (
            f"epoch {self.progress.epoch}, window up to batch {self.progress.batches - 1}: no "
            f"step, as {why}"
        )
        if self.progress.skipped_in_a_row > self.tolerate:
            raise TrainingStalledError(
                f"{message}; it is number {self.progress.skipped_in_a_row} in a row without a step"
            )
        if why != _OVERFLOW:
            _warn(message)
        return False

    def _obstacle(self, norm: float | None, losses: dict[int, Tensor]) -> str:
        if norm is None:
            return "no gradient reaches a parameter that the optimizer holds"
        infinite = [str(number) for number, loss in losses.items() if not math.isfinite(loss)]
        if infinite:
            return f"the loss of batch {', '.join(infinite)} is not finite"
        return (
            _OVERFLOW
            if self.scaler.is_enabled()
            else "a gradient is not finite, although every loss is"
        )

    def _length(self) -> int | None:
        """How many windows an epoch has, if the loader knows its length: that of an IterableDataset
        has none.
        """
        try:
            return (
                math.ceil(len(self.loader) / self.accumulate)
                if isinstance(self.loader, Sized)
                else None
            )
        except TypeError:
            return None

    def _batches(self) -> Iterator[Batch]:
        """The micro-batches of this epoch, from where the training stands."""
        for sampler in samplers(self.loader):
            # a DistributedSampler gives the same order in each epoch otherwise
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(self.progress.epoch)
        if self._resume_at is None:
            self.progress.batches = 0
            self._epoch_start = random_state(self._generators)
            return iter(self.loader)
        assert self._epoch_start is not None
        set_random_state(self._epoch_start, self._generators)
        batches = iter(self.loader)
        # this leaves the loader's own generators as they were
        deque(islice(batches, self.progress.batches), maxlen=0)
        set_random_state(self._resume_at)
        self._resume_at = None
        return batches

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs, as of the last window: take it in `after_step` or between
        epochs.
        """
        return {
            "model": self.ranks.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else None,
            "scaler": self.scaler.state_dict(),
            "progress": asdict(self.progress),
            "epoch_start": self._epoch_start,
            "random": random_state(self._generators),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts everything back, so that `epoch` goes on with the next window as if nothing had
        happened.
        """
        self.ranks.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.scaler.load_state_dict(state["scaler"])
        self.progress = Progress(**state["progress"])
        self._epoch_start = state["epoch_start"]
        set_random_state(state["random"], self._generators)
        self._resume_at = state["random"] if self.progress.batches else None
