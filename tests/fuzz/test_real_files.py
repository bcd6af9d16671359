"""Files that others wrote for other ends are checked to their end: the standard library, its tests,
and packages.

All files of the standard library, of its tests where they are installed, and of the packages that
are installed here, but for the largest, are checked as they are. A few of all files are drawn and
checked with a backward in each of their functions as well: `GRADLINT_FOLDERS` names other folders
to draw from, with colons between them, `GRADLINT_FILES` how many are drawn (16).
"""

from __future__ import annotations

import os
import pathlib
import random
import sysconfig
from collections.abc import Sequence

import pytest
from commandline import bounded
from fuzz.everywhere import everywhere
from seeds import SEEDS

FOLDERS = os.environ.get("GRADLINT_FOLDERS")
FILES = int(os.environ.get("GRADLINT_FILES", "16"))
TOO_LARGE = 1_000  # files: of torch and sympy some are drawn
PARTS = 6  # of the tests, which run side by side
TOGETHER = 16  # files in one process
SECONDS = 600  # of CPU for them, or for a part of all, where some ten and some forty are taken
LARGEST = 40_000  # bytes, of what is checked every time


STDLIB = pathlib.Path(sysconfig.get_path("stdlib"))
INSTALLED = pathlib.Path(sysconfig.get_path("purelib"))


def _python(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*.py") if path.is_file())


def _packages() -> list[pathlib.Path]:
    """The standard library, part by part, and the packages beside it that are not too large."""
    parts = [
        path
        for path in STDLIB.iterdir()
        if path.is_dir() and path.name not in ("site-packages", "dist-packages")
    ]
    packages = [
        path for path in INSTALLED.iterdir() if path.is_dir() and len(_python(path)) < TOO_LARGE
    ]
    return sorted(path for path in (*parts, *packages) if _python(path)) + sorted(
        STDLIB.glob("*.py")
    )


def test_there_are_enough_packages_to_check() -> None:
    assert sum(INSTALLED in path.parents for path in _packages()) >= 20
    assert STDLIB / "json" in _packages()


@pytest.mark.parametrize("part", range(PARTS))
def test_packages_are_checked_to_their_end(part: int, tmp_path: pathlib.Path) -> None:
    _check(tmp_path, *map(str, _packages()[part::PARTS]))


def _check(folder: pathlib.Path, *paths: str) -> None:
    """Checks the files in a process of bounded memory and CPU: it comes to an end, without a
    mistake of its own.
    """
    ran = bounded(
        folder,
        "check",
        "--no-cache",
        "--jobs",
        "1",
        "--gaps",
        "--select",
        "ALL",
        *paths,
        seconds=SECONDS,
    )
    assert ran.returncode in (0, 1), ran.stderr
    assert "gap[internal]" not in ran.stderr, ran.stderr


def _drawn() -> list[pathlib.Path]:
    folders = (
        [pathlib.Path(name) for name in FOLDERS.split(":")] if FOLDERS else [STDLIB, INSTALLED]
    )
    found = [path for folder in folders for path in _python(folder)]
    fitting = found if FOLDERS else [path for path in found if path.stat().st_size < LARGEST]
    return random.Random(SEEDS["drawn"]).sample(fitting, min(FILES, len(fitting)))


def test_real_files_are_checked_to_their_end(tmp_path: pathlib.Path) -> None:
    drawn = _drawn()
    assert drawn
    for start in range(0, len(drawn), TOGETHER):
        folder = tmp_path / str(start)
        _copied(drawn[start : start + TOGETHER], folder)
        _check(folder, ".")


def _copied(files: Sequence[pathlib.Path], folder: pathlib.Path) -> None:
    """Puts the files into a folder, and beside them those that parse with all of their functions
    entered.
    """
    folder.mkdir()
    for number, path in enumerate(files):
        content = path.read_bytes()
        (folder / f"{number}_{path.name}").write_bytes(content)
        try:
            entered = everywhere(content)
        except (SyntaxError, ValueError, RecursionError):
            continue
        (folder / f"{number}_entered_{path.name}").write_text(
            entered, encoding="utf-8", errors="surrogatepass"
        )
