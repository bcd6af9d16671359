"""Contract F, of a module: a trainer calls it in train mode and trains its parameters, for up to
two rounds.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.program import forwards
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 1
IS_TRAINED = True
_RAISES = frozenset(
    [
        "GL106",
        "GL110",
        "GL113",
        "GL114",
        "GL201",
        "GL202",
        "GL204",
        "GL302",
        "GL303",
        "GL507",
        "GL508",
        "GL514",
        "GL515",
        "GL516",
    ]
)
_SPOILS = frozenset(
    [
        "GL206",
        "GL207",
        "GL602",
        "GL701",
        "GL702",
        "GL703",
        "GL704",
        "GL705",
        "GL801",
        "GL802",
        "GL803",
        "GL804",
    ]
)
SPEAKING = _RAISES | _SPOILS


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The `forward` methods of a file that hold what a rule could report."""
    return (
        forwards.forwards(source.tree, definitions)
        if forwards.speaks_of_modules(source.text)
        else ()
    )


def drive(
    part: Callable[..., Any],
    minimised: Callable[[Any], list[Any]],
    another_batch: Callable[[], None],
    owner: Any,
    keeps_state: Callable[[], bool] = lambda: True,
    **given: Any,
) -> None:
    """Calls a module with what is given it, and back-propagates those of its results that a loss
    can be made of.

    A second batch shows nothing new where the first has left the module as it was.
    """
    import torch

    owner.train()
    optimizer = torch.optim.SGD(owner.parameters(), lr=0.1)
    for _ in range(2):
        another_batch()
        loss: Any = sum(result.sum() for result in minimised(part(**given)))
        optimizer.zero_grad()
        loss.backward()
        is_changed = keeps_state()
        optimizer.step()
        if not is_changed:
            break
