"""What is in force where a statement is run: the names of a scope, grad mode, the branch that is
asked; and how a block is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.interpret.values import NONE, Abstract, Instance
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.counters import Met
    from gradlint.interpret.looping import Loop
    from gradlint.program.sources import Source


@dataclass(frozen=True, slots=True)
class Signal:
    """How a block ended, if not at its end: "return", "break" or "continue"."""

    kind: str
    value: Abstract = NONE


BREAK, CONTINUE = Signal("break"), Signal("continue")


@dataclass(eq=False, slots=True)
class Frame:
    """The names of one scope: of a module, a class body or a call."""

    code: ir.Code
    locals: dict[str, Abstract]
    parent: Frame | None = None
    function: Any = None  # the Function being run
    source: Source | None = None  # of a module: what has not been executed yet
    is_class: bool = False
    on_yield: Callable[[Abstract], Abstract] | None = None
    wanted: int = 0  # of a generator: how many values the loop over it would take
    is_endless: bool = False  # of a function: a `while True` of it came to no end
    is_silent: bool = False  # of a generator that runs as a context: no event of its own
    began: tuple[int, int] | None = None  # of a function: the steps, and `made`, when it was called

    def span(self, node: ir.Node) -> Span:
        return self.code.places[node]

    def text(self, node: ir.Node) -> str:
        return self.code.texts[node]

    @property
    def is_script(self) -> bool:
        """Whether it is the scope of a file that is run from its top, not bound name by name."""
        return self.source is None and self.parent is None

    @property
    def receiver(self) -> Instance | None:
        """The object whose method is being run."""
        if (
            self.function is None
            or self.function.owner is None
            or not self.function.node.parameters
        ):
            return None
        found = self.locals.get(self.function.node.parameters[0].name)
        return found if isinstance(found, Instance) else None

    @property
    def module(self) -> Frame:
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


@dataclass(slots=True)
class GradState:
    """The grad mode that is in force, and what set it."""

    enabled: bool = True
    inference: bool = False
    at: Span | None = None
    stack: tuple[Span, ...] = ()
    by_call: bool = False


@dataclass(eq=False, slots=True)
class Branch:
    """A branch whose condition is being asked, and what is met there that other rounds would answer
    otherwise.
    """

    # it leaves, and does nothing else, as long as a counter has not come to a number
    waits: bool = False
    leaves: bool | None = None  # the answer with which the loop is left
    refused: ir.Node | None = None  # the condition of what raises
    repeats: bool = False  # it is that of a loop
    keeps: bool | None = (
        # the answer that an item of a loop is not left out by; None where neither leaves it out
        None
    )
    met: list[Met] = field(default_factory=list)
    # the rounds in which numbers come to what is asked
    ahead: list[tuple[Loop, int]] = field(default_factory=list)
