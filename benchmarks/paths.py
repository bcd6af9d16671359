"""How many paths the entries of some files take, and how long one path takes.

python benchmarks/paths.py fixtures/bench
"""

from __future__ import annotations

import ast
import functools
import statistics
import sys
import time
from pathlib import Path

from gradlint import library
from gradlint.analyzer import RECURSION_LIMIT
from gradlint.interpret.running import run_entry
from gradlint.interpret.session import Session
from gradlint.program.entries import entries
from gradlint.program.modules import Program
from gradlint.source.parse import Source, decode, parse


@functools.cache
def parsed(path: Path) -> Source | None:
    """The text and tree of a file; None where it has none."""
    text = decode(str(path), path.read_bytes())
    found = parse(str(path), text) if isinstance(text, str) else None
    return found if isinstance(found, Source) else None


def read(path: Path) -> tuple[str, ast.Module] | None:
    """What a program's file holds."""
    source = parsed(path)
    return (source.text, source.tree) if source is not None else None


def main() -> None:
    """Prints the number of paths of an entry (median, 90th percentile, most) and the CPU time of a
    path.
    """
    library.load()
    sys.setrecursionlimit(RECURSION_LIMIT)
    program = Program(read)
    counts: list[int] = []
    times: list[float] = []
    files = sorted(path for root in sys.argv[1:] for path in Path(root).resolve().rglob("*.py"))
    for path in files:
        source = parsed(path)
        for entry in entries(source) if source is not None else ():
            start = time.process_time()
            tapes = run_entry(program, path, entry, Session(program))
            counts.append(len(tapes))
            times.append((time.process_time() - start) / len(tapes))
    tenth = statistics.quantiles(counts, n=10)[-1]
    print(f"{len(files)} files, {len(counts)} entries")
    print(
        f"paths of an entry: median {statistics.median(counts):.0f}, 90th percentile "
        f"{tenth:.0f}, most {max(counts)}"
    )
    print(
        f"CPU time of a path: median {1000 * statistics.median(times):.1f} ms, most "
        f"{1000 * max(times):.1f} ms"
    )


if __name__ == "__main__":
    main()
