"""Contract of a loss that is a method of a model, an agent or a head: `def loss(self, x, target)`.

It speaks as that of a loss does. What an object does besides is judged by its `forward`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.contracts import loss
from gradlint.program import losses
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 1
IS_TRAINED = True
SPEAKING = loss.SPEAKING


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The methods of a file that are losses by their names."""
    return (
        losses.of_methods(source.tree, definitions) if losses.speaks_of_losses(source.text) else ()
    )


def drive(
    part: Callable[..., Any], minimised: Callable[[Any], list[Any]], **predicted: Any
) -> None:
    """Calls the method with what is given it, and back-propagates what is minimised."""
    total: Any = sum(result.sum() for result in minimised(part(**predicted)))
    total.backward()
