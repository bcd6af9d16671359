"""The findings of an earlier commit, which `check --diff-base REV` leaves out of its report."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gradlint import checker
from gradlint.dataclass import dataclass
from gradlint.errors import UserError
from gradlint.finding import Finding
from gradlint.fingerprint import fingerprints
from gradlint.settings import Settings
from gradlint.source.files import SettingsFor

Wanted = Callable[[str], bool]
# which hold where git has started a hook, and not elsewhere
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX")
_PLAIN = ("100644", "100755")  # the modes of files: links and submodules are none


def found_before(
    rev: str,
    files: Sequence[pathlib.Path],
    settings_for: SettingsFor,
    settings: Settings,
    jobs: int,
) -> frozenset[str]:
    """The fingerprints of what these files held where this branch left `rev`, under the names they
    have now.
    """
    repository = _Repository.around(settings.root)
    commit = repository.branching(rev)
    former = repository.former_names(commit)
    with tempfile.TemporaryDirectory(prefix="gradlint-") as folder:
        old = _Tree(repository.top, pathlib.Path(folder).resolve(), settings_for)
        repository.write(commit, old.root, lambda name: _is_read(name, settings))
        now = {
            old.root / former.get(name, name): file
            for file in files
            if (name := repository.name(file))
        }
        there = [path for path in now if path.is_file()]
        if not there:
            return frozenset()
        checked = checker.check(there, old.settings, given={}, jobs=jobs, keeps=False)
        return frozenset(
            _names(checked, old, {str(path): str(file) for path, file in now.items()}, settings)
        )


def _is_read(name: str, settings: Settings) -> bool:
    """Whether a check can read the file of this name in the repository."""
    path = pathlib.PurePosixPath(name)
    return path.name == ".gitignore" or settings.includes(settings.root / path.parent, path.name)


def _names(
    checked: checker.Checked, old: _Tree, now: Mapping[str, str], settings: Settings
) -> Iterable[str]:
    """The fingerprints that the findings would have in the files as they are called now."""
    texts, places = checked.texts, {}
    renamed: list[Finding] = []
    for finding in checked.findings:
        if finding.severity >= settings.min_severity:
            found = texts.in_files(finding)
            path = now.get(found.at.path) or str(old.here(pathlib.Path(found.at.path).absolute()))
            renamed.append(replace(found, at=replace(found.at, path=path)))
            places[renamed[-1].at] = found.at
    return fingerprints(renamed, lambda at: texts.quoted(places[at]), settings.root).values()


@dataclass(frozen=True)
class _Tree:
    """A commit in a folder of its own; the settings are those of the files as they are now."""

    top: pathlib.Path
    root: pathlib.Path
    settings_for: SettingsFor

    def here(self, path: pathlib.Path) -> pathlib.Path:
        """The path in the repository of one in the folder."""
        return self.top / path.relative_to(self.root) if path.is_relative_to(self.root) else path

    @functools.cached_property
    def settings(self) -> SettingsFor:
        @functools.cache
        def settings(folder: pathlib.Path) -> Settings:
            found = self.settings_for(self.here(folder))
            inside = found.root.resolve().is_relative_to(self.top)
            root = self.root / found.root.resolve().relative_to(self.top) if inside else found.root
            return replace(found, root=root, baseline=None)

        return settings


@dataclass(frozen=True, slots=True)
class _Repository:
    """A git repository, asked by its own command."""

    top: pathlib.Path

    @classmethod
    def around(cls, folder: pathlib.Path) -> _Repository:
        """The one that a folder is in."""
        found = _git(
            folder, "rev-parse", "--show-toplevel", told=f"{folder} is in no git repository"
        )
        return cls(pathlib.Path(found.decode(errors="surrogateescape").rstrip("\n")).resolve())

    def branching(self, rev: str) -> str:
        """The commit that `rev` and what is checked out have in common, or `rev` where there is
        none.
        """
        told = f"git knows no commit {rev!r}"
        commit = _git(
            self.top, "rev-parse", "--verify", "--end-of-options", f"{rev}^{{commit}}", told=told
        )
        try:
            return (
                _git(self.top, "merge-base", commit.decode().strip(), "HEAD", told=told)
                .decode()
                .strip()
            )
        except UserError:
            return commit.decode().strip()

    def name(self, file: pathlib.Path) -> str | None:
        """What a file is called from the top; None where it is not below it."""
        path = file.resolve()
        return path.relative_to(self.top).as_posix() if path.is_relative_to(self.top) else None

    def former_names(self, commit: str) -> Mapping[str, str]:
        """What files that were renamed since then were called, by what they are called now."""
        said = _git(
            self.top,
            "diff",
            "--name-status",
            "-M",
            "-z",
            "--diff-filter=R",
            commit,
            told="git cannot compare",
        )
        words = _words(said)
        return {now: before for _, before, now in zip(words, words, words, strict=True)}

    def write(self, commit: str, folder: pathlib.Path, is_read: Wanted) -> None:
        """Writes the files of a commit that are read into a folder."""
        listed = _words(
            _git(
                self.top, "ls-tree", "-r", "-z", "--full-tree", commit, told="git cannot list files"
            )
        )
        entries = [entry.partition("\t") for entry in listed]
        objects = {
            name: about.split()[2]
            for about, _, name in entries
            if about.split()[0] in _PLAIN and is_read(name)
        }
        asked = "".join(f"{each}\n" for each in objects.values()).encode()
        said = _git(self.top, "cat-file", "--batch", told="git cannot read files", given=asked)
        at = 0
        for name in objects:
            begin = said.index(b"\n", at) + 1
            at = begin + int(said[at:begin].split()[2])
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(said[begin:at])
            at += 1  # the end of line behind it


def _words(said: bytes) -> Iterator[str]:
    return iter(said.decode(errors="surrogateescape").split("\0")[:-1])


def _git(folder: pathlib.Path, *words: str, told: str, given: bytes = b"") -> bytes:
    """What git says; where it says no, that is the user's fault, and `told`."""
    surroundings = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
    try:
        ran = subprocess.run(
            ["git", *words],
            cwd=folder,
            env=surroundings,
            input=given,
            capture_output=True,
            check=False,
        )
    except OSError:
        raise UserError("git is not installed") from None
    if ran.returncode:
        raise UserError(told)
    return ran.stdout
