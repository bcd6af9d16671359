"""Contract C, of a constructor of a module: nothing is known of its arguments, and its parameters
are trained.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.program import constructors
from gradlint.program.losses import Definition
from gradlint.source.parse import Source

RANK = 2
SPEAKING = frozenset(["GL202", "GL207", "GL515", "GL516"])


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[constructors.Constructor]:
    """The constructors of a file that write to parameters, compute them or freeze them."""
    return constructors.constructors(source.tree, definitions)


def drive(part: Callable[..., Any], **given: Any) -> None:
    """Makes an object, and trains its parameters."""
    import torch

    module = part(**given)
    torch.optim.SGD(module.parameters(), lr=0.1)
    loss: Any = sum(each.sum() for each in module.parameters())
    loss.backward()
