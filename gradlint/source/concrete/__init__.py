"""The second reader: libcst reads what this Python's parser refuses, and its tree becomes one of
`ast`.

Importing this takes as long as checking a script, so whoever needs it does that where it does.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator

import libcst as cst

from gradlint.dataclass import dataclass
from gradlint.source.concrete import newer, statements
from gradlint.source.concrete.places import Places
from gradlint.source.lines import split_lines

# libcst's parser behind a token; its tokenizer does not say where
_STOP = re.compile(r"error at (\d+):(\d+)")
_BRACKET = re.compile(r"[(\[{]|[)\]}]")
_LINK = re.compile(r"[-+*/%@.~(\[<>]|\b(?:not|if|elif|lambda|await)\b")
_DEPTH = 1_000  # brackets
_LINKS = 1_000  # of a chain, all in one line: libcst takes time that grows with the square
_PATTERN_DEPTH = 12  # brackets of a pattern: each doubles the time that libcst takes
_BACK = 50  # lines before a fault, at which the program before it may end
_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)
_FRAMES = 6_000  # that a program which Python can read may take


@dataclass(frozen=True, slots=True)
class Refused:
    """Why libcst does not read a program either: the line, where it says so, and what newer syntax
    stands before it.
    """

    line: int | None
    newer: tuple[str, ...] = ()


def read(text: str) -> ast.Module | Refused:
    """The tree of a program that Python's parser refuses, with places, as the newest Python would
    give it.
    """
    try:
        return parse(text)
    except _FAULTS as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        return Refused(line, _newer(text, line) if line else ())


def parse(text: str) -> ast.Module:
    """The tree of any program; raises SyntaxError, or what its literals raise."""
    with _room():
        module = _module(text)
        return statements.module(Places(text, module), module)


def comments(text: str) -> list[tuple[int, int, str]] | None:
    """The line, the offset in it and the text of each comment of a program; None where it cannot be
    read.
    """
    with contextlib.suppress(*_FAULTS), _room():
        module = _module(text)
        places = Places(text, module)
        found = (
            (places.of(each).start, each)
            for each in newer.walk(module)
            if isinstance(each, cst.Comment)
        )
        return [(start.line, start.column, each.value) for start, each in found]
    return None


def _module(text: str) -> cst.Module:
    """libcst's tree of a program; raises SyntaxError, with the line if that is known."""
    if _is_costly(text):
        raise SyntaxError("libcst takes too long to read it")
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise _fault(text, error.message) from error
    except cst.CSTLogicError as error:  # templates in a row
        raise SyntaxError(f"libcst cannot read it: {error}") from error
    except Exception:
        raise
    except (
        BaseException
    ) as error:  # a panic of its parser, which is written in Rust, is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise SyntaxError("libcst cannot read it") from error


def _fault(text: str, message: str) -> SyntaxError:
    found = SyntaxError(message)
    if stop := _STOP.search(message):
        found.lineno = int(stop[1])
        if stop[2] == "0":  # behind the end of a line, and of the blank ones below it
            before = enumerate(split_lines(text)[: found.lineno - 1], 1)
            found.lineno = max((number for number, line in before if line.strip()), default=1)
    return found


def _newer(text: str, line: int) -> tuple[str, ...]:
    """The newer syntax in what stands before the line at which libcst stops, as far as that is a
    program.
    """
    lines = split_lines(text)
    for end in range(line - 1, max(0, line - 1 - _BACK), -1):
        with contextlib.suppress(*_FAULTS), _room():
            return tuple(newer.found(_module("\n".join(lines[:end]) + "\n")))
    return ()


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Lets calls nest as deep as the nodes of a program do."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _is_costly(text: str) -> bool:
    """Whether a program nests so deep, or holds so long a chain, that libcst would take minutes, or
    the process.
    """
    depth = 0
    for line in text.splitlines():
        opened = depth
        for bracket in _BRACKET.findall(line):
            depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
            if depth > _DEPTH or (
                depth - opened > _PATTERN_DEPTH and line.lstrip().startswith("case")
            ):
                return True
        if len(line) > _LINKS and len(_LINK.findall(line)) > _LINKS:
            return True
    return text.count("elif") > _LINKS * 3
