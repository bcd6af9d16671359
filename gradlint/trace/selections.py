"""What a mask selected in a run: of a mask that stays the same, that is known for good."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gradlint import tape
from gradlint.operations import Trait, canonical, has
from gradlint.trace.places import NOWHERE

FILLED = "filled"  # on a record: what was selected was not empty, or the quotient is finite


def is_filled(name: str, out: torch.Tensor) -> bool:
    """Whether a selection has elements, or a quotient is a number; that is asked on the CPU alone,
    where nothing has to be waited for.
    """
    if has(name, Trait.SELECTS):
        return out.numel() > 0
    is_scalar = out.dim() == 0 and out.device.type == "cpu" and out.layout is torch.strided
    return name == "div" and is_scalar and not out.is_meta and bool(out.detach().isfinite())


def never_empty(value: tape.Value) -> Iterator[tape.Fact]:
    """The fact that a selection is never empty, if it was not and its mask was made before the
    rounds in which it is used.
    """
    if len(value.inputs) > 1 and value.iteration and _stays(value.inputs[1], value.iteration):
        yield tape.Fact(
            at=NOWHERE, what="empty-selection", value=value, detail="never", text=value.text
        )


def _stays(mask: tape.Value, rounds: tuple[tuple[int, int], ...]) -> bool:
    """Whether a mask was made before these rounds; what they count of it is the same each time."""
    value = mask
    while value.iteration == rounds and _counts(value) and len(value.inputs) == 1:
        (value,) = value.inputs
    before = value.iteration
    return len(before) < len(rounds) and before == rounds[: len(before)]


def _counts(value: tape.Value) -> bool:
    return has(value.op, Trait.CASTS, Trait.SUMS) or canonical(value.op) == "count_nonzero"
