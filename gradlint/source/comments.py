"""The comments of a program: where each stands, and its text."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.source.lines import split_lines

_FORMATTED = re.compile(r"[rR]?[fF]|[fF][rR]")
_BRACE = re.compile(r"\{\{|\}\}|[{}]")
_TEMPLATE = frozenset(["t", "rt", "tr"])


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: its line, the characters before it in that line, and its text."""

    line: int
    offset: int
    text: str


def comments(text: str) -> list[Comment]:
    """The comments of a program, as far as it can be cut into tokens."""
    found: list[Comment] = []
    try:
        for token, before in _tokens(text):
            if _is_cut(token, before):
                return _read_again(text, found)
            if token.type == tokenize.COMMENT:
                found.append(Comment(*token.start, token.string))
    except (tokenize.TokenError, SyntaxError):
        return _read_again(text, found)
    return found


def _tokens(text: str) -> Iterator[tuple[tokenize.TokenInfo, tokenize.TokenInfo | None]]:
    """The tokens of a program, each with the one before it."""
    lines = (f"{line}\n" for line in split_lines(text))
    before = None
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        yield token, before
        before = token


def _is_cut(token: tokenize.TokenInfo, before: tokenize.TokenInfo | None) -> bool:
    """Whether the token is half of a string whose fields hold quotes, which this Python's tokenizer
    does not know.
    """
    if token.type != tokenize.STRING:
        return token.type == tokenize.ERRORTOKEN and bool(token.string.strip())
    if before is not None and before.string.lower() in _TEMPLATE and before.end == token.start:
        return True
    return bool(_FORMATTED.match(token.string)) and _is_open(token.string)


def _is_open(string: str) -> bool:
    """Whether a formatted string ends within a field."""
    depth = 0
    for brace in _BRACE.findall(string):
        if depth or len(brace) == 1:
            depth = max(0, depth + brace.count("{") - brace.count("}"))
    return depth > 0


def _read_again(text: str, found: list[Comment]) -> list[Comment]:
    """The comments as libcst reads them; those found so far where it cannot."""
    from gradlint.source import concrete

    again = concrete.comments(text)
    return found if again is None else [Comment(*each) for each in again]
