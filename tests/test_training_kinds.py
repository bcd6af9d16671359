"""The reference loop with other kinds of data, layers, losses and gradients: still the step of one
large batch.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_training import Pair, large_batches, largest_difference, model_of, samples, sgd, squared
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, TensorDataset

from gradlint.training import SkippedBatch, Step, Trainer

torch.set_num_threads(1)
ROWS = torch.randn(14, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def pair(rows: Tensor) -> Pair:
    return rows[:, :3], rows[:, 3:]


def quiet(model: nn.Module, batches: Any, loss: Any = squared, **options: Any) -> Trainer[Any]:
    optimizer = options.pop("optimizer", None) or sgd(model)
    return Trainer(model, optimizer, batches, loss, show_progress=False, **options)


class Stream(IterableDataset[Pair]):
    """Rows without a number of them."""

    def __iter__(self) -> Iterator[Pair]:
        return ((row[:3], row[3:]) for row in ROWS)


def test_a_stream_without_a_length_is_trained_on_as_one_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, reference = model_of(), model_of()
    loader: DataLoader[Pair] = DataLoader(Stream(), batch_size=4)
    Trainer(model, sgd(model), loader, squared, accumulate=3, weight=samples).epoch()
    large_batches(reference, [[pair(ROWS[:12])], [pair(ROWS[12:])]])
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_a_batch_norm_that_was_put_into_evaluation_stays_there() -> None:
    torch.manual_seed(0)
    frozen = nn.BatchNorm1d(5)
    assert frozen.running_mean is not None
    frozen.running_mean += 0.5
    frozen.eval()
    model = nn.Sequential(nn.Linear(3, 5), frozen, nn.Tanh(), nn.Linear(5, 1)).double()
    reference, before = copy.deepcopy(model), frozen.running_mean.clone()
    trainer = quiet(model, [pair(ROWS[:5]), pair(ROWS[5:])], accumulate=2, weight=samples)
    trainer.epoch(lambda _step: model.eval())
    large_batches(reference, [[pair(ROWS)]])
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12
    assert torch.equal(frozen.running_mean, before)
    trainer.model.train()
    trainer.epoch()
    assert (model[0].training, model[1].training) == (True, False)


def test_a_model_that_is_in_evaluation_as_a_whole_is_trained() -> None:
    model = model_of().eval()
    quiet(model, [pair(ROWS)]).epoch()
    assert all(part.training for part in model.modules())


class Words(nn.Module):
    """An embedding with sparse gradients, and a layer over it."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(9, 4, sparse=sparse, dtype=torch.float64)
        self.top = nn.Linear(4, 1, dtype=torch.float64)

    def forward(self, words: Tensor) -> Tensor:
        made: Tensor = self.top(self.table(words).sum(1))
        return made


@pytest.mark.parametrize("clip_norm", [math.inf, 0.05])
def test_sparse_gradients_are_accumulated_and_clipped_as_dense_ones(clip_norm: float) -> None:
    generator = torch.Generator().manual_seed(1)
    batches = [
        (
            torch.randint(0, 9, (size, 6), generator=generator),
            torch.randn(size, 1, dtype=torch.float64),
        )
        for size in (3, 2, 4)
    ]
    models = [Words(sparse=True), Words(sparse=False)]
    norms: list[list[float]] = [[], []]
    for model, seen in zip(models, norms, strict=True):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = quiet(
            model, batches, optimizer=optimizer, accumulate=2, weight=samples, clip_norm=clip_norm
        )
        trainer.epoch(lambda step, seen=seen: seen.append(step.gradient_norm))  # type: ignore[misc]
    assert models[0].table.weight.grad is not None
    assert models[0].table.weight.grad.is_sparse
    assert largest_difference(models[0].parameters(), models[1].parameters()) < 1e-12
    assert norms[0] == pytest.approx(norms[1], abs=1e-12)


def half(model: nn.Module, batch: Pair) -> Tensor:
    """A mean loss in float16, of about 300."""
    return squared(model, batch).to(torch.float16) + 300


def test_a_loss_in_float16_is_summed_in_more() -> None:
    model = model_of()
    steps: list[Step] = []
    batches = [pair(ROWS[:7]), pair(ROWS[7:])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkippedBatch)
        trainer = quiet(model, batches, half, accumulate=2, weight=lambda _: 1000.0)
        trainer.epoch(steps.append)
    assert [step.taken for step in steps] == [True]
    expected = sum(half(model_of(), batch).item() for batch in batches) / 2
    assert steps[0].loss == pytest.approx(expected, abs=1e-6)


def test_a_loss_in_bfloat16_has_its_share_whole() -> None:
    """What the share is rounded to would show in every parameter."""
    model, reference = model_of(), model_of()

    def rounded(model: nn.Module, batch: Pair) -> Tensor:
        return squared(model, batch).to(torch.bfloat16)

    batches = [pair(ROWS[:7]), pair(ROWS[7:])] * 5
    quiet(model, batches, rounded, accumulate=10).epoch()
    large_batches(reference, [[pair(ROWS)]])
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


class Shuffled(BatchSampler):
    """Batches in an order that the epoch decides."""

    def __init__(self) -> None:
        self.epoch = -1
        self.seen: list[int] = []

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.seen.append(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(14, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        return iter([order[:7], order[7:]])

    def __len__(self) -> int:
        return 2


def test_a_batch_sampler_is_told_the_epoch() -> None:
    sampler = Shuffled()
    loader: DataLoader[Any] = DataLoader(TensorDataset(*pair(ROWS)), batch_sampler=sampler)
    model, reference = model_of(), model_of()
    trainer = quiet(model, loader)
    for _ in range(2):
        trainer.epoch()
    assert sampler.seen == [0, 1]
    windows = []
    for epoch in range(2):
        sampler.epoch = epoch
        windows += [[pair(ROWS[indices])] for indices in sampler]
    large_batches(reference, windows)
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_warnings_are_about_the_line_that_trains() -> None:
    def nothing(model: nn.Module, batch: Pair) -> Tensor:
        return torch.tensor(0.0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = quiet(model_of(), [pair(ROWS)], nothing)
        trainer.epoch()
        # works on a CPU, or tells of this line
        quiet(model_of(), [pair(ROWS)], precision="float16")
    assert len(caught) >= 2
    assert {warning.filename for warning in caught} == {__file__}
