"""What a run in which compiled code stayed compiled can say of gradients that it may have cut
off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gradlint.report._place import listed
from gradlint.trace.records import Held
from gradlint.trace.session import Session
from gradlint.trace.steppers import Stepper

_SHOWN = 8


def explained(session: Session, reported: Collection[str] = ()) -> Iterator[str]:
    """The parameters that no step had a gradient of, but for those that a finding names."""
    if not session.attention.compiled or session.attention.runs_eagerly:
        return
    starved: dict[Stepper, set[Held]] = {}
    for note in session.notes:
        if note.kind == "step":
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
            yield (
                f"no gradient came to {listed(names, _SHOWN)} in any step: whether compiled "
                "code cuts it off was not "
                "seen, --level record looks into it"
            )
