"""Recurrent layers whose backward failed because they are in eval mode: cuDNN, unlike the CPU,
computes none there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from gradlint.trace.explain import lineage
from gradlint.trace.records import Note
from gradlint.trace.session import Session
from gradlint.trace.source import seen_at

_REFUSED = "cudnn RNN backward can only be called in training mode"


def backward_failed(session: Session, note: Note, error: RuntimeError) -> None:
    """Find out which layers a failing backward is about."""
    if _REFUSED in str(error):
        used = {op.held for op in lineage(note.facts["ops"]) if op.held is not None}
        session.refused_in_eval += [
            session.names.part(layer)
            for layer in _in_eval(reference() for reference in session.names.modules)
            if any(session.memory.held(parameter) in used for parameter in layer.parameters())
        ]


def _in_eval(modules: Iterable[torch.nn.Module | None]) -> Iterator[torch.nn.Module]:
    return (
        module for module in modules if isinstance(module, torch.nn.RNNBase) and not module.training
    )


def explained(session: Session) -> Iterator[str]:
    """Which line put each of the layers into eval mode, and what to do."""
    for path in dict.fromkeys(session.refused_in_eval):
        modes = (
            note
            for note in reversed(session.notes)
            if note.kind == "train" and not note.facts["training"]
        )
        last = next(
            (note for note in modes if path[: len(note.facts["module"])] == note.facts["module"]),
            None,
        )
        by = f", since {seen_at(last.place)}" if last is not None else ""
        yield (
            "cuDNN computes no backward of a recurrent layer in eval mode, and "
            f"{'.'.join(path)} is in it{by}: "
            "call its train(), and set its dropout to 0 if that is why it was in eval mode"
        )
