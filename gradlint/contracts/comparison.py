"""Contract of a comparison, which nothing calls a loss: a module that makes one number of two
things.

Where it has something to train, it is a module like any other. What is wholly without a derivative
measures something; what is computed with grad mode off, or is a constant now and then, does not.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.contracts import forward
from gradlint.finding import Severity
from gradlint.program import losses
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 0
IS_ALONE = False
IS_TRAINED = True
MOST = Severity.WARNING
SPEAKING = forward.SPEAKING | {"GL101", "GL103"}


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The modules of a file that compare what they are given."""
    return losses.comparisons(definitions) if "def forward(" in source.text else ()


def drive(
    part: Callable[..., Any],
    minimised: Callable[[Any], list[Any]],
    reduced: Callable[[Any], Any],
    untrained: Callable[[], None],
    **predicted: Any,
) -> None:
    """Calls it where it has nothing to train, and back-propagates its result."""
    untrained()
    minimised(reduced(part(**predicted)))[0].backward()
