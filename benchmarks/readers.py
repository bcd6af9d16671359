"""Whether libcst's tree, converted, is that of Python's own parser on every file that both can read.

python benchmarks/readers.py --files 10000 FOLDER...

Without folders: the standard library, its tests and what is installed beside it. Files are drawn by their contents.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from readers import difference, drawn, trees

from gradlint.analyzer import RECURSION_LIMIT


def main() -> int:
    """Prints each file on which the two differ, and how many are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("folders", type=Path, nargs="*")
    given = parser.parse_args()
    folders = given.folders or [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    sys.setrecursionlimit(RECURSION_LIMIT)
    files = drawn({path for folder in folders for path in folder.rglob("*.py") if path.is_file()}, given.files)
    start, lines, equal, different = time.process_time(), 0, 0, 0
    for path, text, tree in trees(files):
        lines += text.count("\n")
        try:
            found = difference(text, tree)
        except (SyntaxError, RecursionError) as error:
            found = f"{type(error).__name__}: {error}"
        equal, different = equal + (not found), different + bool(found)
        if found:
            print(f"{path}\n{found}", flush=True)
    print(f"{equal} of {equal + different} files are equal ({lines} lines, {time.process_time() - start:.0f} s)")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
