"""Whether libcst's tree, converted, is that of Python's own parser on every file that both can
read.

python benchmarks/readers.py --files 10000 FOLDER...

Without folders: the standard library, its tests and what is installed beside it. Files are drawn by
their contents.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import sysconfig
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from readers import difference, drawn, trees

from gradlint.analyzer import RECURSION_LIMIT

PROGRESS = 500  # files


def compared(path: Path) -> tuple[str, int, str] | None:
    """What came of a file that Python reads, its lines, and where the two trees of it differ or
    libcst stops.
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    for _, text, tree in trees([path]):
        lines = text.count("\n")
        try:
            found = difference(text, tree)
        except SyntaxError as error:
            return "not read by libcst", lines, f"{path}: {error}"
        return ("different", lines, f"{path}:\n{found}") if found else ("equal", lines, "")
    return None


def main() -> int:
    """Prints each file on which the two differ, or which libcst does not read, and how many are
    equal.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("folders", type=Path, nargs="*")
    given = parser.parse_args()
    folders = given.folders or [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    files = drawn(
        {path for folder in folders for path in folder.rglob("*.py") if path.is_file()}, given.files
    )
    counted: Counter[str] = Counter()
    with multiprocessing.Pool(given.jobs) as pool:
        for number, each in enumerate(pool.imap(compared, files), 1):
            if each is not None:
                outcome, lines, told = each
                counted.update({outcome: 1, "lines": lines})
                print(f"{told}\n" * bool(told), end="", flush=True)
            if number % PROGRESS == 0:
                print(f"{number} of {len(files)}: {dict(counted)}", file=sys.stderr, flush=True)
    print(dict(counted))
    return int(bool(counted["different"]))


if __name__ == "__main__":
    sys.exit(main())
