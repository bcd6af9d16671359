"""Notebooks: the code cells as one program, in order, and edits of that program back in their
cells.

The program has a line of its own before each cell, so that it can be taken apart again. With a cell
that is not Python it ends, and nothing but that cell is shown, for its error is all that can be
told. When cells change, their text is replaced in the file and every other byte stays.
"""

from __future__ import annotations

import bisect
import codecs
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Span
from gradlint.source.lines import split_lines
from gradlint.source.magics import commented, hidden, revealed
from gradlint.source.parse import Source, SyntaxFault, parse
from gradlint.source.places import Part, Program

_OLDEST = 3  # the version of the format
_HEAD = re.compile(r"^#(@\d+@) cell \d+\n", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"[ \t\r\n]*")
_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of Python: its number among all cells, from 1, and its text."""

    number: int
    text: str


class _MalformedError(ValueError):
    """What keeps a file from being a notebook."""


def program(path: str, content: bytes) -> Program | SyntaxFault:
    """The program that a notebook holds, or why it holds none."""
    try:
        return _program(_cells(json.loads(_decoded(content))))
    except json.JSONDecodeError as error:
        return SyntaxFault(
            Span(path, error.lineno, error.colno, error.lineno, error.colno), _why(error.msg)
        )
    except UnicodeDecodeError:
        return SyntaxFault(Span(path, 1, 1, 1, 1), _why("it is not valid utf-8"))
    except (ValueError, RecursionError) as error:
        return SyntaxFault(Span(path, 1, 1, 1, 1), _why(str(error)))


def is_whole(before: str, after: str) -> bool:
    """Whether an edited program can be taken apart: the same cells, and Python in each of those
    that changed.
    """
    old, new = _bodies(before), _bodies(after)
    return old.keys() == new.keys() and all(
        new[number] == body or isinstance(parse("", new[number]), Source)
        for number, body in old.items()
    )


def heads(text: str) -> list[int]:
    """The lines before the cells of a notebook's program."""
    head = re.compile(rf"#{_mark(text)} cell \d+")
    return [number for number, line in enumerate(split_lines(text), 1) if head.fullmatch(line)]


def cell(text: str, number: int) -> str:
    """The text of a cell as it stands in the notebook whose program is `text`."""
    return _sources(text)[number]


def rows(content: bytes) -> Mapping[int, Sequence[int]]:
    """The line of the file in which each line of each cell stands, by the number of the cell."""
    document = _decoded(content)
    ends = [found.end() for found in re.finditer("\n", document)]
    return {
        number: [
            bisect.bisect_right(ends, place) + 1 for place in _line_places(document, start, end)
        ]
        for number, (start, end) in enumerate(_places(document), 1)
        if end
    }


def updated(content: bytes, text: str) -> bytes:
    """The notebook with the cells of the program `text`."""
    document = _decoded(content)
    known = {cell.number: cell.text for cell in _cells(json.loads(document))}
    places = _places(document)
    for number, source in sorted(_sources(text).items(), reverse=True):
        if source != known[number]:
            start, end = places[number - 1]
            document = (
                document[:start]
                + _written(document[start:end], source, document.isascii())
                + document[end:]
            )
    start_mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    return start_mark + document.encode()


