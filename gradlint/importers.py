"""Who imports a file: a change in a helper is a change in the scripts that run through it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradlint.program.imports import INIT, imports, on_disk, resolve
from gradlint.source.files import real_paths
from gradlint.source.parse import SyntaxFault, parse
from gradlint.source.screen import imported_words, is_dynamic, module_name
from gradlint.texts import Texts


def importers(files: Iterable[Path], others: Iterable[Path]) -> list[Path]:
    """Those of the `others` that import one of `files`, by any way."""
    graph = _Graph()
    fresh = set(real_paths(files))
    paths = list(others)
    left = {
        path: place
        for path, place in zip(paths, real_paths(paths), strict=True)
        if place not in fresh
    }
    found: list[Path] = []
    while fresh:
        reached = [path for path in left if graph.leads(path, left[path], fresh)]
        found += reached
        fresh = {left.pop(path) for path in reached}
    return sorted(found, key=lambda path: path.parts)


class _Graph:
    """The imports of files: by the words of their bytes first, and of those that can lead there by
    their trees.
    """

    def __init__(self) -> None:
        self._texts = Texts({})
        self._is_file = on_disk()
        self._words = functools.cache(self._words_of)
        self._targets = functools.cache(self._targets_of)

    def leads(self, path: Path, place: Path, places: set[Path]) -> bool:
        """Whether the file at `path`, which is really at `place`, imports one of the files at these
        `places`.
        """
        names = {module_name(str(each)) for each in places}
        # whose modules can import from it without its name
        is_inside = place.with_name(INIT) in places
        if not is_inside and self._words(path).isdisjoint(names):
            return False
        targets = self._targets(path)
        return targets is None or not targets.isdisjoint(places)

    def _programs(self, path: Path) -> Iterator[tuple[str, bytes]]:
        for program in self._texts.programs(str(path)):
            content = self._texts.encoded(program)
            if isinstance(content, bytes):
                yield program, content

    def _words_of(self, path: Path) -> frozenset[str]:
        words = (word for _, content in self._programs(path) for word in imported_words(content))
        return frozenset(map(bytes.decode, words))

    def _targets_of(self, path: Path) -> frozenset[Path] | None:
        """The files that a file imports; None where it can be any: it names them by strings, or
        does not parse.
        """
        found: set[Path] = set()
        for program, content in self._programs(path):
            text = self._texts.text(program)
            source = text if isinstance(text, SyntaxFault) else parse(program, text)
            if isinstance(source, SyntaxFault) or is_dynamic(content):
                return None
            found |= set(self._imported(path, source.tree))
        return frozenset(real_paths(found))

    def _imported(self, path: Path, tree: ast.Module) -> Iterator[Path]:
        for module, level in imports(tree):
            parts = module.split(".")
            for size in range(1, len(parts) + 1):  # an import of `a.b` runs `a`
                target = resolve(path.absolute(), ".".join(parts[:size]), level, self._is_file)
                if target is not None:
                    yield target
