"""A process that is forked for every run of a program: what makes its forks cheap."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pathlib
import random
import weakref
from collections.abc import Iterator

MADV_COLLAPSE = 25
HUGE = 1 << 21


def ready_to_fork() -> None:
    """Call this once all is imported: a fork then copies few page tables, and writes to few pages.

    - Memory in huge pages has a 512th of the page tables, which each fork copies and tears down.
    - The garbage collector leaves alone what there is: a collection in a fork would copy its pages.
    - A program that seeds nothing draws the same numbers, whichever process forks it.
    - What torch's 174 libraries of operations do as Python ends is of no use in a fork that ends.
    """
    _seed()
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):  # no Linux: forks take longer
        for start, end in _private_memory():
            ctypes.CDLL(None).madvise(
                ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE
            )


def _seed() -> None:
    import torch

    random.seed(0)
    torch.manual_seed(0)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(0)


def _private_memory() -> Iterator[tuple[int, int]]:
    """The whole huge pages within each range of memory of this process that is no file's."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, *rest = line.split()
        of_file = len(rest) > 3 and rest[3] != "[heap]"
        start, end = (int(address, 16) for address in addresses.split("-"))
        first, last = -(-start // HUGE) * HUGE, end // HUGE * HUGE
        if rights.startswith("rw") and not of_file and first < last:
            yield first, last
