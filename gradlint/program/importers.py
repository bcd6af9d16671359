"""The files that import another file of the program, found by their text before they are parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.program import parts
from gradlint.program.imports import BESIDE, called, can_mean, imports, neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gradlint.program.modules import Program
    from gradlint.program.sources import Source

MOST_FILES = 400  # files that are analysed and looked through for it


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that can import another: those that contain its name, by their own names, and the
    dependencies on the others, which do not.
    """

    naming: dict[str, Path]
    others: frozenset[parts.Part]


def importers(program: Program, source: Source, names: frozenset[str]) -> Iterator[Source]:
    """The other files that import `source` and contain one of `names`: those beside it, and those
    that are analysed.
    """
    mentions = parts.mentions(names)
    candidates = _candidates(program, source.path)
    program.dependencies.asked |= candidates.others
    for file, path in candidates.naming.items():
        program.dependencies.asked.add((file, mentions))
        if _mentions(program, path, names):
            program.dependencies.asked.add((file, parts.WHOLE))
            other = program.source(path)
            if other is not None and _imports(program, other, source.path):
                yield other


def _candidates(program: Program, path: Path) -> Candidates:
    """The files that can import the one at `path`."""
    if path not in program.candidates:
        paths = [*neighbours(path), *program.analysed[:MOST_FILES]]
        found = {str(each): each for each in paths}
        edges = program.edges.setdefault(path, {})
        edges.update({(file, BESIDE): each for file, each in found.items()})
        found.pop(str(path), None)
        name = called(path)
        # a file that does not contain the module's name cannot import it: it need not be parsed
        naming = {file: each for file, each in found.items() if _mentions(program, each, (name,))}
        others = found.keys() - naming.keys()
        program.candidates[path] = Candidates(
            naming, frozenset((file, parts.mentions([name])) for file in others)
        )
    return program.candidates[path]


def _imports(program: Program, source: Source, path: Path) -> bool:
    key = (source.path, path)
    if key not in program.importers:
        named = (origin for origin in imports(source.tree) if can_mean(path, origin[0]))
        program.importers[key] = any(
            program.resolve(source.path, *origin) == path for origin in named
        )
    return program.importers[key]


def _mentions(program: Program, path: Path, names: Iterable[str]) -> bool:
    text = _text(program, path)
    return any(name in text for name in names)


def _text(program: Program, path: Path) -> str:
    """The text of a file, which need not be parsed for it; "" where it cannot be read."""
    known = program.sources.get(path)
    if known is not None:
        return known.code.text
    if path not in program.looked_through:
        try:
            program.looked_through[path] = path.read_text(errors="replace")
        except OSError:
            program.looked_through[path] = ""
    return program.looked_through[path]
