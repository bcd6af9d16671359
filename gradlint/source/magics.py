"""What only IPython reads: lines of a cell that are not Python, written as Python that does
nothing, and back.

`%matplotlib inline` becomes `pass  #@0@"%matplotlib inline"`: the lines stay where they are, and
whatever an edit does to the cell, the text behind the mark says what stood there. Python's own
parser decides what is hidden: a line at which it stops, and that looks like IPython's.
"""

from __future__ import annotations

import ast
import json
import re
import warnings

from gradlint.source.parse import parses

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w*)")
_RUN_PYTHON = frozenset(["", "capture", "debug", "memit", "prun", "time", "timeit", "wandb"])
_BY_ITSELF = (
    "autoreload|cat|cd|conda|cp|env|load_ext|ls|mamba|matplotlib|mkdir|mv|pip|rm|rmdir|run|time"
    "|timeit|uv"
)
_STATEMENT = re.compile(rf"(?P<head>[ \t]*)(?P<magic>[%!?].*|[^#'\"]*\?|(?:{_BY_ITSELF})[ \t].*)")
_ASSIGNMENT = re.compile(r"(?P<head>[ \t]*[^=!%#'\"]+=[ \t]*)(?P<magic>[!%].*)")
_UNKNOWN = "get_ipython()"  # what IPython itself calls there: a value of which nothing is known


def hidden(cell: str, mark: str) -> str:
    """The cell as Python; with lines that it cannot make into Python left as they are."""
    lines = _LINE.findall(cell)
    for first, found in _cell_magics(lines):
        if found["name"] not in _RUN_PYTHON:
            return commented(cell, mark)
        lines[first] = _comment(lines[first], mark)
    while (
        (number := _fault("".join(lines))) and number <= len(lines) and _is_magic(lines[number - 1])
    ):
        _hide(lines, number - 1, mark)
    return (
        _hidden_in_newer(lines, mark) if number and any(map(_is_magic, lines)) else "".join(lines)
    )


def _hidden_in_newer(lines: list[str], mark: str) -> str:
    """The cell as Python where this Python's parser stops at newer syntax: as few lines hidden as
    that takes.
    """
    hidden = list(lines)
    magic = [number for number, line in enumerate(lines) if _is_magic(line)]
    for number in magic:
        if hidden[number] == lines[number]:  # the line before may go on in it
            _hide(hidden, number, mark)
    if not parses("".join(hidden)):
        return "".join(lines)
    for number in magic:
        shown = [*hidden[:number], lines[number], *hidden[number + 1 :]]
        if parses("".join(shown)):
            hidden = shown
    return "".join(hidden)


def _cell_magics(lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    """The lines at the top of a cell that say how to run what is below, `%%capture` and
    `%%bash`.
    """
    found: list[tuple[int, re.Match[str]]] = []
    for number, line in enumerate(lines):
        magic = _CELL_MAGIC.match(line)
        if magic:
            found.append((number, magic))
        elif line.strip():
            break
    return found


def commented(cell: str, mark: str) -> str:
    """The cell as comments, line by line."""
    return "".join(_comment(line, mark) for line in _LINE.findall(cell))


def revealed(text: str, mark: str) -> str:
    """What `text` was before lines of it were hidden."""
    pattern = rf'(?:pass  |{re.escape(_UNKNOWN)}  )?#{re.escape(mark)}("(?:[^"\\]|\\.)*")'
    return re.sub(pattern, lambda found: str(json.loads(found[1])), text)


def _fault(text: str) -> int:
    """The line at which Python's parser stops; 0 if it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return 0
    return 0


def _is_magic(line: str) -> bool:
    body = line.rstrip()
    return bool(_STATEMENT.fullmatch(body) or _ASSIGNMENT.fullmatch(body))


def _hide(lines: list[str], index: int, mark: str) -> None:
    """Hides a line, and those that a backslash at its end goes on in."""
    goes_on = lines[index].rstrip().endswith("\\")
    lines[index] = _statement(lines[index], mark)
    while goes_on and index + 1 < len(lines):
        index += 1
        line = revealed(lines[index], mark)  # the parser may have stopped there first
        goes_on = line.rstrip().endswith("\\")
        lines[index] = _comment(line, mark)


def _statement(line: str, mark: str) -> str:
    body, end = _split(line)
    stripped = body.rstrip()
    if found := _STATEMENT.fullmatch(stripped):
        return f"{found['head']}pass  #{mark}{json.dumps(body[found.end('head') :])}{end}"
    found = _ASSIGNMENT.fullmatch(stripped)
    assert found, line
    return f"{found['head']}{_UNKNOWN}  #{mark}{json.dumps(body[found.end('head') :])}{end}"


def _comment(line: str, mark: str) -> str:
    body, end = _split(line)
    return f"#{mark}{json.dumps(body)}{end}"


def _split(line: str) -> tuple[str, str]:
    body = line.rstrip("\r\n")
    return body, line[len(body) :]
