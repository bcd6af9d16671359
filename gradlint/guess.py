"""The nearest known word to one that does not exist: `did you mean …?`"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word nearest to `word`, or nothing."""
    import difflib

    by_lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""
