"""The scripts that run what was mended."""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Callable, Iterable, Sequence

from gradlint.program.entries import is_script
from gradlint.program.imports import imports, on_disk, resolve
from gradlint.source.parse import Source, parse
from gradlint.source.places import Program
from gradlint.texts import Texts

_Imported = Callable[[pathlib.Path], frozenset[pathlib.Path]]


def scripts_of(
    files: Sequence[pathlib.Path], mended: Iterable[pathlib.Path], texts: Texts
) -> list[pathlib.Path]:
    """Those of `files` that do something when they are run, and that are mended or import what
    is.
    """
    wanted = {path.resolve() for path in mended}
    names = {path.resolve(): str(path) for path in files}

    @functools.cache
    def tree(path: pathlib.Path) -> ast.Module | None:
        return _tree(names.get(path, str(path)), texts)

    is_file = on_disk()

    @functools.cache
    def imported(importer: pathlib.Path) -> frozenset[pathlib.Path]:
        found = (
            resolve(importer, *origin, is_file)
            for origin in set(imports(tree(importer) or ast.Module([], [])))
        )
        return frozenset(target.resolve() for target in found if target is not None)

    scripts = [
        path
        for path, name in names.items()
        if (parsed := tree(path)) is not None and is_script(parsed)
    ]
    reaching = {path for path in scripts if not wanted.isdisjoint(_reached(path, imported))}
    return [path for path in files if path.resolve() in reaching]


def _tree(name: str, texts: Texts) -> ast.Module | None:
    """The tree of a file that is a program as it stands, which a notebook is not."""
    program = texts.program(name)
    parsed = (
        parse(name, program.text) if isinstance(program, Program) and not program.parts else None
    )
    return parsed.tree if isinstance(parsed, Source) else None


def _reached(path: pathlib.Path, imported: _Imported) -> set[pathlib.Path]:
    """A file and all that its imports lead to."""
    found = {path}
    pending = [path]
    while pending:
        new = imported(pending.pop()) - found
        found |= new
        pending += new
    return found
