"""The collectives that this rank called."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gradlint.trace.frames import Place


@dataclass(eq=False, slots=True)
class Collectives:
    """The last collectives of this rank, in order: what was called, and where."""

    last: deque[tuple[str, Place]] = field(default_factory=lambda: deque(maxlen=4096))
    count: int = 0
    inside: bool = False

    def add(self, name: str, place: Place) -> None:
        """Write one down."""
        self.last.append((name, place))
        self.count += 1
