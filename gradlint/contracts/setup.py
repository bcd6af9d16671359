"""Contract of a function or method that makes an optimizer, and trains nothing: somebody calls
it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.program import functions
from gradlint.program.losses import Definition, Part
from gradlint.source.parse import Source

RANK = 10
JUDGES = False
SPEAKING = frozenset(["GL512", "GL515", "GL518", "GL520"])


def parts(source: Source, definitions: Sequence[Definition]) -> Iterable[Part]:
    """The functions and methods of a file that make an optimizer of torch."""
    return functions.making(source.tree, definitions) if "optim" in source.text else ()


def drive(part: Callable[..., Any], **given: Any) -> None:
    """Calls it."""
    part(**given)
