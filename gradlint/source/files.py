"""Which files to check under the paths given: not what git ignores, not what the settings exclude."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from gradlint.config import Settings
from gradlint.dataclass import dataclass
from gradlint.guess import did_you_mean

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SettingsFor = Callable[[pathlib.Path], Settings]


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to check, in order and once each, and how many were left out by settings or by git."""

    files: tuple[pathlib.Path, ...]
    left_out: int
    named: bool  # every path given is a file that --force-exclude leaves out


@dataclass(slots=True)
class _Walk:
    settings_for: SettingsFor
    files: dict[pathlib.Path, pathlib.Path] = field(default_factory=dict)  # by their real path
    left_out: int = 0

    def add(self, file: pathlib.Path) -> None:
        self.files.setdefault(pathlib.Path(os.path.realpath(file)), file)  # Path.resolve refuses a circle of links


def discover(paths: Sequence[pathlib.Path], settings_for: SettingsFor) -> Discovery:
    """The Python files under `paths`; a file that is named itself is taken whatever its name and place."""
    walk = _Walk(settings_for)
    forced_out = 0
    for path in paths:
        if path.is_dir():
            _walk_folder(walk, path)
        elif _is_forced_out(walk, path):
            forced_out += 1
        else:
            walk.add(path)
    return Discovery(tuple(sorted(walk.files.values())), walk.left_out + forced_out, forced_out == len(paths))


def nearest(path: str) -> str:
    """`; did you mean 'x'?` for a neighbour of the `path` that is not there."""
    folder, name = os.path.split(path)
    neighbours = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    return did_you_mean(name, neighbours)


def _is_forced_out(walk: _Walk, path: pathlib.Path) -> bool:
    absolute = pathlib.Path(os.path.abspath(path))
    settings = walk.settings_for(absolute.parent)
    return settings.force_exclude and _is_excluded(settings, settings.root, absolute, is_folder=False)


def _walk_folder(walk: _Walk, start: pathlib.Path) -> None:
    """Take what is under `start`. Patterns that match `start` itself do not count: it was asked for."""
    top = pathlib.Path(os.path.abspath(start))
    specs = [spec for spec in _specs_above(top) if _verdict([spec], top, is_folder=True) is not True]
    for folder, below in _folders(walk, top, specs):
        for name in sorted(entry.name for entry in _entries(walk, folder) if _is_included(walk, folder, entry)):
            _take(walk, start / (folder / name).relative_to(top), folder / name, below, top)


def _is_included(walk: _Walk, folder: pathlib.Path, entry: os.DirEntry[str]) -> bool:
    return walk.settings_for(folder).includes(folder / entry.name) and not os.path.isdir(entry.path)


def _folders(walk: _Walk, top: pathlib.Path, specs: list[_Spec]) -> Iterator[tuple[pathlib.Path, list[_Spec]]]:
    """Each folder from `top` down that is not left out, with the ignore files that hold in it."""
    pending = [(top, specs)]
    while pending:
        folder, above = pending.pop()
        here = above + _spec_of(folder)
        yield folder, here
        children = sorted(entry.name for entry in _entries(walk, folder) if entry.is_dir(follow_symlinks=False))
        pending += [
            (folder / name, here)
            for name in reversed(children)
            if not _is_left_out(walk.settings_for(folder), here, top, folder / name, is_folder=True)
        ]


def _entries(walk: _Walk, folder: pathlib.Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        walk.add(folder)  # reading it fails again, and that is reported
        return []


def _take(walk: _Walk, shown: pathlib.Path, path: pathlib.Path, specs: list[_Spec], top: pathlib.Path) -> None:
    if _is_left_out(walk.settings_for(path.parent), specs, top, path, is_folder=False):
        walk.left_out += 1
    elif os.path.isfile(path) or not os.path.exists(path):  # a link that leads nowhere is reported, a pipe is passed by
        walk.add(shown)


def _is_left_out(
    settings: Settings, specs: list[_Spec], top: pathlib.Path, path: pathlib.Path, *, is_folder: bool
) -> bool:
    if settings.respect_gitignore and _verdict(specs, path, is_folder=is_folder):
        return True
    asked_for = top != settings.root and _is_excluded(settings, settings.root, top, is_folder=True)
    return _is_excluded(settings, top if asked_for else settings.root, path, is_folder=is_folder)


def _is_excluded(settings: Settings, base: pathlib.Path, path: pathlib.Path, *, is_folder: bool) -> bool:
    if not path.is_relative_to(base) or path == base:
        return False
    return settings.exclusion.match_file(_relative(path, base, is_folder=is_folder))


@dataclass(frozen=True, slots=True)
class _Spec:
    """One ignore file: its folder and its patterns."""

    folder: pathlib.Path
    patterns: GitIgnoreSpec


def _spec_of(folder: pathlib.Path) -> list[_Spec]:
    file = folder / ".gitignore"
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    except OSError:  # git goes on without it, too
        return []
    return [_Spec(folder, _patterns(lines))] if lines else []


def _patterns(lines: Sequence[str]) -> GitIgnoreSpec:
    """The lines that git would hear: it passes over what is no pattern."""
    from pathspec import GitIgnoreSpec

    heard = []
    for line in lines:
        with contextlib.suppress(ValueError):
            GitIgnoreSpec.from_lines([line])
            heard.append(line)
    return GitIgnoreSpec.from_lines(heard)


def _specs_above(folder: pathlib.Path) -> list[_Spec]:
    """The ignore files between the root of the repository and `folder`, which is not in it; none outside of git."""
    for index, parent in enumerate(folder.parents):
        if (folder / ".git").exists():
            return []
        if (parent / ".git").exists():
            return [spec for above in reversed(folder.parents[: index + 1]) for spec in _spec_of(above)]
    return []


def _verdict(specs: Sequence[_Spec], path: pathlib.Path, *, is_folder: bool) -> bool | None:
    """What the ignore files say of `path`; the deepest that says anything decides, as in git."""
    for spec in reversed(specs):
        include = spec.patterns.check_file(_relative(path, spec.folder, is_folder=is_folder)).include
        if include is not None:
            return include
    return None


def _relative(path: pathlib.Path, base: pathlib.Path, *, is_folder: bool) -> str:
    return path.relative_to(base).as_posix() + ("/" if is_folder else "")
