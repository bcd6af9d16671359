"""The words of a name as a program writes it: `self.optD` says `opt` and `d`, `options` says
`options` and no more.

Whoever takes something unknown for what its name says asks here: a word inside another (`opt` in
`option`, `meter` in `parameter`) says nothing.
"""

from __future__ import annotations

import functools
import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_KEY = re.compile(r"\[\s*[\"'](\w+)[\"']\s*\]")  # state["optimizer"]
_INNERMOST = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_DOTTED = re.compile(r"[\w.]*$")
# what they give is what the container is named
_OF_CONTAINERS = frozenset(["get", "values", "items", "pop", "copy"])


@functools.lru_cache(maxsize=4096)
def parts(text: str) -> tuple[str, ...]:
    """The names that an expression is a path of: `self`, `opt` of `self.opt[0]`; a key is part of
    its container's.
    """
    before = None
    text = _KEY.sub(r"_\1", text)
    while text != before:
        before, text = text, _INNERMOST.sub("", text)
    opened = re.split(r"[(\[]", text)[0]  # what is open still was shortened
    dotted = _DOTTED.search(opened.strip())
    found = [part for part in dotted[0].split(".") if part] if dotted is not None else []
    while len(found) > 1 and found[-1] in _OF_CONTAINERS:
        del found[-1]
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of the last name of an expression, in lower case: `lr`, `scheduler` of
    `self.lr_scheduler[0]`.
    """
    named = parts(text)
    return tuple(word.lower() for word in _WORD.findall(named[-1])) if named else ()
