"""The losses that a program computes, and those of them that something may yet back-propagate."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint import evidence
from gradlint.tape import Fact, Kept, ModuleCall, Tape, Value, ancestors
from gradlint_rules.cached import of_tape

FACT = "loss"


def losses(tape: Tape) -> Iterator[tuple[Fact, Value]]:
    """The losses by their names or by the functions that gave them."""
    return ((fact, fact.value) for fact in tape.facts(FACT) if fact.value is not None)


@of_tape
def used(tape: Tape) -> tuple[Fact, ...]:
    """The losses that some backward needs, by a gradient or as a number, or that go where they
    cannot be followed.
    """
    found = list(losses(tape))
    if not found:
        return ()
    needed = {
        id(value) for value in ancestors(*(sink.value for sink in tape.backwards()), *_away(tape))
    }
    return tuple(fact for fact, value in found if id(value) in needed)


def _away(tape: Tape) -> Iterator[Value]:
    """What is given to unknown functions and containers that are not for logging, put under an
    unknown key, or asserted something of, as tests do.
    """
    yield from (fact.value for fact in tape.facts("put-away", "asserted") if fact.value is not None)
    for event in tape.of(Kept):
        if event.how == "unknown" and not evidence.is_for_logging(event.text.partition("(")[0]):
            yield event.value
    yield from (call.result for call in foreign(tape) if call.result is not None)


def foreign(tape: Tape) -> Iterator[ModuleCall]:
    """The calls of unknown functions that are not for logging."""
    unknown = (
        call for call in tape.of(ModuleCall) if call.result is not None and call.result.op == "call"
    )
    return (call for call in unknown if not evidence.is_for_logging(call.module.path))
