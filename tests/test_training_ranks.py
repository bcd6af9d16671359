"""The reference loop under DistributedDataParallel: two processes against one large batch in one
process.

Both processes run every scenario once, in a fixture, and write the parameters they ended with; the
tests compare.
"""

import copy
import datetime
import math
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from small_training import Pair, large_batches, largest_difference, model_of, samples, sgd, squared
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from gradlint.training import SkippedBatch, Step, Trainer

RANKS = 2
SIZES = ([3, 1, 4, 2, 5, 2, 6], [2, 2, 1, 5, 3, 4, 1])
EVEN = ([3, 1, 4, 2], [2, 2, 1, 5])


def batches_of(sizes: list[int], rank: int) -> list[Pair]:
    generator = torch.Generator().manual_seed(10 + rank)
    rows = [torch.randn(size, 4, dtype=torch.float64, generator=generator) for size in sizes]
    return [(row[:, :3], row[:, 3:]) for row in rows]


def at(*numbers: int, instead: Callable[[Tensor], Tensor]) -> Callable[[nn.Module, Pair], Tensor]:
    """The squared loss, but `instead` of it in the calls with these numbers."""
    calls = iter(range(1000))

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        value = squared(model, batch)
        return instead(value) if next(calls) in numbers else value

    return loss


class Two(nn.Module):
    """A model with a layer that no batch uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = model_of(), model_of()

    def forward(self, inputs: Tensor) -> Tensor:
        made: Tensor = self.used(inputs)
        return made


def without_model(model: nn.Module, batch: Pair) -> Tensor:
    return torch.tensor(0.0)


def train(
    sizes: tuple[list[int], list[int]], accumulate: int, loss: Any = squared, **options: Any
) -> dict[str, Any]:
    """What a rank ends with: its parameters, steps, synchronisations and warnings."""
    rank = dist.get_rank()
    model = DistributedDataParallel(Two() if options.pop("two", False) else model_of(), **options)
    synchronised = [0]
    model.register_comm_hook(synchronised, averaged)
    steps: list[Step] = []
    batches = batches_of(sizes[rank], rank)
    trainer = Trainer(
        model, sgd(model), batches, loss, accumulate=accumulate, weight=samples, show_progress=False
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SkippedBatch)
        trainer.epoch(steps.append)
    return {
        "parameters": [parameter.detach() for parameter in model.parameters()],
        "taken": [step.taken for step in steps],
        "losses": [step.loss for step in steps],
        "synchronised": synchronised[0],
        "warnings": [
            str(warning.message) for warning in caught if warning.category is SkippedBatch
        ],
    }


def averaged(count: list[int], bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """What DDP does by itself, counted."""
    count[0] += 1
    work = dist.all_reduce(bucket.buffer().div_(RANKS), async_op=True)
    assert work is not None
    future: torch.futures.Future[Any] = work.get_future()
    return future.then(lambda done: done.value()[0])


def refused(run: Callable[[], object]) -> str:
    try:
        run()
    except RuntimeError as error:
        return str(error)
    return ""


def keep(trainer: Trainer[Pair], states: list[dict[str, Any]]) -> Callable[[Step], None]:
    return lambda _step: states.append(copy.deepcopy(trainer.state_dict()))


def resumed(folder: pathlib.Path) -> dict[str, list[Tensor]]:
    """The parameters of a run of two epochs, and of one that was cut after its second window."""
    rank = dist.get_rank()
    ends = {}
    states: list[dict[str, Any]] = []
    for name in ("straight", "resumed"):
        model = DistributedDataParallel(model_of())
        trainer = Trainer(
            model, sgd(model), batches_of(SIZES[rank], rank), squared, accumulate=3,
            show_progress=False
        )  # fmt: skip
        if states:
            trainer.load_state_dict(states[1])
        while trainer.progress.epoch < 2:
            trainer.epoch(keep(trainer, states))
        ends[name] = [parameter.detach() for parameter in model.parameters()]
    return ends


def zero(loss: Tensor) -> Tensor:
    return torch.zeros_like(loss)


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    patience = datetime.timedelta(seconds=60)  # a rank that waits in vain fails instead of hanging
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=RANKS,
        timeout=patience,
    )
    second = rank == 1
    results = {
        "plain": train(SIZES, 3),
        "last skipped": train(SIZES, 3, at(2, instead=zero) if second else squared),
        "tail skipped": train(SIZES, 3, at(6, instead=zero) if second else squared),
        "unused parameters": train(
            SIZES, 3, at(2, instead=zero) if second else squared, find_unused_parameters=True
        ),
        "some unused": train(
            SIZES,
            3,
            at(2, instead=zero) if second else squared,
            find_unused_parameters=True,
            two=True,
        ),
        "all skipped": train(SIZES, 3, at(0, 1, 2, instead=zero) if second else squared),
        "nan": train(SIZES, 3, squared if second else at(1, instead=lambda loss: loss * math.nan)),
        "unequal tails": train((SIZES[0], SIZES[1][:5]), 4),
        "rank 1 ends first": train((SIZES[0], SIZES[1][:4]), 2),
        "without model": refused(lambda: train(EVEN, 2, without_model)),
        "resumed": resumed(pathlib.Path(folder)),
    }
    torch.save(results, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank wrote, by scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    spawn(work, (str(folder),), nprocs=RANKS)  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


def windows_of(
    sizes: tuple[list[int], list[int]], accumulate: int, left_out: dict[int, set[int]]
) -> list[list[Pair]]:
    """By step, the micro-batches of both ranks, but for those left out."""
    windows: dict[int, list[Pair]] = {}
    for rank in range(RANKS):
        for number, batch in enumerate(batches_of(sizes[rank], rank)):
            if number not in left_out.get(rank, ()):
                windows.setdefault(number // accumulate, []).append(batch)
    return [windows[step] for step in sorted(windows)]


def trained_on(windows: list[list[Pair]]) -> list[Tensor]:
    """The parameters after one large batch a window."""
    model = model_of()
    large_batches(model, windows)
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize(
    ("scenario", "left_out"),
    [
        ("plain", {}),
        ("some unused", {1: {2}}),
        ("last skipped", {1: {2}}),
        ("tail skipped", {1: {6}}),
        ("unused parameters", {1: {2}}),
        ("all skipped", {1: {0, 1, 2}}),
        ("nan", {0: {0, 1, 2}, 1: {0, 1, 2}}),
    ],
)
@pytest.mark.parametrize("rank", range(RANKS))
def test_two_processes_equal_one_large_batch_of_what_was_not_skipped(
    results: list[dict[str, Any]], scenario: str, left_out: dict[int, set[int]], rank: int
) -> None:
    expected = trained_on(windows_of(SIZES, 3, left_out))
    assert (
        largest_difference(results[rank][scenario]["parameters"][: len(expected)], expected) < 1e-12
    )


def test_gradients_are_synchronised_once_a_window(results: list[dict[str, Any]]) -> None:
    assert [result["plain"]["synchronised"] for result in results] == [3, 3]


def test_only_the_rank_that_skipped_warns_and_both_report_the_same_loss(
    results: list[dict[str, Any]],
) -> None:
    first, second = (result["last skipped"] for result in results)
    assert first["warnings"] == []
    assert second["warnings"] == ["epoch 0, batch 2 gave a loss without gradient: skipped"]
    assert first["losses"] == second["losses"]


def test_a_nan_on_one_rank_skips_the_step_on_both(results: list[dict[str, Any]]) -> None:
    assert [result["nan"]["taken"] for result in results] == [[False, True, True]] * RANKS
    assert "the loss of batch 1 is not finite" in results[0]["nan"]["warnings"][0]


def test_tails_of_unequal_length_are_weighted_by_what_they_hold(
    results: list[dict[str, Any]],
) -> None:
    expected = trained_on(windows_of((SIZES[0], SIZES[1][:5]), 4, {}))
    for result in results:
        assert largest_difference(result["unequal tails"]["parameters"], expected) < 1e-12


def test_a_rank_that_runs_out_ends_the_epoch_for_all(results: list[dict[str, Any]]) -> None:
    expected = trained_on(windows_of((SIZES[0][:4], SIZES[1][:4]), 2, {}))
    for result in results:
        assert largest_difference(result["rank 1 ends first"]["parameters"], expected) < 1e-12
    assert results[0]["rank 1 ends first"]["warnings"] == [
        "2 batches are left out: another process has none left"
    ]


def test_a_loss_that_never_called_the_model_raises_instead_of_waiting_for_ever(
    results: list[dict[str, Any]],
) -> None:
    assert all(
        "did not call the model with grad mode on" in result["without model"] for result in results
    )


def test_each_rank_resumes_with_the_same_bits(results: list[dict[str, Any]]) -> None:
    for result in results:
        pairs = zip(result["resumed"]["straight"], result["resumed"]["resumed"], strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
