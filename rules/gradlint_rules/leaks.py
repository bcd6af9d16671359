"""Grad mode that was switched off by a call, and that nothing has restored when a loss is
back-propagated.
"""

from __future__ import annotations

from gradlint.tape import GradMode
from gradlint_rules.starved import Starved


def leak(found: Starved) -> GradMode | None:
    """The call that left grad mode off, if it is still off at the sink and is what starves the
    loss.
    """
    sink = found.arrival.sink
    modes = [event for event in found.arrival.tape.of(GradMode) if event.order < sink.order]
    last = modes[-1] if modes else None
    if last is None or last.enabled:
        return None
    calls = [
        event for event in modes if event.by_call and not event.enabled and event.at == found.at
    ]
    return calls[-1] if calls else None
