"""The parameters that no gradient came to in any step, where no finding says why: something that a
trace does not see into, compiled code or a kernel of the user's, may have cut them off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gradlint.report._place import listed
from gradlint.trace.records import Held
from gradlint.trace.session import Session
from gradlint.trace.steppers import Stepper
from gradlint.trace.unseen import was_taken

_SHOWN = 8
_IN_COMPILED = "whether compiled code cuts it off was not seen, --level record looks into it"
_UNSEEN = "no loss was seen to use what is computed of them, and nothing to cut it off"


def explained(
    session: Session, reported: Collection[str] = (), *, is_clean: bool = True
) -> Iterator[str]:
    """The parameters that no step had a gradient of, but for those that a finding names; without
    compiled code only where nothing else was found, which mostly is the reason.
    """
    is_compiled = session.attention.compiled and not session.attention.runs_eagerly
    if not (is_compiled or is_clean):
        return
    starved: dict[Stepper, set[Held]] = {}
    for note in session.notes:
        if note.kind == "step" and was_taken(note):
            stepper: Stepper = note.facts["stepper"]
            found = {
                each
                for index, each in enumerate(note.facts["held"])
                if index in note.facts["starved"]
            }
            starved[stepper] = starved.get(stepper, found) & found
    for stepper, found in starved.items():
        trained = (
            each
            for index, each in enumerate(stepper.held)
            if each in found and index not in stepper.frozen
        )
        names = [".".join(each.path) or each.name or "a parameter" for each in trained]
        if names := [name for name in names if name not in reported]:
            why = _IN_COMPILED if is_compiled else _UNSEEN
            yield f"no gradient came to {listed(names, _SHOWN)} in any step: {why}"
