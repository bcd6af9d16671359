"""Holds the tree that libcst gives (`gradlint.source.concrete`) against that of Python's own
parser.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradlint.source import concrete
from gradlint.source.parse import Source, decode, parse

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_AROUND = 120  # characters of two dumps, around the first that differs


def drawn(paths: Iterable[Path], count: int) -> list[Path]:
    """So many files, drawn by their contents."""
    return sorted(paths, key=lambda path: hashlib.sha256(path.read_bytes()).digest())[:count]


def trees(paths: Iterable[Path]) -> Iterator[tuple[Path, str, ast.Module]]:
    """The files that Python's parser reads, with their texts and trees."""
    for path in paths:
        text = decode(str(path), path.read_bytes())
        found = parse(str(path), text) if isinstance(text, str) else None
        if isinstance(found, Source):
            yield path, found.text, found.tree


def difference(text: str, tree: ast.Module) -> str:
    """Where libcst's tree of a text first differs from this one, places included; nothing where
    they are equal.
    """
    wanted, found = (_dump(each) for each in (tree, concrete.parse(text)))
    if wanted == found:
        return ""
    pairs = enumerate(zip(wanted, found, strict=False))
    at = next(
        (place for place, (one, other) in pairs if one != other), min(len(wanted), len(found))
    )
    around = slice(max(0, at - _AROUND), at + _AROUND)
    return f"{wanted[around]}\n{found[around]}"


def _dump(tree: ast.Module) -> str:
    if sys.version_info < (
        3,
        12,
    ):  # it counts the places of what stands within a formatted string anew, and wrongly
        for string in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
            for node in (inner for value in string.values for inner in ast.walk(value)):
                vars(node).update((name, 0) for name in _PLACE if hasattr(node, name))
    return ast.dump(tree, include_attributes=True)
