"""Contract of a context manager that yields another object: callers enter it and name nothing of
what it yields.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradlint.program import contexts
from gradlint.program.losses import Definition
from gradlint.source.parse import Source

RANK = 8
SPEAKING = frozenset(["GL303"])


def parts(source: Source, _: Sequence[Definition]) -> Iterable[contexts.Suspect]:
    """The context managers of a file that yield a context to callers who do not name it."""
    return contexts.yielding(source.tree) if contexts.speaks_of_contexts(source.text) else ()


def drive(part: Callable[..., Any], **given: Any) -> None:
    """Enters it."""
    with part(**given):
        pass
