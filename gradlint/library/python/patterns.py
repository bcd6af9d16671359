"""Patterns that names are held against: `fnmatch`, where both are known."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Call, Sequence
from gradlint.library.python.results import constant, functions, place, plain, same

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@functions("fnmatch.fnmatch", "fnmatch.fnmatchcase")
def matches(m: Machine, call: Call, name: str) -> Abstract:
    """`fnmatch(name, "encoder.*")`."""
    known = _texts([call.get(0, "name"), call.get(1, "pat")])
    return (
        same(m, call, name, call.values, "bool")
        if known is None
        else constant(call, fnmatch.fnmatchcase(*known))
    )


@function("fnmatch.filter")
def chosen(m: Machine, call: Call) -> Abstract:
    """`fnmatch.filter(names, "encoder.*")`."""
    names, pattern = call.get(0, "names"), call.get(1, "pat")
    if not isinstance(names, Sequence) or names.open:
        return same(m, call, "fnmatch.filter", call.values, "")
    kept = []
    for name in names.items:
        known = _texts([name, pattern])
        if known is None:
            return same(m, call, "fnmatch.filter", call.values, "")
        if fnmatch.fnmatchcase(*known):
            kept.append(name)
    return Sequence("list", kept, at=place(call))


def _texts(values: list[Abstract | None]) -> tuple[str, str] | None:
    text, pattern = (plain([value]) if value is not None else None for value in values)
    if text and pattern and isinstance(text[0], str) and isinstance(pattern[0], str):
        return text[0], pattern[0]
    return None
