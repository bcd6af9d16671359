"""What other linters say of the programs in `fixtures/bench`: `python benchmarks/peers.py [--tools FOLDER]`.

Each program there has a defect that was executed: the lines at fault bear `# expect: CODE`, and `after/` is the same
program without the defect; some programs are sound from the start. Counted are the programs of which a tool reports a
line at fault, whatever it says of it, and the lines that it reports in the sound ones. FOLDER holds the tools'
commands; what is not there is left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "fixtures" / "bench"
_GRADLINT = ["gradlint", "check", "--no-cache", "--output-format", "concise"]
TOOLS = {
    "gradlint": _GRADLINT,
    "gradlint, without notes": [*_GRADLINT, "--min-severity", "warning"],
    "torch-preflight": ["torch-preflight", "check", "--no-color", "-f", "github"],
    "torchfix, every rule": ["torchfix", "--select", "ALL"],
    "ruff, its defaults": ["ruff", "check", "--isolated", "--no-cache", "--output-format", "concise"],
    "ruff, every rule": ["ruff", "check", "--isolated", "--no-cache", "--output-format", "concise", "--select", "ALL"],
    "pylint, its defaults": ["pylint", "--rcfile=/dev/null", "--score=n", "--msg-template={path}:{line}", "--jobs=2"],
}
_PLACE = re.compile(r"(?:file=)?([^\s:,=]+\.py)(?::|,line=)(\d+)")
_EXPECTED = re.compile(r"# expect: GL\d")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    folder = parser.parse_args().tools
    expected = {case.name: set(_expected(case / "before")) for case in sorted(BENCH.iterdir())}
    defects = sum(map(bool, expected.values()))
    print(f"| | of {defects} defects | reports on {len(expected)} sound programs |\n| --- | --- | --- |")
    for name, (command, *options) in TOOLS.items():
        if path := shutil.which(command, path=str(folder)) or shutil.which(command):
            reported = set(_reported([path, *options]))
            found = sum(bool(lines & reported) for lines in expected.values())
            noise = sum("after" in file.parts for file, _ in reported)
            print(f"| {name} | {found} | {noise} |", flush=True)


def _expected(folder: Path) -> Iterator[tuple[Path, int]]:
    for file in sorted(folder.rglob("*.py")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if _EXPECTED.search(line):
                yield file.relative_to(ROOT), number


def _reported(command: list[str]) -> Iterator[tuple[Path, int]]:
    """The lines of which a tool says anything, each once."""
    files = [str(file.relative_to(ROOT)) for file in sorted(BENCH.rglob("*.py"))]
    ran = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    for file, line in _PLACE.findall(ran.stdout):
        path = Path(file)
        yield (path.relative_to(ROOT) if path.is_absolute() else path), int(line)


if __name__ == "__main__":
    main()
