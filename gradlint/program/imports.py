"""What the imports of a file name, and which files they mean: by what is on disk, without parsing
any of them.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gradlint import memo
from gradlint.source.blocks import statements

# in place of the level of an import: a file that was looked at because it can import this one
BESIDE = -1
LIBRARIES = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "triton",
        "numpy",
        "scipy",
        "pandas",
        "sklearn",
        "lightning",
        "pytorch_lightning",
        "accelerate",
        "transformers",
        "deepspeed",
        "apex",
        "tqdm",
        "argparse",
        "math",
        "random",
        "functools",
        "itertools",
        "collections",
        "contextlib",
        "dataclasses",
        "typing",
        "enum",
        "copy",
    ]
)
MOST_NEIGHBOURS = 40  # files of one folder that are looked through for what they register
INIT = "__init__.py"
IsFile = Callable[[str], bool]


def on_disk() -> IsFile:
    """Whether there is a file at a path, asked once of each: imports ask for the same ones again
    and again.
    """
    return functools.cache(os.path.isfile)


@memo.of_programs
def imports(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    """What a file imports, wherever in it: modules, each with the level that it is relative to."""
    return tuple(dict.fromkeys(_imports(tree)))


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in statements(tree):
        match node:
            case ast.Import(names=names):
                yield from ((name.name, 0) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield module or "", level
                yield from ((f"{module or ''}.{name.name}".lstrip("."), level) for name in names)


def in_package(path: str | Path) -> bool:
    """Whether the file at `path` is a module of a package."""
    return os.path.isfile(os.path.join(os.path.dirname(path), INIT))


def neighbours(path: Path) -> list[Path]:
    """The files beside a file that can fill its registries."""
    return sorted(each for each in path.parent.glob("*.py") if each.is_file())[:MOST_NEIGHBOURS]


def resolve(importer: Path, module: str, level: int, is_file: IsFile) -> Path | None:
    """The file that an import means, by what is on disk."""
    if level == BESIDE:
        return Path(module)
    found = _resolved(str(importer), module.split(".") if module else [], level, is_file)
    return None if found is None else Path(found)


def called(path: Path) -> str:
    """What an import of the file at `path` calls it last; what is called "" is imported without its
    name, too.
    """
    return "" if path.name == INIT else path.stem


def can_mean(path: Path, module: str) -> bool:
    """Whether an import of this name can be one of the file at `path`, by the last part of both."""
    return not module or module.rpartition(".")[2] == (called(path) or path.parent.name)


def _resolved(importer: str, parts: list[str], level: int, is_file: IsFile) -> str | None:
    root = os.path.dirname(importer)
    if level:
        for _ in range(level - 1):
            root = os.path.dirname(root)
        return _below(root, parts, is_file)
    if not parts or parts[0] in LIBRARIES:
        return None

    def has_init(folder: str) -> bool:
        return is_file(os.path.join(folder, INIT))

    if not has_init(root) or parts[0] not in sys.stdlib_module_names:
        found = _below(root, parts, is_file)
        if found is not None and found != importer:
            return found
    if parts[0] in sys.stdlib_module_names:
        return None
    while has_init(root) and os.path.dirname(root) != root:
        root = os.path.dirname(root)
        found = _below(root, parts, is_file)
        if found is not None:
            return found
    above = os.path.dirname(root)
    for base in [above, os.path.dirname(above)]:
        for candidate in (base, os.path.join(base, "src")):
            if has_init(os.path.join(candidate, parts[0])):
                return _below(candidate, parts, is_file)
    # a script imports from the folders beside it, and their files import from where it lies; no
    # `__init__.py` is needed
    bases = [above, os.path.dirname(above)] if len(parts) > 1 else [above]
    bases += _beside_own(root, parts[0])
    return next(
        (found for base in bases if (found := _below(base, parts, is_file)) is not None), None
    )


def _beside_own(folder: str, name: str) -> Iterator[str]:
    """The folders that hold the one of this name which a file lies in: its own package, which needs
    no `__init__.py`.
    """
    while os.path.dirname(folder) != folder:
        if os.path.basename(folder) == name:
            yield os.path.dirname(folder)
        folder = os.path.dirname(folder)


def _below(base: str, parts: list[str], is_file: IsFile) -> str | None:
    """The module or the package that has this name below a folder."""
    stem = os.path.join(base, *parts)
    package = os.path.join(stem, INIT)
    return next((path for path in (f"{stem}.py", package) if is_file(path)), None)
