"""Running a gradlint command, and what it leaves behind."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

MEMORY = 4 << 30  # bytes; the largest program of the tests takes a fortieth


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def bounded(
    folder: pathlib.Path, *arguments: str, seconds: int
) -> subprocess.CompletedProcess[str]:
    """A gradlint command in a process of its own, which may take so much memory, and so many
    seconds of CPU.
    """
    import resource  # not everywhere

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return subprocess.run(
        [sys.executable, "-m", "gradlint", *arguments], cwd=folder, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, preexec_fn=limit, check=False,
    )  # fmt: skip
