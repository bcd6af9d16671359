"""The reference loop against what PyTorch computes from one large batch."""

from __future__ import annotations

import copy
import io
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_training import Pair, large_batches, largest_difference, model_of, samples, sgd, squared
from torch import Tensor, nn

from gradlint.training import SkippedBatch, Step, Trainer, TrainingStalledError, choose_precision

torch.set_num_threads(1)

Loader = torch.utils.data.DataLoader[Pair]


def pairs(sizes: list[int], dtype: torch.dtype = torch.float64) -> list[Pair]:
    torch.manual_seed(1)
    return [
        (torch.randn(size, 3, dtype=dtype), torch.randn(size, 1, dtype=dtype)) for size in sizes
    ]


def quiet(model: nn.Module, batches: Any, loss: Any = squared, **options: Any) -> Trainer[Any]:
    optimizer = options.pop("optimizer", None) or sgd(model)
    return Trainer(model, optimizer, batches, loss, show_progress=False, **options)


def chunks(batches: list[Pair], size: int) -> list[list[Pair]]:
    return [batches[start : start + size] for start in range(0, len(batches), size)]


def same_bits(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=14),
    accumulate=st.integers(1, 9),
    clip_norm=st.sampled_from([math.inf, 0.05]),
)
def test_accumulating_any_number_of_unequal_micro_batches_equals_one_large_batch(
    sizes: list[int], accumulate: int, clip_norm: float
) -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs(sizes)
    quiet(model, batches, accumulate=accumulate, weight=samples, clip_norm=clip_norm).epoch()
    large_batches(reference, chunks(batches, accumulate), clip_norm)
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 14), accumulate=st.integers(1, 9))
def test_without_weights_a_window_is_the_mean_of_its_micro_batches(
    count: int, accumulate: int
) -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs([4] * count)
    quiet(model, batches, accumulate=accumulate).epoch()
    large_batches(reference, chunks(batches, accumulate))
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_weighting_by_tokens_equals_the_mean_over_all_tokens_that_are_not_padding() -> None:
    torch.manual_seed(2)
    tokens = [torch.randint(0, 7, (2, 9)) for _ in range(5)]
    for index, batch in enumerate(tokens):
        batch[:, 9 - index :] = -100

    def cross_entropy(model: nn.Module, batch: Tensor) -> Tensor:
        return nn.functional.cross_entropy(
            model(batch.clamp(min=0)).flatten(0, 1), batch.flatten(), ignore_index=-100
        )

    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7)).double()
    reference = copy.deepcopy(model)
    quiet(
        model, tokens, cross_entropy, accumulate=3, weight=lambda batch: (batch != -100).sum()
    ).epoch()
    optimizer = sgd(reference)
    for window in (tokens[:3], tokens[3:]):
        optimizer.zero_grad()
        cross_entropy(reference, torch.cat(window)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_gradients_that_were_there_before_the_first_window_are_cleared() -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 100.0)
    batches = pairs([4, 4])
    quiet(model, batches, accumulate=2).epoch()
    large_batches(reference, chunks(batches, 2))
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_a_step_reports_the_mean_loss_and_the_norm_before_clipping() -> None:
    model = model_of()
    batches = pairs([2, 5])
    inputs, targets = (torch.cat(tensors) for tensors in zip(*batches, strict=True))
    loss = squared(model, (inputs, targets))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    steps: list[Step] = []
    quiet(model, batches, accumulate=2, weight=samples, clip_norm=1e-3).epoch(steps.append)
    assert steps[0].number == 1
    assert steps[0].taken
    assert steps[0].loss == pytest.approx(loss.item())
    assert steps[0].gradient_norm == pytest.approx(float(norm))


def test_an_evaluation_after_a_step_does_not_leave_the_model_in_eval_mode() -> None:
    modes: list[bool] = []
    model = model_of()

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        modes.append(model.training)
        return squared(model, batch)

    quiet(model, pairs([2] * 3), loss).epoch(lambda step: model.eval())
    assert modes == [True, True, True]


# Losses without a gradient, and gradients that are not finite.


