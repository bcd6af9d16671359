"""How many paths the entries of some files take, and how long one path takes.

python benchmarks/paths.py fixtures/bench
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from gradlint import library
from gradlint.analysis import RECURSION_LIMIT, _Analyzer
from gradlint.interpret.session import Session, run_entry
from gradlint.program.entries import entries


def main() -> None:
    """Prints the number of paths of an entry (median, 90th percentile, most) and the CPU time of a path."""
    library.load()
    sys.setrecursionlimit(RECURSION_LIMIT)
    analyzer = _Analyzer({}, [])
    counts: list[int] = []
    times: list[float] = []
    files = sorted(path for root in sys.argv[1:] for path in Path(root).resolve().rglob("*.py"))
    for path in files:
        source = analyzer.program.source(path)
        for entry in entries(source.tree) if source is not None else ():
            start = time.process_time()
            tapes = run_entry(analyzer.program, path, entry, Session(analyzer.program))
            counts.append(len(tapes))
            times.append((time.process_time() - start) / len(tapes))
    tenth = statistics.quantiles(counts, n=10)[-1]
    print(f"{len(files)} files, {len(counts)} entries")
    print(f"paths of an entry: median {statistics.median(counts):.0f}, 90th percentile {tenth:.0f}, most {max(counts)}")
    print(f"CPU time of a path: median {1000 * statistics.median(times):.1f} ms, most {1000 * max(times):.1f} ms")


if __name__ == "__main__":
    main()
