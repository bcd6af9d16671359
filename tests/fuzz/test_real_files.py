"""Files that others wrote for other ends are checked to their end: the standard library, its tests, and torch.

`GRADLINT_FOLDERS` names other folders, with colons between them, `GRADLINT_FILES` how many of their files are drawn
(16) and `GRADLINT_SEED` with which seed (0). Each is checked as it is, and with a backward in each of its functions.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import random
import sysconfig
from collections.abc import Sequence

from commandline import bounded
from fuzz.everywhere import everywhere

FOLDERS = os.environ.get("GRADLINT_FOLDERS")
FILES = int(os.environ.get("GRADLINT_FILES", "16"))
SEED = int(os.environ.get("GRADLINT_SEED", "0"))
TOGETHER = 16  # files in one process
SECONDS = 600  # of CPU for them, where some ten are taken
LARGEST = 40_000  # bytes, of what is checked every time


def _folders() -> list[str]:
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    return FOLDERS.split(":") if FOLDERS else [sysconfig.get_path("stdlib"), *(torch.submodule_search_locations or ())]


def _drawn() -> list[pathlib.Path]:
    found = sorted(path for folder in _folders() for path in pathlib.Path(folder).rglob("*.py") if path.is_file())
    fitting = found if FOLDERS else [path for path in found if path.stat().st_size < LARGEST]
    return random.Random(SEED).sample(fitting, min(FILES, len(fitting)))


def test_real_files_are_checked_to_their_end(tmp_path: pathlib.Path) -> None:
    drawn = _drawn()
    assert drawn
    for start in range(0, len(drawn), TOGETHER):
        folder = tmp_path / str(start)
        _copied(drawn[start : start + TOGETHER], folder)
        ran = bounded(folder, "check", "--no-cache", "--jobs", "1", "--gaps", "--select", "ALL", ".", seconds=SECONDS)
        assert ran.returncode in (0, 1), ran.stderr
        assert "gap[internal]" not in ran.stderr, ran.stderr


def _copied(files: Sequence[pathlib.Path], folder: pathlib.Path) -> None:
    """Puts the files into a folder, and beside them those that parse with all of their functions entered."""
    folder.mkdir()
    for number, path in enumerate(files):
        content = path.read_bytes()
        (folder / f"{number}_{path.name}").write_bytes(content)
        try:
            entered = everywhere(content)
        except (SyntaxError, ValueError, RecursionError):
            continue
        (folder / f"{number}_entered_{path.name}").write_text(entered, encoding="utf-8", errors="surrogatepass")
