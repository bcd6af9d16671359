"""How closely the program is watched: in full while something is new, lightly once it is known."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from gradlint.trace.frames import Place
from gradlint.trace.records import Note

if TYPE_CHECKING:
    from gradlint.trace.session import Session

_MOST_WITHOUT_STEP = 64  # backward passes: a program that never steps is not recorded for ever
_EVALUATIONS = 4
_EAGER = "compiled code runs eagerly, so that it can be seen, and with eager rounding and dropout"
_UNSEEN = (
    "what happens in compiled code is not seen; --level record runs it eagerly, with eager "
    "rounding and dropout"
)
_HAS_STANCES = hasattr(torch.compiler, "set_stance")
_LASTING = frozenset([
    "backward", "batch", "clip", "fact", "frozen", "kept", "module", "read", "scheduler", "step",
    "thawed", "train",
    "unscale", "update", "zero",
])  # fmt: skip


class Attention:
    """Decides whether the next steps are recorded in full."""

    def __init__(self, session: Session, first: int) -> None:
        self.session, self.first = session, first
        self.again = first
        self.evaluations = 0  # the calls of modules that are noted although the run is only watched
        # The parts that an `eval()` put into eval mode, and no `train()` back, with the module that
        # was asked.
        self.asleep = weakref.WeakKeyDictionary[torch.nn.Module, weakref.ref[torch.nn.Module]]()
        self.compiled = self.runs_eagerly = False
        self.before_compiling: list[Callable[[], None]] = []
        # put into it since the last backward
        self._in_eval: list[weakref.ref[torch.nn.Module]] = []
        self._sinks: set[object] = set()
        self._late: set[object] = set()
        self._without_step = 0

    def stepped(self) -> None:
        """An optimizer has stepped."""
        self.again = max(0, self.again - 1)
        self._without_step = 0
        self._look(self.again > 0)
        if not self.session.recording:
            self._thin_out()

    def look_again(self) -> None:
        """Something is new: record the next steps in full."""
        self.again = self.first
        self._look(True)

    def _look(self, closely: bool) -> None:
        if self.session.level == "auto":
            self.session.recording = closely

    def seen_sink(self, place: Place) -> None:
        """A backward at a line where there was none before is worth a closer look."""
        key = (place[0].code, place[0].instruction) if place else None
        self._without_step += 1
        if key not in self._sinks:
            self._sinks.add(key)
            self.look_again()
        elif self._without_step > _MOST_WITHOUT_STEP:
            self._look(False)

    def came_late(self, place: Place) -> None:
        """After the first step something happens at a line where it did not before: worth a closer
        look.
        """
        key = (place[0].code, place[0].instruction) if place else None
        if self.session.step and key not in self._late:
            self._late.add(key)
            self.look_again()

    def evaluated(self, module: torch.nn.Module) -> None:
        """A module was put into eval mode: the next calls of modules tell whether something is
        evaluated so.
        """
        self._in_eval.append(weakref.ref(module))
        self.evaluations = _EVALUATIONS

    def woken(self, module: torch.nn.Module) -> bool:
        """Whether all that was put into eval mode is in train mode again, by whatever:
        `part.training = True`, say.
        """
        parts = [part for part in module.modules() if part in self.asleep] if self.asleep else []
        if not parts or not all(part.training for part in parts):
            return False
        for part in parts:
            del self.asleep[part]
        return True

    def asleep_by(self, part: torch.nn.Module) -> torch.nn.Module | None:
        """The module whose `eval()` put a part into eval mode."""
        by = self.asleep.get(part)
        return None if by is None else by()

    def trained_in_eval(self) -> None:
        """Before a backward: a module that is still in eval mode since the last one is worth a
        closer look.
        """
        if any(
            module is not None and not module.training
            for module in (each() for each in self._in_eval)
        ):
            self.look_again()
        self._in_eval.clear()

    def meet_compiler(self) -> None:
        """The program compiles something. It stays compiled, unless every operation is to be
        recorded.
        """
        self.compiled = True
        self.runs_eagerly = self.session.level == "record" and _HAS_STANCES
        self.session.blind[_EAGER if self.runs_eagerly else _UNSEEN] = None
        for undo in self.before_compiling:
            undo()
        if self.runs_eagerly:
            torch.compiler.set_stance("force_eager")

    def _thin_out(self) -> None:
        """In watch, details of steps that went well are dropped."""
        for index in range(len(self.session.notes) - 1, -1, -1):
            if self.session.notes[index].step < self.session.step - 1:
                self.session.notes[index + 1 :] = [
                    note
                    for note in self.session.notes[index + 1 :]
                    if note.step >= self.session.step or _lasts(note)
                ]
                return


def _lasts(note: Note) -> bool:
    """Whether the account of a step hangs on it; gradients can be cleared in place, or spoilt."""
    if note.kind == "inplace":
        return note.facts["before"].gradient_of is not None or note.facts["written"].lasts
    return note.kind in _LASTING
