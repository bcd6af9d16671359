"""Parameters named by the modules that hold them: `model.encoder`, and not its sixteen weights and
biases.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator


def grouped(names: Collection[str], among: Iterable[str]) -> list[str]:
    """`names` with a module in the place of its parameters, where all that `among` knows of it are
    among them.

    The innermost module that has them all is as far out as this goes: what is around it may hold
    what nobody knows.
    """
    wanted = frozenset(names)
    mixed = {module for name in among if name not in wanted for module in _modules(name)}
    columns = zip(*(name.split(".") for name in wanted), strict=False)
    depth = sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, columns))
    found = (
        next((each for each in _modules(name, depth) if each not in mixed), name) for name in names
    )
    return list(dict.fromkeys(found))


def _modules(name: str, depth: int = 1) -> Iterator[str]:
    """The modules that a parameter is part of, by their paths, the outermost first."""
    words = name.split(".")
    return (".".join(words[:end]) for end in range(max(1, depth), len(words)))
