"""Answers that the paths of an entry give to the questions of its branches."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.tape import (
    Tape,
)  # fmt: skip  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.cuts import place
from gradlint_rules.obstacles import Blocked
from gradlint_rules.purpose import is_deliberate


def asked(blocked: Blocked) -> list[tuple[Span, bool]]:
    """What decides that the cut is come to; but for what the defaults answer, where nobody freezes
    so.
    """
    spots = (place(blocked.by), *(blocked.by.cut_stack or blocked.by.stack))
    hidden = (
        frozenset[Span]()
        if is_deliberate(blocked.by, blocked.sink, blocked.tape)
        else _by_default(blocked.tape)
    )
    answers = (
        (at, holds)
        for at, holds, whole in _answers(blocked.tape)
        if any(map(whole.encloses, spots))
    )
    return [(at, holds) for at, holds in answers if at not in hidden]


def _by_default(tape: Tape) -> frozenset[Span]:
    """The questions that are answered as most objects of the part would have it."""
    decided = (decision.at for decision in tape.decisions if decision.by_default)
    return frozenset([*decided, *(fact.at for fact in tape.facts("default-answer"))])


def is_given(answer: tuple[Span, bool], paths: Paths) -> bool:
    """Whether a path that was run to its end answers so; where none does, such a path is asked
    for.
    """
    return paths.turns(lambda tape: answer in _given(tape), answer[0])


@of_tape
def _given(tape: Tape) -> AbstractSet[tuple[Span, bool]]:
    """The answers of a path that was run to its end."""
    return {(at, holds) for at, holds, _ in _answers(tape)} if tape.complete else frozenset()


def _answers(tape: Tape) -> Iterator[tuple[Span, bool, Span]]:
    """The answers of a path: where it was asked, what held, and the statement that hangs on it; not
    where any other answer is refused.
    """
    for decision in tape.decisions:
        if decision.whole is not None and not decision.is_refused:
            yield decision.at, decision.holds, decision.whole
    for fact in tape.facts("branch"):
        if fact.scope is not None:
            yield fact.at, fact.detail == "true", fact.scope


def is_of_another(tape: Tape, blocked: Blocked) -> bool:
    """Whether a path runs an object of the part that is made otherwise."""
    known = {
        (decision.at, decision.holds) for decision in blocked.tape.decisions if decision.made_with
    }
    own = {(decision.at, decision.holds) for decision in tape.decisions if decision.made_with}
    return any((at, not holds) in known and (at, holds) not in known for at, holds in own)