def file_edits(content: bytes, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """What edits of cells, all of one notebook, are in its file: one for each cell, of as little as
    can be.
    """
    document = _decoded(content)
    known = {cell.number: cell.text for cell in _cells(json.loads(document))}
    places = _places(document)
    found = []
    for number in sorted({edit.at.cell for edit in edits}):
        start, end = places[number - 1]
        source = _edited(known[number], [edit for edit in edits if edit.at.cell == number])
        old, new = document[start:end], _written(document[start:end], source, document.isascii())
        head = _shared(old, new)
        tail = _shared(old[head:][::-1], new[head:][::-1])
        at = Span(edits[0].at.path, *_row(document, start + head), *_row(document, end - tail))
        found.append(Edit(at, new[head : len(new) - tail]))
    return tuple(found)


def _why(text: str) -> str:
    return f"not a notebook: {text}"


def _decoded(content: bytes) -> str:
    return content.removeprefix(codecs.BOM_UTF8).decode()


# cells and the program


def _program(found: Sequence[Cell]) -> Program:
    everything = "\n".join(cell.text for cell in found)
    mark = next(mark for number in itertools.count() if (mark := f"@{number}@") not in everything)
    bodies = _shown(found, mark)
    heads = [f"#{mark} cell {cell.number}\n" for cell in found]
    line, parts = 1, []
    for cell, body in zip(found, bodies, strict=False):  # a broken cell is the last
        parts.append(Part(line + 1, 1, cell.number))
        line += 1 + len(_LINE_END.findall(body))
    return Program("".join(itertools.chain(*zip(heads, bodies, strict=False))), tuple(parts), mark)


def _shown(found: Sequence[Cell], mark: str) -> list[str]:
    """The text of each cell as the program has it, up to the first that is not Python."""
    shown = [f"{hidden(cell.text, mark)}\n" for cell in found]
    broken = next(
        (index for index, body in enumerate(shown) if isinstance(parse("", body), SyntaxFault)),
        None,
    )
    if broken is None:
        return shown
    return [*(f"{commented(cell.text, mark)}\n" for cell in found[:broken]), shown[broken]]


def _bodies(text: str) -> Mapping[int, str]:
    """The text of each cell in a program; what stands before the first belongs to it."""
    before, *rest = re.split(rf"^#{_mark(text)} cell (\d+)\n", text, flags=re.MULTILINE)
    bodies = {int(number): body for number, body in zip(rest[::2], rest[1::2], strict=True)}
    return {
        number: before * (index == 0) + body for index, (number, body) in enumerate(bodies.items())
    }


def _mark(text: str) -> str:
    found = _HEAD.search(text)
    return found[1] if found else ""


def _sources(text: str) -> Mapping[int, str]:
    """The text of each cell of a program as it stands in the notebook."""
    mark = _mark(text)
    return {
        number: revealed(body.removesuffix("\n"), mark) for number, body in _bodies(text).items()
    }


def _cells(notebook: Any) -> list[Cell]:
    """The cells of Python."""
    found = list(_listed(notebook))
    if not _is_python(notebook):
        return []
    numbered = [(number, cell) for number, cell in enumerate(found, 1) if _is_code(cell)]
    return [Cell(number, _source(cell, number)) for number, cell in numbered]


def _listed(notebook: Any) -> Iterator[Any]:
    """All cells, in order; those of version 3 stand in worksheets."""
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    if not isinstance(version, int):
        raise _MalformedError("it names no version of the format")
    if version < _OLDEST:
        raise _MalformedError(f"version {version} of the format is not read")
    sheets = [notebook] if version > _OLDEST else notebook.get("worksheets")
    if not isinstance(sheets, list) or not all(isinstance(sheet, dict) for sheet in sheets):
        raise _MalformedError("it has no list of worksheets")
    for sheet in sheets:
        if not isinstance(sheet.get("cells"), list):
            raise _MalformedError("it has no list of cells")
        yield from sheet["cells"]


def _is_python(notebook: Any) -> bool:
    words = (
        _at(notebook, "metadata", "kernelspec", "language"),
        _at(notebook, "metadata", "language_info", "name"),
    )
    return all(word is None or str(word).lower() in ("python", "ipython") for word in words)


def _is_code(cell: Any) -> bool:
    language = _at(cell, "metadata", "vscode", "languageId") or "python"
    return _at(cell, "cell_type") == "code" and language == "python"


def _at(value: Any, *keys: str) -> Any:
    """What stands under `keys`; None where anything is not as one would think."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _source(cell: Mapping[str, Any], number: int) -> str:
    source = cell.get("source", cell.get("input"))
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise _MalformedError(f"cell {number} has no text")
    return "".join(lines)


# the text of the file


def _places(document: str) -> list[tuple[int, int]]:
    """Where in the file the text of each cell stands; (0, 0) for a cell without any."""
    top = _members(document, _skip(document, 0))
    sheets = (
        _items(document, top["worksheets"][0]) if "worksheets" in top else [(_skip(document, 0), 0)]
    )
    cells = (
        cell
        for start, _ in sheets
        for cell in _items(document, _members(document, start)["cells"][0])
    )
    members = (_members(document, start) for start, _ in cells)
    return [found.get("source", found.get("input", (0, 0))) for found in members]


def _line_places(document: str, start: int, end: int) -> list[int]:
    """Where each line of a cell begins that stands between `start` and `end`; an empty cell is
    taken for a line.
    """
    places = _items(document, start) if document[start] == "[" else [(start, end)]
    counted = (
        (place, len(_LINE_END.findall(json.loads(document[place:last])))) for place, last in places
    )
    return [place for place, ends in counted for _ in range(max(1, ends))] or [start]


def _members(document: str, start: int) -> Mapping[str, tuple[int, int]]:
    """Where the values of the object that begins at `start` stand."""
    found: dict[str, tuple[int, int]] = {}
    index = _skip(document, start + 1)
    while document[index] != "}":
        key, index = _JSON.raw_decode(document, index)
        value = _skip(document, _skip(document, index) + 1)  # behind the colon
        found[key] = value, _JSON.raw_decode(document, value)[1]
        index = _next(document, found[key][1])
    return found


def _items(document: str, start: int) -> list[tuple[int, int]]:
    """Where the items of the list that begins at `start` stand."""
    found: list[tuple[int, int]] = []
    index = _skip(document, start + 1)
    while document[index] != "]":
        found.append((index, _JSON.raw_decode(document, index)[1]))
        index = _next(document, found[-1][1])
    return found


def _next(document: str, end: int) -> int:
    index = _skip(document, end)
    return _skip(document, index + 1) if document[index] == "," else index


def _skip(document: str, index: int) -> int:
    found = _BLANK.match(document, index)
    assert found
    return found.end()


def _written(old: str, source: str, is_ascii: bool) -> str:
    """The text of a cell as JSON, in the form of the `old` one: a string, or a list of lines spaced
    as that was.
    """
    if old.startswith('"'):
        return json.dumps(source, ensure_ascii=is_ascii)
    places = _items(old, 0)
    known = {json.loads(old[start:end]): old[start:end] for start, end in places}
    lines = (
        known.get(line) or json.dumps(line, ensure_ascii=is_ascii)
        for line in source.splitlines(keepends=True)
    )
    return _joined(old, places, lines)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    """The text of a cell after these edits, none of which may overlap another."""
    text += "\n"  # as it has in the program
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    for edit in sorted(edits, key=lambda edit: (edit.at.line, edit.at.column), reverse=True):
        at = edit.at
        first, last = (
            starts[at.line - 1] + at.column - 1,
            starts[at.end_line - 1] + at.end_column - 1,
        )
        text = text[:first] + edit.content + text[last:]
    return text.removesuffix("\n")


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _row(document: str, offset: int) -> tuple[int, int]:
    """The line and the column of an offset in the file."""
    return document.count("\n", 0, offset) + 1, offset - document.rfind("\n", 0, offset)


def _joined(old: str, places: Sequence[tuple[int, int]], lines: Iterable[str]) -> str:
    if not places:
        return f"[{', '.join(lines)}]"
    head, tail = old[1 : places[0][0]], old[places[-1][1] : -1]
    between = old[places[0][1] : places[1][0]] if len(places) > 1 else f",{head or ' '}"
    return f"[{head}{between.join(lines)}{tail}]"
