"""Where the analysis gives up, by name: counted and listed by `check --gaps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.finding import Span

if TYPE_CHECKING:
    from gradlint.interpret.scopes import Frame
    from gradlint.interpret.values import Function

BACKWARDS = frozenset(["backward", "manual_backward"])  # the methods whose calls are training steps


@dataclass(frozen=True, slots=True)
class Gap:
    """One place where analysis gave up: `kind` is one of `KINDS`."""

    kind: str
    at: Span
    detail: str = ""

    @property
    def sort_key(self) -> tuple[Span, str, str]:
        return (self.at, self.kind, self.detail)


KINDS = {
    "depth": "calls nested deeper than the bound",
    "recursion": "a function that calls itself",
    "steps": "an entry, or a call in it, that takes more steps than the bound",
    "raises": "a call in which an exception ends every path of an entry: its result is unknown",
    "paths": "an entry with more paths than the bound",
    "restarts": "an entry that is begun again more often than the bound, as its loops become known",
    "dynamic": "code that is made or looked up at run time",
    "syntax": "syntax of a Python that is newer than this gradlint",
    "unreached": "a call of `backward` to which no path that was run has come",
    "part": "a part (a model, a loss) that no path has run to its end: nothing is said of it",
    "internal": "a mistake of gradlint itself; this entry was not analysed",
}


class GiveUp(Exception):
    """Ends the path that is being run; `gap` says why, `running` the functions that were, innermost
    first.
    """

    def __init__(self, gap: Gap) -> None:
        super().__init__(gap.kind)
        self.gap = gap
        self.running: list[Function] = []


class Overrun(GiveUp):
    """Ends a call that takes many steps in which no tensor is in view: the program goes on behind
    it.
    """

    def __init__(self, gap: Gap, frame: Frame) -> None:
        super().__init__(gap)
        self.frame = frame
