"""A dataset that replaces samples without annotations, so that no one has to invent a label for
them.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Sized
from typing import TypeVar, cast

import torch
from torch.utils.data import Dataset, get_worker_info

Sample = TypeVar("Sample", covariant=True)

_SLOTS = 1024


class InvalidSample(Exception):  # noqa: N818 (where it is caught, a state of the data)
    """Raised by a dataset for a sample that cannot be trained on, such as one without
    annotations.
    """


class RetryingDataset(Dataset[Sample]):
    """`dataset`, where another sample stands in for one that raises `InvalidSample`; at most
    `retries` are tried.

    The replacements are drawn by the index alone: the same ones whatever the number of workers, and
    torch's random numbers are left as they are.
    """

    def __init__(self, dataset: Dataset[Sample], retries: int = 10) -> None:
        if retries < 0:
            raise ValueError(f"retries is {retries}, and cannot be negative")
        self.dataset = dataset
        self.retries = retries
        # DataLoader workers are processes: this memory is shared with them, forked or spawned. Each
        # adds to a slot of its own, so that no two write the same place and no lock is needed.
        skipped = torch.zeros(_SLOTS, dtype=torch.int64)
        self._skipped = skipped.share_memory_()  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        return len(cast("Sized", self.dataset))

    def __getitem__(self, index: int) -> Sample:
        candidates = self._candidates(operator.index(index))
        last = None
        for candidate in candidates:
            try:
                return self.dataset[candidate]
            except InvalidSample as problem:
                self._count()
                last = problem
        raise InvalidSample(
            f"sample {index} is invalid, and so are {len(candidates) - 1} tried in its "
            f"place: {last}"
        ) from last

    @property
    def skipped(self) -> int:
        """How many samples were skipped so far, by this process and all workers, those loaded ahead
        included.
        """
        return int(self._skipped.sum())

    def _candidates(self, index: int) -> list[int]:
        others = random.Random(index).sample(range(len(self)), min(self.retries + 1, len(self)))
        return [index, *(other for other in others if other != index)][: self.retries + 1]

    def _count(self) -> None:
        worker = get_worker_info()
        slot = 0 if worker is None else 1 + worker.id % (_SLOTS - 1)
        self._skipped[slot] += 1
