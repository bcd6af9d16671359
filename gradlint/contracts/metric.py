"""Contract M, of a metric: what it is updated with was kept for a backward, which comes after
it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.finding import Severity
from gradlint.program import metrics
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 3
IS_TRAINED = True
MOST = Severity.WARNING
SPEAKING = frozenset(["GL201"])


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The `update` methods of the metrics of a file that write in place."""
    return metrics.updates(source.tree, definitions) if "Metric" in source.text else ()


def drive(
    part: Callable[..., Any],
    saved: Callable[[Any], Any],
    minimised: Callable[[Any], list[Any]],
    **predicted: Any,
) -> None:
    """Updates a metric with what a model has computed, and back-propagates that."""
    for value in predicted.values():
        saved(value)
    part(**predicted)
    for output in minimised(list(predicted.values())):
        output.sum().backward()
