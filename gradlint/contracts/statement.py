"""Contract of a statement that needs no caller to be wrong: it is run by itself, with nothing known
around it.
"""

from collections.abc import Iterable, Sequence

from gradlint.program import contexts
from gradlint.program.losses import Definition
from gradlint.source.parse import Source

RANK = 9
SPEAKING = frozenset(["GL303"])


def parts(source: Source, _: Sequence[Definition]) -> Iterable[contexts.Suspect]:
    """The statements of a file that can leave a context unentered."""
    return contexts.unentered(source.tree) if contexts.speaks_of_contexts(source.text) else ()