def unless(
    bad: Callable[[int], bool], instead: Callable[[Tensor], Tensor]
) -> Callable[[nn.Module, Pair], Tensor]:
    """The squared loss, but `instead` of it for the calls whose number is `bad`."""
    calls = iter(range(1_000_000))

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        value = squared(model, batch)
        return instead(value) if bad(next(calls)) else value

    return loss


@pytest.mark.parametrize(
    "instead",
    [
        lambda loss: torch.tensor(0.0),
        lambda loss: loss.detach(),
        lambda loss: loss.detach().requires_grad_(),
    ],
    ids=["constant", "detached", "leaf"],
)
@pytest.mark.parametrize("bad", range(5))
def test_a_loss_without_gradient_is_skipped_as_if_its_batch_had_not_been_there(
    bad: int, instead: Any
) -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs([3, 1, 4, 2, 5])
    trainer = quiet(
        model, batches, unless(lambda call: call == bad, instead), accumulate=3, weight=samples
    )
    with pytest.warns(SkippedBatch, match=f"epoch 0, batch {bad} gave a loss without gradient"):
        trainer.epoch()
    windows = chunks(batches, 3)
    windows[bad // 3].pop(bad % 3)
    large_batches(reference, windows)
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12
    assert trainer.progress.skipped_batches == 1


def test_a_window_of_skipped_batches_makes_no_step_and_the_next_one_does() -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs([2] * 4)
    steps: list[Step] = []
    trainer = quiet(model, batches, unless(lambda call: call < 2, torch.zeros_like), accumulate=2)
    with pytest.warns(SkippedBatch):
        trainer.epoch(steps.append)
    large_batches(reference, [batches[2:]])
    assert [step.taken for step in steps] == [False, True]
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_a_batch_of_weight_zero_is_skipped_even_if_its_loss_is_nan() -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs([2, 0, 2])
    trainer = quiet(model, batches, accumulate=3, weight=samples)
    with pytest.warns(SkippedBatch, match="batch 1 has weight 0"):
        trainer.epoch()
    large_batches(reference, [[batches[0], batches[2]]])
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


@pytest.mark.parametrize("times", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_drops_its_window_and_names_the_batch(times: float) -> None:
    model = model_of()
    reference = copy.deepcopy(model)
    batches = pairs([2] * 6)
    trainer = quiet(
        model, batches, unless(lambda call: call == 3, lambda loss: loss * times), accumulate=2
    )
    with pytest.warns(SkippedBatch, match="the loss of batch 3 is not finite"):
        trainer.epoch()
    large_batches(reference, [batches[:2], batches[4:]])
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12
    assert (trainer.progress.steps, trainer.progress.skipped_steps) == (2, 1)


def test_a_gradient_that_is_not_finite_under_a_finite_loss_is_told_apart() -> None:
    model = model_of()
    before = copy.deepcopy(model)
    trainer = quiet(
        model, pairs([2]), unless(lambda call: True, lambda loss: (loss - loss.detach()).sqrt())
    )
    with pytest.warns(SkippedBatch, match="a gradient is not finite, although every loss is"):
        trainer.epoch()
    assert same_bits(model, before)


def test_a_loss_that_reaches_nothing_in_the_optimizer_is_reported() -> None:
    model, other = model_of(), model_of()
    trainer = quiet(model, pairs([2]), optimizer=sgd(other))
    with pytest.warns(
        SkippedBatch, match="no gradient reaches a parameter that the optimizer holds"
    ):
        trainer.epoch()


def test_training_stops_when_no_window_makes_a_step() -> None:
    trainer = quiet(
        model_of(), pairs([2] * 9), unless(lambda call: True, torch.zeros_like), tolerate=3
    )
    with (
        pytest.warns(SkippedBatch),
        pytest.raises(TrainingStalledError, match="number 4 in a row without a step"),
    ):
        trainer.epoch()


def test_windows_without_step_that_are_not_in_a_row_do_not_stop_training() -> None:
    trainer = quiet(
        model_of(), pairs([2] * 9), unless(lambda call: call % 2 == 0, torch.zeros_like), tolerate=1
    )
    with pytest.warns(SkippedBatch):
        trainer.epoch()
    assert trainer.progress.skipped_steps == 5


def test_the_scheduler_steps_only_with_the_optimizer() -> None:
    model = model_of()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    loss = unless(lambda call: call in (0, 3), lambda value: value * math.nan)
    trainer = quiet(model, pairs([2] * 5), loss, optimizer=optimizer, scheduler=scheduler)
    with pytest.warns(SkippedBatch):
        trainer.epoch()
    assert scheduler.get_last_lr() == [0.1 * 0.5**3]


def test_an_iterator_as_loader_is_refused_in_the_second_epoch() -> None:
    trainer = quiet(model_of(), iter(pairs([2])))
    trainer.epoch()
    with pytest.raises(ValueError, match="an iterator that an earlier epoch has consumed"):
        trainer.epoch()


def test_accumulate_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="accumulate is 0"):
        quiet(model_of(), pairs([2]), accumulate=0)


# Precision.


def test_float16_unscales_before_it_clips() -> None:
    model = model_of(torch.float32)
    before = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    quiet(
        model,
        pairs([8, 8], torch.float32),
        optimizer=optimizer,
        accumulate=2,
        clip_norm=0.01,
        precision="float16",
    ).epoch()
    moved = torch.cat(
        [
            (a - b).detach().flatten()
            for a, b in zip(model.parameters(), before.parameters(), strict=True)
        ]
    )
    assert float(moved.norm()) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_autocast_training_is_close_to_full_precision(precision: Any) -> None:
    model = model_of(torch.float32)
    reference = copy.deepcopy(model)
    batches = pairs([8] * 5, torch.float32)
    quiet(model, batches, accumulate=2, precision=precision).epoch()
    quiet(reference, batches, accumulate=2).epoch()
    assert 0 < largest_difference(model.parameters(), reference.parameters()) < 1e-2


def test_only_float16_has_a_scaler() -> None:
    enabled = {
        wish: choose_precision(wish, torch.device("cpu")).scaler().is_enabled()
        for wish in ("float32", "bfloat16", "float16")
    }
    assert enabled == {"float32": False, "bfloat16": False, "float16": True}


def test_an_overflow_of_the_scaled_gradients_lowers_the_scale_without_a_warning() -> None:
    model = model_of(torch.float32)
    scheduler_steps: list[bool] = []
    trainer = quiet(
        model,
        pairs([8] * 4, torch.float32),
        lambda model, batch: 1e4 * squared(model, batch),
        precision="float16",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.epoch(lambda step: scheduler_steps.append(step.taken))
    assert scheduler_steps[0] is False
    assert trainer.scaler.get_scale() < 2.0**16
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_a_nan_loss_under_float16_is_named_all_the_same() -> None:
    trainer = quiet(
        model_of(torch.float32),
        pairs([8], torch.float32),
        unless(lambda call: True, lambda loss: loss * math.nan),
        precision="float16",
    )
    with pytest.warns(SkippedBatch, match="the loss of batch 0 is not finite"):
        trainer.epoch()


def test_a_format_that_the_device_lacks_falls_back_with_the_reason() -> None:
    with pytest.warns(
        UserWarning, match="training without autocast: bfloat16 autocast does not work on meta"
    ):
        precision = choose_precision("bfloat16", torch.device("meta"))
    assert precision.dtype == torch.float32
    assert not precision.scaler().is_enabled()


def test_a_format_that_autocast_switches_off_with_a_mere_warning_falls_back_too() -> None:
    unsupported: Any = "float64"
    with pytest.warns(
        UserWarning, match="training without autocast: float64 autocast does not work on cpu"
    ):
        assert choose_precision(unsupported, torch.device("cpu")).dtype == torch.float32


def test_auto_gives_a_format_that_trains_and_takes_no_random_number() -> None:
    before = torch.get_rng_state()
    precision = choose_precision("auto", torch.device("cpu"))
    assert torch.equal(before, torch.get_rng_state())
    assert precision.dtype in (torch.float32, torch.bfloat16)


# The order of the samples.


class Noisy(torch.utils.data.Dataset[Pair]):
    """Samples that differ at each reading, as augmentation makes them."""

    def __len__(self) -> int:
        return 14

    def __getitem__(self, index: int) -> Pair:
        return torch.randn(3) + index, torch.randn(1)


def test_a_distributed_sampler_gives_another_order_in_each_epoch() -> None:
    sampler: torch.utils.data.DistributedSampler[Pair] = torch.utils.data.DistributedSampler(
        Noisy(), num_replicas=2, rank=0
    )
    loader: Loader = torch.utils.data.DataLoader(Noisy(), 7, sampler=sampler)
    trainer = quiet(model_of(torch.float32), loader)
    orders = []
    for _ in range(2):
        trainer.epoch()
        orders.append(list(sampler))
    assert orders[0] != orders[1]


# What is shown.


def test_the_effective_batch_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    loader: Loader = torch.utils.data.DataLoader(Noisy(), batch_size=2)
    Trainer(model_of(), sgd(model_of()), loader, squared, accumulate=3)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert (
        "effective batch: 6 samples = 2 samples x 3 micro-batches x 1 processes; no autocast"
        in shown.err
    )


def test_the_bar_counts_steps_where_tqdm_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {"updates": 0}

    class Bar:
        def __init__(self, **options: Any) -> None:
            seen.update(options)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            seen["closed"] = True

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            seen["text"] = text

        def update(self) -> None:
            seen["updates"] += 1

    tqdm = types.ModuleType("tqdm")
    tqdm.__dict__.update(tqdm=Bar, __spec__=types.SimpleNamespace(name="tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    model = model_of()
    Trainer(model, sgd(model), pairs([2] * 5), squared, accumulate=2).epoch()
    assert (seen["total"], seen["initial"], seen["updates"], seen["closed"]) == (3, 0, 3, True)
    assert seen["text"].startswith("loss ")


# Resuming.


def dropout_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 1))


def resumable(workers: int, generator: torch.Generator | None, precision: Any) -> Trainer[Pair]:
    model = dropout_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(
        Noisy(), 2, shuffle=True, num_workers=workers, generator=generator
    )
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    options: dict[str, Any] = {"scheduler": scheduler, "precision": precision, "accumulate": 2}
    return quiet(model, loader, optimizer=optimizer, **options)


def saved(trainer: Trainer[Any]) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(trainer.state_dict(), file)
    file.seek(0)
    return file


def everything(trainer: Trainer[Any]) -> Iterator[Tensor]:
    yield from trainer.model.state_dict().values()
    for state in trainer.optimizer.state_dict()["state"].values():
        yield from state.values()


@pytest.mark.parametrize("with_generator", [False, True])
@pytest.mark.parametrize(("workers", "precision"), [(0, "float32"), (0, "float16"), (1, "float32")])
@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5])
def test_a_run_resumed_after_any_window_ends_with_the_same_bits(
    stop_at: int, workers: int, precision: Any, with_generator: bool
) -> None:
    def generator() -> torch.Generator | None:
        return torch.Generator().manual_seed(7) if with_generator else None

    files: list[io.BytesIO] = []
    windows = iter(range(1, 100))
    straight = resumable(workers, generator(), precision)
    for _ in range(2):
        straight.epoch(
            lambda step: files.append(saved(straight)) if next(windows) == stop_at else None
        )

    torch.manual_seed(12345)
    again = resumable(workers, generator(), precision)
    torch.manual_seed(54321)
    again.load_state_dict(torch.load(files[0]))
    while again.progress.epoch < 2:
        again.epoch()
    assert all(
        torch.equal(a, b) for a, b in zip(everything(straight), everything(again), strict=True)
    )
    assert again.progress == straight.progress


def test_a_run_resumed_between_epochs_ends_with_the_same_bits() -> None:
    generator = torch.Generator().manual_seed(7)
    straight = resumable(0, generator, "float32")
    straight.epoch()
    file = saved(straight)
    straight.epoch()
    again = resumable(0, torch.Generator(), "float32")
    again.load_state_dict(torch.load(file))
    again.epoch()
    assert all(
        torch.equal(a, b) for a, b in zip(everything(straight), everything(again), strict=True)
    )
