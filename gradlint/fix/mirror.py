"""A copy of a project's folder to run programs in: what is small is copied, what is large is
linked.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Iterator

from gradlint.dataclass import dataclass

LARGE = 64 << 20  # bytes of a file, from which on it is linked
COPIED = 512 << 20  # bytes in all, after which files that are no programs are linked
_LEFT_OUT = {
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__",
    ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".gradlint_cache",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mirror:
    """A copy, and which of its files are links to the original."""

    folder: pathlib.Path
    linked: tuple[str, ...]


def mirror(root: pathlib.Path, copy: pathlib.Path) -> Mirror:
    """Copies `root`, but for environments, caches and the history of versions."""
    linked: list[str] = []
    room = COPIED
    for source in _entries(root, copy):
        target = copy / source.relative_to(root)
        if source.is_symlink():
            _link_anew(source, target, root, copy)
        elif source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif source.is_file():
            size = source.stat().st_size
            if os.access(source, os.R_OK) and (source.suffix == ".py" or size <= min(LARGE, room)):
                shutil.copy2(source, target)
                room -= size
            else:
                target.symlink_to(source)
                linked.append(source.relative_to(root).as_posix())
    return Mirror(copy, tuple(linked))


def _entries(root: pathlib.Path, copy: pathlib.Path) -> Iterator[pathlib.Path]:
    """What is to be copied, folders before what they hold; where the copy itself stands is left
    out.
    """
    for path, folders, files in os.walk(root):
        folder = pathlib.Path(path)
        yield folder
        links = [name for name in folders if (folder / name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in links and _is_wanted(folder / name, copy)
        )
        yield from (folder / name for name in sorted([*links, *files]))


def _is_wanted(folder: pathlib.Path, copy: pathlib.Path) -> bool:
    return (
        folder.name not in _LEFT_OUT
        and not (folder / "pyvenv.cfg").is_file()
        and folder != copy.parent
    )


def _link_anew(
    source: pathlib.Path, target: pathlib.Path, root: pathlib.Path, copy: pathlib.Path
) -> None:
    """A link as it was: to what the copy has of it, or to where it leads out of the folder."""
    real = source.resolve()
    target.symlink_to(copy / real.relative_to(root) if real.is_relative_to(root) else real)
