"""Where a place of a run is, as a report says it."""

from __future__ import annotations

from gradlint.finding import Span
from gradlint.trace import source
from gradlint.trace.frames import Place

NOWHERE = Span("<unknown>", 1, 1, 1, 1)
_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled", "enable_grad")


def at(place: Place) -> Span:
    """Where a place is, as a report says it."""
    return source.span(place[0].code, place[0].instruction) if place else NOWHERE


def stack(place: Place) -> tuple[Span, ...]:
    """The calls that led to a place, outermost first."""
    return tuple(source.span(frame.code, frame.instruction) for frame in reversed(place[1:]))


def switched_at(place: Place) -> Span | None:
    """Where grad mode was switched: the statement, or the decorator."""
    if not place:
        return None
    return (
        source.decorator_span(place[0].code, _SWITCHES) if place[0].instruction < 0 else at(place)
    )
