"""The seeds of made-up programs: a fixed one, and one that each state of gradlint has for itself.

Every change draws other programs than the one before it; the same code draws the same ones wherever
it is tested, so that a failure can be had again, and a change that passed here passes there.
`GRADLINT_SEED` draws what one likes.
"""

import hashlib
import os
import pathlib

_SOURCES = ("gradlint", "rules")


def of_this_state() -> int:
    """A seed that the sources of gradlint give, or `GRADLINT_SEED`."""
    if (given := os.environ.get("GRADLINT_SEED")) is not None:
        return int(given)
    root = pathlib.Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4])


SEEDS = {"fixed": 0, "drawn": of_this_state()}
