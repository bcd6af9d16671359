"""Contract of a plain function of tensors that chooses around what is undefined: somebody
differentiates its result.

Tables, masks and metrics are functions, too; so nothing is said of one but that its gradient is
NaN, where it asks by itself for the place at which it is.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.finding import Severity
from gradlint.program import functions
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 7
IS_TRAINED = True
MOST = Severity.WARNING
SPEAKING = frozenset(["GL701", "GL703"])
ASKED = frozenset(["GL703"])


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The functions of a file that choose around something undefined."""
    if not functions.speaks_of_choices(source.text):
        return ()
    return functions.choosing(source.tree, definitions)


def drive(part: Callable[..., Any], minimised: Callable[[Any], list[Any]], **given: Any) -> None:
    """Calls it with tensors that carry a gradient, and back-propagates what it gives."""
    loss: Any = sum(result.sum() for result in minimised(part(**given)))
    loss.backward()
