"""A small model and its training: what the reference loop is held against."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

Pair = tuple[Tensor, Tensor]


def model_of(dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).to(dtype)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def squared(model: nn.Module, batch: Pair) -> Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def samples(batch: Pair) -> float:
    return len(batch[0])


def large_batches(model: nn.Module, windows: list[list[Pair]], clip_norm: float = math.inf) -> None:
    """Trains with one batch a window, as anyone would write it without accumulation."""
    optimizer = sgd(model)
    for window in windows:
        optimizer.zero_grad()
        inputs, targets = (torch.cat(tensors) for tensors in zip(*window, strict=True))
        squared(model, (inputs, targets)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()


def largest_difference(some: Iterable[Tensor], others: Iterable[Tensor]) -> float:
    return max(float((a - b).detach().abs().max()) for a, b in zip(some, others, strict=True))
