"""The losses that a program computes, and those of them that something may yet back-propagate."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradlint.tape import Fact, ModuleCall, Tape, Value, ancestors

FACT = "loss"
_LOGGING = re.compile(r"log|print|write|record|track|append|scalar|update|wandb|meter|metric|report|display|postfix")


def losses(tape: Tape) -> Iterator[tuple[Fact, Value]]:
    """The losses by their names or by the functions that gave them."""
    for event in tape.events:
        if isinstance(event, Fact) and event.what == FACT and event.value is not None:
            yield event, event.value


def used(tape: Tape) -> Iterator[Fact]:
    """The losses that some backward needs, by a gradient or as a number, or that go where they cannot be followed."""
    needed = {id(value) for sink in tape.backwards() for value in ancestors(sink.value)}
    given = {id(source) for away in _away(tape) for source in ancestors(away)}
    return (fact for fact, value in losses(tape) if id(value) in needed or id(value) in given)


def _away(tape: Tape) -> Iterator[Value]:
    """What unknown functions gave that are not for logging, and what lies under keys that are not known."""
    for event in tape.events:
        if isinstance(event, Fact) and event.what == "put-away" and event.value is not None:
            yield event.value
    yield from (call.result for call in foreign(tape) if call.result is not None)


def foreign(tape: Tape) -> Iterator[ModuleCall]:
    """The calls of unknown functions that are not for logging."""
    return (event for event in tape.events if isinstance(event, ModuleCall) and not _is_logging(event))


def _is_logging(call: ModuleCall) -> bool:
    return call.result is None or call.result.op != "call" or bool(_LOGGING.search(call.module.path.lower()))
