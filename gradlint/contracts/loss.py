"""Contract L, of a loss: what it gives is back-propagated, as a trainer would do it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.contracts import forward
from gradlint.program import losses
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 0
IS_TRAINED = True
_CUTS = frozenset(["GL101", "GL102", "GL103", "GL104", "GL105", "GL108", "GL109"])
SPEAKING = forward.SPEAKING | _CUTS | {"GL112", "GL301", "GL903"}


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The losses of a file."""
    return losses.losses(source.tree, definitions) if losses.speaks_of_losses(source.text) else ()


def drive(
    part: Callable[..., Any], minimised: Callable[[Any], list[Any]], **predicted: Any
) -> None:
    """Calls a loss with what is given it, and back-propagates that of its results which is
    minimised.
    """
    minimised(part(**predicted))[0].backward()
