"""The texts of parts of files, and what is left of them in a file that was edited."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.ir import scopes
from gradlint.program import fields, registries
from gradlint.program.parts import MISSING, NOTHING, SOMETHING, Edited, Text
from gradlint.program.settings import settings
from gradlint.source.blocks import statements

if TYPE_CHECKING:
    from gradlint.ir import nodes as ir
    from gradlint.program.sources import Source


def text_of(source: Source | None, word: str) -> Text:
    """The text of a part of a file; None stands for one that cannot be parsed."""
    if source is None:
        return MISSING
    kind, space, rest = word.partition(" ")
    match kind + space if rest else word:
        case "":  # PARSES
            return NOTHING
        case "*":  # WHOLE
            return Text(_digest([source.code.text]))
        case "settings":
            return _text(source, settings(source.tree))
        case "import ":  # STARS
            return _text(source, source.stars)
        case "fills ":
            names = registries.reaching(source.tree, rest)
            return _text(source, registries.filling(source.tree, names), sorted(names))
        case "below ":
            return _text(source, fields.relatives(rest, source.tree))
        case "returns ":
            lengths = scopes.arities(source.tree).get(rest, frozenset())
            return _text(source, (), map(str, sorted(lengths)))
        case "mentions ":
            return SOMETHING if any(name in source.code.text for name in rest.split()) else NOTHING
        case name:
            return _text(source, source.bindings.get(name, ()))


def _text(source: Source, found: Iterable[ast.stmt | ir.Node], more: Iterable[str] = ()) -> Text:
    lines = tuple(_lines(source, each) for each in found)
    texts = [*("\n".join(source.code.lines[first - 1 : last]) for first, last in lines), *more]
    return Text(_digest(texts), lines) if texts else NOTHING


def _lines(source: Source, statement: ast.stmt | ir.Node) -> tuple[int, int]:
    """The first line of a statement, decorators and all, and its last."""
    found = (
        statement if isinstance(statement, ast.stmt) else _places(source.tree).get(statement.at[:2])
    )
    if found is None:
        assert not isinstance(statement, ast.stmt)
        return statement.at[0], statement.at[2]
    first = min([found.lineno, *(each.lineno for each in getattr(found, "decorator_list", ()))])
    return first, found.end_lineno or found.lineno


@memo.of_programs
def _places(tree: ast.Module) -> dict[tuple[int, int], ast.stmt]:
    """The statements of a file by where they begin."""
    return {
        (each.lineno, each.col_offset): each
        for each in statements(tree)
        if isinstance(each, ast.stmt)
    }


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def edited(before: Mapping[str, Text], source: Source | None) -> Edited:
    """What is left of the parts of a file in what it is now."""
    now = {word: text_of(source, word) for word in before}
    same = {word: text for word, text in now.items() if text.digest == before[word].digest}
    moved = {
        (first, last, start - first)
        for word, text in same.items()
        for (first, last), (start, _) in zip(before[word].lines, text.lines, strict=True)
    }
    ordered = sorted(moved)
    starts = [first + by for first, _, by in ordered]
    # what is compared by lines
    return Edited(same, tuple(ordered)) if starts == sorted(starts) else Edited({}, ())
