"""The dataset that replaces samples without annotations."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from gradlint.training import InvalidSample, RetryingDataset


class Annotated(Dataset[int]):
    """Gives its indices, but for the invalid ones; a real one reads a file and finds no box in
    it.
    """

    def __init__(self, length: int, invalid: frozenset[int]) -> None:
        self.length = length
        self.invalid = invalid

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        if index in self.invalid:
            raise InvalidSample(f"sample {index} has no annotation")
        return index


def batches(dataset: Dataset[int], workers: int = 0, start: str | None = None) -> list[list[int]]:
    loader: DataLoader[int] = DataLoader(
        dataset, 4, num_workers=workers, multiprocessing_context=start
    )
    return [batch.tolist() for batch in loader]


def test_valid_samples_are_given_as_they_are() -> None:
    dataset = RetryingDataset(Annotated(10, frozenset()))
    assert [dataset[index] for index in range(len(dataset))] == list(range(10))
    assert dataset.skipped == 0


def test_an_invalid_sample_is_replaced_by_a_valid_one_and_counted() -> None:
    dataset = RetryingDataset(Annotated(10, frozenset({3})))
    given = [dataset[index] for index in range(10)]
    assert [sample for index, sample in enumerate(given) if index != 3] == [
        0,
        1,
        2,
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    assert given[3] in set(range(10)) - {3}
    assert dataset.skipped == 1


def test_replacements_are_spread_over_the_dataset() -> None:
    dataset = RetryingDataset(Annotated(1000, frozenset(range(100))))
    assert len({dataset[index] for index in range(100)}) > 80


def test_tries_are_bounded() -> None:
    dataset = RetryingDataset(Annotated(1000, frozenset(range(1000))), retries=5)
    with pytest.raises(
        InvalidSample, match="sample 7 is invalid, and so are 5 tried in its place: sample"
    ):
        dataset[7]
    assert dataset.skipped == 6


def test_a_dataset_smaller_than_the_tries_is_tried_once_over() -> None:
    dataset = RetryingDataset(Annotated(3, frozenset({0, 1, 2})))
    with pytest.raises(InvalidSample, match="so are 2 tried"):
        dataset[0]


def test_no_retries_means_the_first_invalid_sample_raises() -> None:
    with pytest.raises(InvalidSample, match="so are 0 tried"):
        RetryingDataset(Annotated(3, frozenset({0})), retries=0)[0]


@pytest.mark.parametrize("kind", [torch.tensor, numpy.int64])
def test_an_index_is_a_number_of_any_kind(kind: Callable[[int], Any]) -> None:
    dataset = RetryingDataset(Annotated(8, frozenset({1, 5})))
    assert [dataset[kind(index)] for index in range(8)] == [dataset[index] for index in range(8)]


def test_negative_retries_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        RetryingDataset(Annotated(3, frozenset()), retries=-1)


def test_other_errors_are_not_swallowed() -> None:
    class Broken(Annotated):
        def __getitem__(self, index: int) -> int:
            raise OSError("unreadable")

    with pytest.raises(OSError, match="unreadable"):
        RetryingDataset(Broken(3, frozenset()))[0]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores
@pytest.mark.parametrize(("workers", "start"), [(1, "fork"), (3, "fork"), (1, "spawn")])
def test_workers_give_the_same_samples_and_their_skips_are_counted_here(
    workers: int, start: str
) -> None:
    invalid = frozenset(range(0, 40, 3))
    alone, shared = (RetryingDataset(Annotated(40, invalid)) for _ in range(2))
    assert batches(shared, workers, start) == batches(alone)
    assert shared.skipped == alone.skipped >= len(invalid)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_no_count_is_lost_when_workers_skip_at_the_same_time() -> None:
    invalid = frozenset(range(0, 10_000, 2))
    alone, shared = (RetryingDataset(Annotated(10_000, invalid), retries=50) for _ in range(2))
    for index in range(10_000):
        assert alone[index] % 2
    for _ in DataLoader(shared, 100, num_workers=4):
        pass
    assert shared.skipped == alone.skipped


def test_replacing_takes_no_random_number_from_torch() -> None:
    before = torch.get_rng_state()
    assert RetryingDataset(Annotated(10, frozenset({3})))[3] != 3
    assert torch.equal(before, torch.get_rng_state())


def test_a_pickled_copy_goes_on_working() -> None:
    dataset = pickle.loads(pickle.dumps(RetryingDataset(Annotated(10, frozenset({3})))))
    assert dataset[3] != 3
    assert dataset.skipped == 1
