"""Why a result carries no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace.operations import Spec
from gradlint.trace.records import Op

if TYPE_CHECKING:
    from gradlint.trace.session import Session


def leaf(session: Session, made: Op) -> None:
    """A new leaf; a view made with grad mode off says that it requires grad, too, but nothing
    leads on from it.
    """
    if torch.is_grad_enabled() or not any(source.requires_grad for source in made.inputs):
        made.kind = Kind.LEAF
        session.attention.came_late(made.place)
    else:
        made.requires_grad, made.flags = False, frozenset({"dead-view"})
        _cut_by_mode(session, made)


def explain(session: Session, made: Op, judged: Spec, out: torch.Tensor) -> None:
    """Say why a result carries no gradient."""
    if not any(source.requires_grad for source in made.inputs):
        if judged.constant and not made.inputs and (out.numel() == 1 or not judged.copies):
            made.kind, made.cut = Kind.CONSTANT, Cut.CONSTANT
            is_shown = out.numel() == 1 and out.device.type == "cpu" and judged.copies
            made.number = out.item() if is_shown else judged.fill
        elif not made.inputs:
            made.kind = Kind.DATA
        return
    if judged.name == "detach":
        made.cut = Cut.DETACH
    elif torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
        _cut_by_mode(session, made)
    elif judged.copies:
        made.cut = Cut.COPY
    else:
        made.cut = Cut.NON_DIFFERENTIABLE


def _cut_by_mode(session: Session, made: Op) -> None:
    """Grad mode is off: by the program, or by what a distribution's `sample()` does for
    itself.
    """
    mode = session.gradmode
    made.cut = Cut.NON_DIFFERENTIABLE if mode.samples else Cut.GRAD_MODE
    if not mode.samples:
        made.cut_place = mode.inference if torch.is_inference_mode_enabled() else mode.off
