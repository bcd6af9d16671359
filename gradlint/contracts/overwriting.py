"""Contract of a function of tensors, and of a method of a module beside `forward`, that writes in
place and that nothing in view calls: somebody differentiates its result.

Much of what writes is never differentiated; so nothing is said of one but that a backward raises,
and that as a note.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.finding import Severity
from gradlint.program import functions
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 8
IS_TRAINED = True
MOST = Severity.NOTE
SPEAKING = frozenset(["GL201"])


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The functions and methods that write in place into what they compute with."""
    return functions.overwriting(source.tree, definitions) if "torch" in source.text else ()


def drive(part: Callable[..., Any], minimised: Callable[[Any], list[Any]], **given: Any) -> None:
    """Calls it with tensors that carry a gradient, and back-propagates what it gives."""
    loss: Any = sum(result.sum() for result in minimised(part(**given)))
    loss.backward()
