"""Several processes under `torchrun`: each has its own report, and rank 0 puts them together.

The ranks meet in a folder named after the launch, not through `torch.distributed`, which the
program may have torn down (or never set up). A rank that ends without a report is waited for a
while, and then named.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import time
from collections.abc import Mapping
from typing import Any

PATIENCE = 30.0
_PAUSE = 0.05


def rank() -> int | None:
    """This process's rank; None where there is only one process."""
    return (
        int(os.environ["RANK"])
        if os.environ.get("WORLD_SIZE", "1") != "1" and "RANK" in os.environ
        else None
    )


def size() -> int:
    """How many ranks there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _folder() -> pathlib.Path:
    environment = os.environ
    words = [
        environment.get(name, "")
        for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    ]
    return pathlib.Path(tempfile.gettempdir()) / f"gradlint-{os.getuid()}-{'-'.join(words)}"


def hand_in(report: Mapping[str, Any]) -> None:
    """Leave the report of this rank for rank 0."""
    folder = _folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    unfinished = folder / f"{rank()}.part"
    unfinished.write_text(json.dumps(report), encoding="utf-8")
    unfinished.replace(folder / f"{rank()}.json")


def collect(
    own: Mapping[str, Any], patience: float = PATIENCE
) -> tuple[dict[int, Mapping[str, Any]], list[int]]:
    """The reports of all ranks by rank, and the ranks that handed in none."""
    folder, found = _folder(), {0: own}
    until = time.monotonic() + patience
    waiting = set(range(1, size()))
    while waiting and time.monotonic() < until:
        for each in sorted(waiting):
            file = folder / f"{each}.json"
            if file.is_file():
                found[each] = json.loads(file.read_text(encoding="utf-8"))
                file.unlink()
                waiting.discard(each)
        time.sleep(_PAUSE if waiting else 0)
    if folder.is_dir() and not waiting:
        folder.rmdir()
    return found, sorted(waiting)
