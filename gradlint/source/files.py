"""Which files to check under the paths given: not what git ignores, not what the settings
exclude.
"""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from gradlint.dataclass import dataclass
from gradlint.guess import did_you_mean
from gradlint.ignore import Patterns
from gradlint.settings import Settings

SettingsFor = Callable[[pathlib.Path], Settings]


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to check, in order and once each, and how many were left out by settings or by
    git.
    """

    files: tuple[pathlib.Path, ...]
    left_out: int


class RealPath:
    """The real paths of files, each folder's asked once."""

    def __init__(self) -> None:
        self._folder = functools.cache(os.path.realpath)  # Path.resolve refuses a circle of links

    def __call__(self, path: pathlib.Path) -> pathlib.Path:
        folder, name = os.path.split(path)
        if name in ("", os.curdir, os.pardir) or os.path.islink(path):
            return pathlib.Path(os.path.realpath(path))
        return pathlib.Path(self._folder(folder), name)


@dataclass(slots=True)
class _Walk:
    settings_for: SettingsFor
    real: RealPath = field(default_factory=RealPath)
    files: dict[pathlib.Path, pathlib.Path] = field(default_factory=dict)  # by their real path
    left_out: int = 0

    def add(self, file: pathlib.Path) -> None:
        self.files.setdefault(self.real(file), file)


def discover(paths: Sequence[pathlib.Path], settings_for: SettingsFor) -> Discovery:
    """The Python files under `paths`; a file that is named itself is taken whatever its name and
    place.
    """
    walk = _Walk(settings_for)
    forced_out = 0
    for path in paths:
        if path.is_dir():
            _walk_folder(walk, path)
        elif _is_forced_out(walk, path):
            forced_out += 1
        else:
            walk.add(path)
    # paths themselves compare slowly
    files = tuple(sorted(walk.files.values(), key=lambda path: path.parts))
    return Discovery(files, walk.left_out + forced_out)


def real_paths(files: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """The real path of each file."""
    return list(map(RealPath(), files))


def nearest(path: str) -> str:
    """`; did you mean 'x'?` for a neighbour of the `path` that is not there."""
    folder, name = os.path.split(path)
    neighbours = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    return did_you_mean(name, neighbours)


def _is_forced_out(walk: _Walk, path: pathlib.Path) -> bool:
    absolute = pathlib.Path(os.path.abspath(path))
    settings = walk.settings_for(absolute.parent)
    return settings.force_exclude and _is_excluded(
        settings, settings.root, absolute, is_folder=False
    )


def _walk_folder(walk: _Walk, start: pathlib.Path) -> None:
    """Take what is under `start`. Patterns that match `start` itself do not count: it was asked
    for.
    """
    top = pathlib.Path(os.path.abspath(start))
    specs = [
        spec for spec in _specs_above(top) if not spec.patterns.leaves_out(_way(spec.folder, top))
    ]
    pending = [(start, _folder(walk, top, top, specs))]
    while pending:
        shown, here = pending.pop()
        entries = sorted(_entries(walk, here.path), key=lambda entry: entry.name)
        for entry in entries:
            if here.includes(entry.name) and not os.path.isdir(entry.path):
                _take(walk, shown / entry.name, here, entry)
        pending += [
            (shown / entry.name, _folder(walk, here.path / entry.name, top, here.specs))
            for entry in reversed(entries)
            if entry.is_dir(follow_symlinks=False) and not here.leaves_out(entry.name + "/")
        ]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder on the way, and what leaves out what lies in it."""

    path: pathlib.Path
    settings: Settings
    specs: list[_Spec]  # the ignore files that hold in it
    # their patterns, innermost first, each with the way here from its folder
    ignored: list[tuple[str, Patterns]]
    # the way here from where the settings' patterns begin; None where they do not reach
    excluded: str | None

    def includes(self, name: str) -> bool:
        """Whether a file of this name is one to check."""
        return self.settings.includes(self.path, name)

    def leaves_out(self, name: str) -> bool:
        """Whether git or the settings leave out what has this name; that of a folder ends in a
        slash.
        """
        if self.settings.respect_gitignore and _verdict(name, self.ignored):
            return True
        return self.excluded is not None and bool(
            self.settings.exclusion.verdict(self.excluded + name)
        )


def _folder(walk: _Walk, path: pathlib.Path, top: pathlib.Path, above: list[_Spec]) -> _Folder:
    settings, specs = walk.settings_for(path), above + _spec_of(path)
    asked_for = top != settings.root and _is_excluded(settings, settings.root, top, is_folder=True)
    base = top if asked_for else settings.root
    excluded = _way(base, path) if path.is_relative_to(base) else None
    ignored = [(_way(spec.folder, path), spec.patterns) for spec in reversed(specs)]
    return _Folder(path, settings, specs, ignored, excluded)


def _way(base: pathlib.Path, folder: pathlib.Path) -> str:
    """How a path from `base` to what lies in `folder` begins."""
    return "" if folder == base else _relative(folder, base, is_folder=True)


def _entries(walk: _Walk, folder: pathlib.Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        walk.add(folder)  # reading it fails again, and that is reported
        return []


def _take(walk: _Walk, shown: pathlib.Path, here: _Folder, entry: os.DirEntry[str]) -> None:
    if here.leaves_out(entry.name):
        walk.left_out += 1
    elif entry.is_file(follow_symlinks=False) or os.path.isfile(entry.path):
        # a pipe is passed by, and so is a link that leads nowhere: Emacs' locks are such links
        walk.add(shown)


def _is_excluded(
    settings: Settings, base: pathlib.Path, path: pathlib.Path, *, is_folder: bool
) -> bool:
    if not path.is_relative_to(base) or path == base:
        return False
    return settings.exclusion.leaves_out(_relative(path, base, is_folder=is_folder))


@dataclass(frozen=True, slots=True)
class _Spec:
    """One ignore file: its folder and its patterns."""

    folder: pathlib.Path
    patterns: Patterns


def _spec_of(folder: pathlib.Path) -> list[_Spec]:
    file = folder / ".gitignore"
    try:
        lines = (
            file.read_text(encoding="utf-8-sig", errors="replace").split("\n")
            if file.is_file()
            else []
        )
    except OSError:  # git goes on without it, too
        return []
    return [_Spec(folder, Patterns.valid(lines))] if lines else []


def _specs_above(folder: pathlib.Path) -> list[_Spec]:
    """The ignore files between the root of the repository and `folder`, which is not in it; none
    outside of git.
    """
    for index, parent in enumerate(folder.parents):
        if (folder / ".git").exists():
            return []
        if (parent / ".git").exists():
            return [
                spec for above in reversed(folder.parents[: index + 1]) for spec in _spec_of(above)
            ]
    return []


def _verdict(name: str, patterns: Iterable[tuple[str, Patterns]]) -> bool | None:
    """What ignore files say of a name, each behind its way; the deepest that says anything decides,
    as in git.
    """
    return next(
        (found for way, each in patterns if (found := each.verdict(way + name)) is not None), None
    )


def _relative(path: pathlib.Path, base: pathlib.Path, *, is_folder: bool) -> str:
    return path.relative_to(base).as_posix() + ("/" if is_folder else "")
