"""Norms of gradients by module, step by step: one line of JSON a step, and TensorBoard where it is
installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from gradlint.errors import UserError
from gradlint.trace import ranks
from gradlint.trace.session import Session


class Log:
    """Writes what each optimizer step finds, as it comes: a run that is killed leaves what it got
    to.
    """

    def __init__(self, folder: pathlib.Path, session: Session) -> None:
        rank = ranks.rank()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / ("gradients.jsonl" if not rank else f"gradients-{rank}.jsonl")
            self._file = file.open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"--log {folder}: {error.strerror}") from None
        self._board = None if rank else _board(folder)
        self._losses = session.timeline.losses
        self._told = 0
        session.timeline.on_norms.append(self.write)
        session.on_end.append(self.close)

    def write(self, step: int, norms: Mapping[str, float | None]) -> None:
        """One step: the losses since the last one, the norm of all gradients, and of those of each
        module.
        """
        losses = [value for _, value in self._losses[self._told :]]
        self._told = len(self._losses)
        modules = by_module(norms)
        whole = math.hypot(*(norm for norm in modules.values() if norm is not None))
        line = {
            "step": step,
            "losses": [*map(_plain, losses)],
            "norm": _plain(whole),
            "modules": {name: _plain(norm) for name, norm in modules.items()},
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if self._board is not None:
            scalars = {"loss": sum(losses), "gradient/all": whole}
            scalars |= {
                f"gradient/{name}": norm for name, norm in modules.items() if norm is not None
            }
            for name, value in scalars.items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Nothing comes any more."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def _plain(value: float | None) -> float | str | None:
    """A number as JSON knows it; what is not finite by its name."""
    return value if value is None or math.isfinite(value) else str(value)


def by_module(norms: Mapping[str, float | None]) -> dict[str, float | None]:
    """The norm of the gradients of each module's own parameters; None where none of them has
    one.
    """
    found: dict[str, float | None] = {}
    for name, norm in norms.items():
        module = name.rpartition(".")[0] or name
        known = found.setdefault(module, None)
        if norm is not None:
            found[module] = math.hypot(known or 0.0, norm)
    return found


def _board(folder: pathlib.Path) -> Any:
    """A writer of TensorBoard's, or None."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    return importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder))
