"""The first gradient of a parameter that is not finite, and the operation that made it so out of
finite ones.

Only operations whose derivative can be infinite where their value is not are looked at, and only
while every operation is recorded. Under a gradient scaler an infinity is what the scaler looks for,
and no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradlint.trace.capture import is_captured
from gradlint.trace.explain import lineage, maker_of, nodes, saved
from gradlint.trace.frames import nearest
from gradlint.trace.records import ROW_OF_NOTHING, Op
from gradlint.trace.session import Session
from gradlint.trace.source import seen_at
from gradlint.trace.steppers import Stepper

_SUSPECTS = frozenset([
    "Acos", "Acosh", "Asin", "Atan2", "Atanh", "Cdist", "Dist", "Div", "Hypot", "LinalgVectorNorm",
    "Log", "Log10",
    "Log1P", "Log2", "Logit", "Norm", "Pdist", "Pow", "Reciprocal", "Rsqrt", "Sqrt", "Xlogy",
])  # fmt: skip

_UNRECORDED = "what made it so was not recorded: --level record shows it"
_NOT_FOUND = "none of the operations that are looked at made it so"


def install(session: Session) -> None:
    """Put the probe in its place."""
    watch = _Watch(session)
    session.on_loss.append(watch.look)
    session.on_step.append(watch.judge)
    session.on_end.append(watch.end)


class _Watch:
    """Looks on until one parameter's gradient is not finite."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.is_over = False
        self.suspect: Op | None = None

    def look(self, loss: torch.Tensor, op: Op) -> None:
        """Before a backward: hook the operations that may make its gradients infinite."""
        if self.is_over or not loss.requires_grad or isinstance(op.number, Stepper):
            return
        if is_captured(loss):
            return
        if not self.session.recording:
            self._look_lightly(loss)
            return
        suspects = [
            node for node in nodes([loss]) if node.name().partition("Backward")[0] in _SUSPECTS
        ]
        softmax = next((each for each in lineage([op]) if ROW_OF_NOTHING in each.flags), None)
        if not suspects and softmax is None:
            return
        with self.session.paused():
            if not _is_finite([loss]) and not _is_finite(
                [parameter for parameter, _ in self.session.memory.parameters()]
            ):
                self.is_over = True
                self._say("parameters are not finite")
                return
            self.suspect = self.suspect or softmax
            for node in suspects:
                node.register_hook(self._hook(node, op))

    def _look_lightly(self, loss: torch.Tensor) -> None:
        """In a step that is only watched, whether the loss is a number still; to ask waits for a
        device that is not the CPU.
        """
        with self.session.paused():
            self.is_over = loss.device.type == "cpu" and not _is_finite([loss])
        if self.is_over:
            self._say(f"{seen_at(nearest())}: this loss is not finite")

    def end(self) -> None:
        """At the end: whether what was trained consists of numbers."""
        if not self.is_over and self.session.movement.is_broken:
            self._say("parameters are not finite")

    def _say(self, what: str) -> None:
        why = _NOT_FOUND if self.session.recording else _UNRECORDED
        self.session.blind[f"{what} after {self.session.step} optimizer steps, and {why}"] = None

    def judge(self) -> None:
        """After a step: what was suspected is to blame where a parameter's gradient came out not
        finite.
        """
        suspect, self.suspect = self.suspect, None
        parameters = (
            []
            if suspect is None
            else [parameter for parameter, _ in self.session.memory.parameters()]
        )
        if suspect is None or any(map(is_captured, parameters)):
            return
        with self.session.paused():
            self.is_over = not _is_finite([parameter.grad for parameter in parameters])
        if self.is_over:
            what = ROW_OF_NOTHING if ROW_OF_NOTHING in suspect.flags else "not-finite"
            self.session.note("fact", suspect.place, what=what, op=suspect, detail="")

    def _hook(self, node: Any, loss: Op) -> Callable[..., None]:
        def hook(gradients: Sequence[Any], given: Sequence[Any]) -> None:
            if self.suspect is None:
                self.session.guarded(self._suspect, node, loss, gradients, given)

        return hook

    def _suspect(self, node: Any, loss: Op, gradients: Sequence[Any], given: Sequence[Any]) -> None:
        if _is_finite(gradients) or not _is_finite(given):
            return
        if _is_finite([tensor for attribute, tensor in saved(node) if "result" not in attribute]):
            self.suspect = maker_of(lineage([loss]), node)


def _is_finite(things: Sequence[Any]) -> bool:
    tensors = (
        thing.detach()
        for thing in things
        if isinstance(thing, torch.Tensor) and not thing.is_sparse
    )
    return all(bool(tensor.isfinite().all()) for tensor in tensors)
