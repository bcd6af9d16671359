"""Batches of files, spread over processes. One that dies costs what it was at, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from gradlint.dataclass import dataclass

SIZE = 400_000  # bytes of a batch, from which on the next folder begins another
Batch = tuple[Path, ...]
Given = TypeVar("Given")
Result = TypeVar("Result")


def batches(sizes: Mapping[Path, int]) -> list[Batch]:
    """The files in parts of about one size, in order of their paths; whatever the number of
    processes, the same.
    """
    found: list[list[Path]] = []
    size = 0
    for path in sorted(sizes, key=lambda path: path.parts):
        if not found or size > 2 * SIZE or (size > SIZE and path.parent != found[-1][-1].parent):
            found.append([])
            size = 0
        found[-1].append(path)
        size += sizes[path]
    return [tuple(batch) for batch in found]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of so many parts of the work, counted from 1."""

    number: int
    of: int

    def share(self, parts: Sequence[Batch], costs: Mapping[Path, int]) -> list[Batch]:
        """Those of the batches that are this part: each goes, in their order, to whoever has the
        least to do so far, so that what costs more than its size says, which lies side by side, is
        spread.

        Every machine that is given the same files comes to the same parts, each batch in one of
        them.
        """
        found: list[Batch] = []
        given = [0] * self.of
        for part in parts:
            least = given.index(min(given))
            given[least] += sum(costs[path] for path in part)
            if least == self.number - 1:
                found.append(part)
        return found


@dataclass(frozen=True, slots=True)
class Work(Generic[Given, Result]):
    """What is done with each batch, and what the process that does it is given besides."""

    run: Callable[[Batch, Given], Result]
    given: Callable[[Batch], Given]


def spread(
    work: Work[Given, Result], parts: Sequence[Batch], jobs: int
) -> Iterator[tuple[Batch, Result | None]]:
    """Each batch and what `work` makes of it, as they come; None for a single file that ends the
    process.
    """
    if jobs == 1 or len(parts) <= 1:
        yield from ((part, work.run(part, work.given(part))) for part in parts)
        return
    lost: list[Batch] = []
    for part, result in _run(work, parts, jobs):
        if result is None:
            lost.append(part)  # a process that dies takes along what ran beside it
        else:
            yield part, result
    for part in sorted(lost):
        yield from _alone(work, part)


def _alone(work: Work[Given, Result], part: Batch) -> Iterator[tuple[Batch, Result | None]]:
    for same, result in _run(work, [part], 1):
        if result is not None or len(part) == 1:
            yield same, result
        else:
            for half in _halves(part):
                yield from _alone(work, half)


def _run(
    work: Work[Given, Result], parts: Sequence[Batch], jobs: int
) -> Iterator[tuple[Batch, Result | None]]:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(jobs, initializer=_end_with_parent) as pool:
        tasks = {}
        for part in parts:
            try:
                tasks[pool.submit(work.run, part, work.given(part))] = part
            except BrokenProcessPool:  # one has died before all were handed out
                yield part, None
        for task in as_completed(tasks):
            try:
                yield tasks[task], task.result()
            except BrokenProcessPool:
                yield tasks[task], None


def _end_with_parent() -> None:
    """Lets this process end when the one that began it does: killed, that can tell it nothing.

    It would wait for work for good. Workers that are forked hold the pipes of those before them,
    whose ends are so seen one after the other.
    """
    import multiprocessing.connection
    import threading

    parent = multiprocessing.parent_process()
    assert parent is not None, "workers have one"

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _halves(part: Batch) -> list[Batch]:
    middle = (len(part) + 1) // 2
    return [half for half in (part[:middle], part[middle:]) if half]
