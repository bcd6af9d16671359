"""The scripts that run what was mended."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from gradlint.program.entries import is_script
from gradlint.program.modules import resolve
from gradlint.source.parse import Source, decode, parse


def scripts_of(files: Sequence[pathlib.Path], mended: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """Those of `files` that do something when they are run, and that are mended or import what is."""
    wanted = {path.resolve() for path in mended}
    trees = _Trees()
    return [path for path in files if _is_script(path, trees) and not wanted.isdisjoint(_reached(path, trees))]


class _Trees(dict[pathlib.Path, ast.Module | None]):
    """The tree of each file, parsed once; None for one that has none."""

    def __missing__(self, path: pathlib.Path) -> ast.Module | None:
        try:
            text = decode(str(path), path.read_bytes())
        except OSError:
            text = ""
        parsed = parse(str(path), text) if isinstance(text, str) else text
        self[path] = parsed.tree if isinstance(parsed, Source) else None
        return self[path]


def _is_script(path: pathlib.Path, trees: _Trees) -> bool:
    tree = trees[path.resolve()]
    return tree is not None and is_script(tree)


def _reached(path: pathlib.Path, trees: _Trees) -> set[pathlib.Path]:
    """A file and all that its imports lead to."""
    found = {path.resolve()}
    pending = list(found)
    while pending:
        importer = pending.pop()
        for target in _imported(importer, trees[importer]) - found:
            found.add(target)
            pending.append(target)
    return found


def _imported(importer: pathlib.Path, tree: ast.Module | None) -> set[pathlib.Path]:
    names = _names(tree) if tree is not None else ()
    return {target.resolve() for module, level in names if (target := resolve(importer, module, level)) is not None}


def _names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The modules that a file imports, each with the level that it is relative to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module, node.level
            yield from ((f"{module}.{alias.name}".lstrip("."), node.level) for alias in node.names)
