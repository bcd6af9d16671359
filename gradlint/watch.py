"""`check --watch`: a check, and another one as soon as a file has changed that it rests on."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

PAUSE = 0.3  # seconds between two looks at the files
State = tuple[int, int, int]  # when it was changed, its size and its kind
Seen = TypeVar("Seen")


def watch(
    check: Callable[[Seen | None], tuple[Seen, Iterable[Path]]], pause: Callable[[], None]
) -> None:
    """Calls `check` with what it saw before; it says what it has seen, and on which files that
    rests.

    Ends with an interruption (Ctrl-C).
    """
    seen: Seen | None = None
    try:
        while True:
            began = time.time_ns()
            seen, paths = check(seen)
            files = tuple(paths)
            states = _states(files)
            if any(
                changed > began and not stat.S_ISDIR(mode) for changed, _, mode in states.values()
            ):
                continue  # a file has changed while we looked
            while _states(files) == states:
                pause()
    except KeyboardInterrupt:
        return


def wait() -> None:
    """Lets a moment pass."""
    time.sleep(PAUSE)


def _states(files: Iterable[Path]) -> Mapping[Path, State]:
    """The state of each file or folder; what is not there has none."""
    found: dict[Path, State] = {}
    for file in files:
        try:
            now = os.stat(file)
        except OSError:
            continue
        found[file] = now.st_mtime_ns, now.st_size, now.st_mode
    return found
