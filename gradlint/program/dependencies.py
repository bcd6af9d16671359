"""Which parts of files an answer rests on, and what those rest on in turn.

The cache drops an answer once one of them is edited.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gradlint.program import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradlint.interpret.scopes import Frame


class Dependencies:
    """What is being worked out rests on the parts that are `asked` for meanwhile."""

    def __init__(self) -> None:
        self.asked: set[parts.Part] = set()
        # of a name that is bound: what its value rests on
        self._of_names: dict[parts.Part, set[parts.Part]] = {}

    def ask(self, frame: Frame, word: str) -> None:
        """Notes that what is being worked out rests on a part of the file of `frame`."""
        self.asked.add((frame.code.path, word))

    @contextlib.contextmanager
    def working_out(self, frame: Frame, name: str) -> Iterator[None]:
        """What is asked for meanwhile is what the value of a name rests on."""
        before = self.asked
        self.asked = self._of_names.setdefault((frame.code.path, name), set())
        try:
            yield
        finally:
            self.asked = before

    def bound_with(self, frame: Frame, name: str, other: str) -> None:
        """Notes that the statement that binds `name` binds `other`, too: what `name` rests on is
        what `other` does.
        """
        path = frame.code.path
        self._of_names.setdefault((path, other), set()).add((path, name))

    def all_of(self, asked: Iterable[parts.Part]) -> frozenset[parts.Part]:
        """These parts of files, and those that they rest on themselves."""
        found = set(asked)
        pending = list(found)
        while pending:
            new = self._of_names.get(pending.pop(), set()) - found
            found |= new
            pending += new
        return frozenset(found)
