"""From the bytes of a file to its text and tree, or to the reason why it has none."""

from __future__ import annotations

import ast
import functools
import io
import sys
import tokenize
import warnings
from collections.abc import Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.source.lines import LINE, characters, split_lines


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Why a file has no tree, and where."""

    at: Span
    message: str
    help: str = ""


@dataclass(frozen=True)
class Source:
    """The text and tree of a file that parses."""

    path: str
    text: str
    tree: ast.Module

    @functools.cached_property
    def lines(self) -> tuple[str, ...]:
        return split_lines(self.text)

    def span(
        self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias | ast.excepthandler
    ) -> Span:
        """Where `node` stands, in characters (Python's parser counts bytes)."""
        end_line, end_offset = (
            node.end_lineno or node.lineno,
            node.end_col_offset or node.col_offset,
        )
        return Span(
            self.path,
            node.lineno,
            self._column(node.lineno, node.col_offset),
            end_line,
            self._column(end_line, end_offset),
        )

    def _column(self, line: int, offset: int) -> int:
        return characters(self.lines[line - 1], offset) + 1


def decode(path: str, content: bytes) -> str | SyntaxFault:
    """The text of a file by its byte order mark or coding comment (PEP 263); line ends stay as they
    are.
    """
    try:
        return content.decode(encoding_of(content))
    except SyntaxError as error:
        return SyntaxFault(Span(path, 1, 1, 1, 1), str(error.msg))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return SyntaxFault(
            Span(path, line, 1, line, 1), f"not valid {error.encoding}: {error.reason}"
        )
    except UnicodeError as error:  # some codecs say no more: idna, punycode, undefined
        return SyntaxFault(Span(path, 1, 1, 1, 1), f"not valid {encoding_of(content)}: {error}")


def encoding_of(content: bytes) -> str:
    """The encoding that a file declares; raises SyntaxError for one that does not exist, or is none
    of text (rot13).
    """
    name = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    try:
        b" ".decode(name)
    except LookupError:
        raise SyntaxError(f"{name} is not a text encoding") from None
    except UnicodeError:  # of a text encoding: this is no text in it
        pass
    return name


def parse(path: str, text: str) -> Source | SyntaxFault:
    """The tree of a program, or what its syntax error is. What this Python refuses is read by
    libcst.
    """
    if "\0" in text:
        return SyntaxFault(
            _point(path, text, text.index("\0")), "source code cannot contain null bytes"
        )
    try:
        return Source(path, text, _tree(text))
    except SyntaxError as error:
        return _read_again(path, text, error)
    except UnicodeEncodeError as error:
        return SyntaxFault(_point(path, text, error.start), f"no text: {error.reason}")
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxFault(
            Span(path, 1, 1, 1, 1), str(error) or "too deeply nested for Python's parser"
        )


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # an invalid escape in the user's program is not ours to print
        warnings.simplefilter("ignore")
        return ast.parse(text)


def is_of_this_python(text: str) -> bool:
    """Whether Python's own parser reads a text as a program."""
    try:
        _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parses(text: str) -> bool:
    """Whether a text is a program."""
    return isinstance(parse("", text), Source)


def expression(text: str) -> ast.expr:
    """The tree of an expression, in the syntax of any Python; raises SyntaxError."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        found = parse("", text)
        match found:
            case Source(tree=ast.Module(body=[ast.Expr(value=value)])):
                return value
        raise


def _read_again(path: str, text: str, error: SyntaxError) -> Source | SyntaxFault:
    """What libcst reads where Python's parser refuses it; where neither does, why.

    Python can have stopped at newer syntax; then the fault is where libcst stops.
    """
    from gradlint.source import concrete

    found = concrete.read(text)
    if isinstance(found, ast.Module):
        return Source(path, text, found)
    at, message = _place(path, error), error.msg
    if found.newer and found.line is not None and found.line > at.line:
        line = split_lines(text)[found.line - 1]
        at = Span(path, found.line, len(line) - len(line.lstrip()) + 1, found.line, len(line) + 1)
        message = "invalid syntax"
    return SyntaxFault(at, message, _help(found.newer))


def _help(newer: Sequence[str]) -> str:
    python = f"gradlint runs on Python {sys.version_info[0]}.{sys.version_info[1]}"
    return f"{python}; the file is for a newer one: {', '.join(newer)}" if newer else python


def _point(path: str, text: str, offset: int) -> Span:
    before = LINE.findall(text[:offset] + "x")[:-1]
    line, column = len(before), len(before[-1])
    return Span(path, line, column, line, column)


def _place(path: str, error: SyntaxError) -> Span:
    line, column = error.lineno or 1, max(error.offset or 1, 1)
    end_line, end_column = error.end_lineno or line, error.end_offset or column
    # an end of 0 or -1 means that Python does not know it
    if (end_line, end_column) < (
        line,
        column,
    ):
        end_line, end_column = line, column
    return Span(path, line, column, end_line, end_column)
